#include "report/html_report.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/version.h"
#include "report/assets.h"
#include "report/comparison.h"
#include "report/plotly_file.h"
#include "report/run_json.h"
#include "report/table_format.h"
#include "report/tenants_page.h"

namespace strobe::report {

namespace {

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Text that stands between <script> and </script>: no "<" may begin a tag or a comment there. `escaped` must mean the
// same as "<" to whoever reads the script's text.
std::string replace_all(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}
std::string data_for_script(const nlohmann::ordered_json& data) {
  const std::string text = data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size() + text.size() / 64);
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

// Fills {{name}} places of the template. What is put in is never searched again.
std::string fill(std::string_view text, const std::map<std::string, std::string, std::less<>>& values) {
  std::string out;
  size_t at = 0;
  for (;;) {
    const size_t open = text.find("{{", at);
    const size_t close = open == std::string_view::npos ? open : text.find("}}", open);
    if (close == std::string_view::npos) break;
    out += text.substr(at, open - at);
    const auto value = values.find(text.substr(open + 2, close - open - 2));
    if (value != values.end()) out += value->second;
    at = close + 2;
  }
  out += text.substr(at);
  return out;
}

}  // namespace

Result<std::string> html_report(std::span<const ReportInput> runs, const ReportOptions& options) {
  if (runs.empty()) return usage_error("a report needs at least one trace");
  STROBE_ASSIGN(const auto plotly_path, find_plotly(options.plotly_js));
  STROBE_ASSIGN(auto plotly, read_file(plotly_path));
  if (plotly.find("Plotly") == std::string::npos)
    return bad_data(plotly_path.string() + ": this is not plotly.min.js (the name Plotly is nowhere in it)");

  const Table comparison = compare_runs(runs);
  nlohmann::ordered_json data = {{"title", options.title},
                                 {"version", std::string(version()) + " (" + git_revision() + ")"},
                                 {"comparison", table_json(comparison)},
                                 {"runs", nlohmann::ordered_json::array()}};
  for (const ReportInput& run : runs) data["runs"].push_back(run_json(run));
  if (options.tenants != nullptr) data["tenants"] = tenants_json(*options.tenants);

  return fill(assets::kPage, {{"title", escape_html(options.title)},
                              {"summary", escape_html(format_table(comparison, Format::kText))},
                              {"style", std::string(assets::kStyle)},
                              {"data", data_for_script(data)},
                              {"plotly", replace_all(std::move(plotly), "</script", "<\\/script")},
                              {"script", std::string(assets::kScript)}});
}

}  // namespace strobe::report
