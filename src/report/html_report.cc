#include "report/html_report.h"

#include <nlohmann/json.hpp>

#include "base/version.h"
#include "report/assets.h"
#include "report/comparison.h"
#include "report/html_parts.h"
#include "report/run_json.h"
#include "report/table_format.h"
#include "report/tenants_page.h"

namespace strobe::report {

namespace {

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
  STROBE_ASSIGN(std::string plotly, plotly_for_script(options.plotly_js));

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
                              {"plotly", std::move(plotly)},
                              {"script", std::string(assets::kScript)}});
}

}  // namespace strobe::report
