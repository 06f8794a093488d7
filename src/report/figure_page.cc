#include "report/figure_page.h"

#include <iterator>
#include <nlohmann/json.hpp>

#include "base/version.h"
#include "report/assets.h"
#include "report/html_parts.h"
#include "report/table_format.h"

namespace strobe::report {

namespace {

using Json = nlohmann::ordered_json;

Json series_json(const Series& series) {
  Json trace = {{"name", series.name}, {"x", series.x}, {"y", series.y}};
  trace["type"] = "scatter";
  trace["mode"] = series.lines ? "lines+markers" : "markers";
  constexpr const char* kPalette[] = {"#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951",
                                      "#ff8ab7", "#a463f2", "#97bbf5", "#9c6b4e"};
  const char* colour =
      series.colour < 0 ? "#9498a0" : kPalette[static_cast<size_t>(series.colour) % std::size(kPalette)];
  trace["line"] = {{"color", colour}, {"dash", series.dashed ? "dash" : "solid"}};
  trace["marker"] = {{"color", colour}, {"size", series.lines ? 7 : 5}};
  if (!series.texts.empty()) {
    trace["text"] = series.texts;
    trace["hovertemplate"] = "%{text}<br>%{x:.4g}, %{y:.4g}";
  }
  if (series.low.size() == series.y.size() && !series.y.empty()) {
    Json up = Json::array(), down = Json::array();
    for (size_t i = 0; i < series.y.size(); ++i) {
      up.push_back(series.high[i] - series.y[i]);
      down.push_back(series.y[i] - series.low[i]);
    }
    trace["error_y"] = {{"type", "data"},     {"symmetric", false}, {"array", up},
                        {"arrayminus", down}, {"thickness", 0.6},   {"width", 0}};
  }
  return trace;
}

// The same look as the report's: its style sheet, and plots on its paper.
constexpr std::string_view kDraw = R"js(
const data = JSON.parse(document.getElementById("data").textContent);
const css = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
data.figures.forEach((figure, i) => {
  const axis = title => ({title: {text: title}, type: figure.log ? "log" : "linear", gridcolor: css("line"), zeroline: false});
  Plotly.newPlot("figure" + i, figure.series, {
    height: 460, margin: {l: 70, r: 16, t: 10, b: 56}, paper_bgcolor: "rgba(0,0,0,0)",
                           plot_bgcolor : "rgba(0,0,0,0)",
                           font : {family : css("sans"), size : 13, color : css("soft")},
                           xaxis : axis(figure.x_title),
                           yaxis : axis(figure.y_title),
                           legend : {orientation : "h", y : 1.08},
                           hovermode : "closest",
                           colorway
    : [ "#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5" ],
}, {responsive: true, displaylogo: false});
});
document.documentElement.dataset.strobeReady = "true";
)js";

}  // namespace

Result<std::string> figure_page(const std::string& title, const Table& table, const std::vector<Figure>& figures) {
  STROBE_ASSIGN(const std::string plotly, plotly_for_script(""));
  Json data = {{"figures", Json::array()}};
  std::string sections;
  for (size_t i = 0; i < figures.size(); ++i) {
    const Figure& figure = figures[i];
    Json one = {{"x_title", figure.x_title}, {"y_title", figure.y_title}, {"log", figure.log}};
    one["series"] = Json::array();
    for (const Series& series : figure.series) one["series"].push_back(series_json(series));
    data["figures"].push_back(std::move(one));
    sections += "<section class=\"part\"><h2>" + escape_html(figure.title) + "</h2><p>" + escape_html(figure.text) +
                "</p><div id=\"figure" + std::to_string(i) + "\"></div></section>\n";
  }
  std::string page = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" + escape_html(title) + "</title>\n<style>\n";
  page += std::string(assets::kStyle) +
          "\npre { overflow-x: auto; font: 13px/1.5 var(--mono); }\n</style>\n</head>\n<body>\n";
  page += "<main><h1>" + escape_html(title) + "</h1>\n<section class=\"part\"><pre>";
  page += escape_html(format_table(table, Format::kText)) + "</pre></section>\n" + sections;
  page += "<p>Strobe " + escape_html(std::string(version())) + "</p></main>\n";
  page += "<script type=\"application/json\" id=\"data\">" + data_for_script(data) + "</script>\n";
  page += "<script>" + plotly + "</script>\n<script>" + std::string(kDraw) + "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace strobe::report
