#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analyze/predictability.h"
#include "ask.h"
#include "command.h"
#include "report/table_format.h"

namespace strobe::app {
namespace {

using Json = nlohmann::ordered_json;

class PredictabilityCommand : public Command {
 public:
  const char* name() const override { return "predictability"; }
  const char* summary() const override {
    return "How far latencies spread, what makes their tail, and what varies them";
  }
  const char* group() const override { return "Ask"; }
  const char* example() const override {
    return "strobe predictability out/000*/trace.sqlite --reference alone/trace.sqlite";
  }

  void declare(CLI::App& app) override {
    app.add_option("traces", traces_,
                   "Trace file, or a folder with one; of several, also what the variation comes from")
        ->required();
    app.add_option("--metric", metric_,
                   "Of a trace without tenants: frame, range:NAME, kernel:NAME, ... (as in compare)")
        ->capture_default_str();
    app.add_option("--reference", reference_, "A trace to compare widths with");
    app.add_option("--trim", trim_, "What is left out first: none, p1-p99 or iqr; the tail is what is studied")
        ->capture_default_str();
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    analyze::PredictabilityOptions options;
    STROBE_ASSIGN(options.trim, analyze::parse_trim(trim_));
    std::vector<analyze::LatencyGroup> reference;
    if (!reference_.empty()) {
      STROBE_ASSIGN(const trace::Timeline timeline, open_any_trace(reference_));
      STROBE_ASSIGN(reference, analyze::latency_groups(timeline, metric_));
      options.reference = &reference;
    }
    Json runs = Json::array();
    std::string text;
    std::vector<analyze::RunLatencies> latencies;
    for (const std::string& path : traces_) {
      STROBE_ASSIGN(const trace::Timeline timeline, open_any_trace(path));
      auto groups = analyze::latency_groups(timeline, metric_);
      if (!groups) return std::move(groups).error().at(path);
      STROBE_ASSIGN(const analyze::Predictability all, analyze::predictability(timeline, *groups, options));
      latencies.push_back({analyze::experiment_factors(timeline), std::move(*groups)});
      if (format == report::Format::kJson) {
        runs.push_back(json_of(path, all));
        continue;
      }
      if (traces_.size() > 1 && format == report::Format::kText) text += path + "\n\n";
      if (format == report::Format::kCsv) {
        text += report::format_table(all.metrics, format);
        continue;
      }
      text += report::format_table(for_people(all.metrics), format);
      if (all.tail_account && all.tail_account->row_count() > 0)
        text += "\n" + report::format_table(*all.tail_account, format);
      if (all.tail.row_count() > 0) text += "\n" + report::format_table(all.tail, format);
      if (traces_.size() > 1) text += "\n";
    }
    std::optional<Table> sources;
    if (traces_.size() > 1) {
      auto made = analyze::variation_sources(latencies);
      if (made) sources = std::move(*made);
    }
    if (format == report::Format::kJson) {
      Json out = runs.size() == 1 ? runs[0] : Json{{"runs", runs}};
      if (sources) out["variation"] = Json::parse(report::format_table(*sources, format));
      text = out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    } else if (sources && format == report::Format::kText) {
      text += report::format_table(*sources, format);
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }

 private:
  // The columns that are read first; the others are in the other formats.
  static Table for_people(const Table& all) {
    std::vector<size_t> chosen;
    std::vector<Column> columns;
    for (const char* name :
         {"group", "count", "p50_ms", "p50_low_ms", "p50_high_ms", "p99_ms", "p99_low_ms", "p99_high_ms", "max_ms",
          "width_ms", "r", "cv", "jitter_ms", "output_jitter_ms", "width_factor", "change"})
      if (const auto column = all.column(name)) {
        chosen.push_back(*column);
        columns.push_back(all.columns()[*column]);
      }
    Table table(all.title(), columns);
    for (const auto& row : all.rows()) {
      std::vector<Cell> cells;
      for (const size_t column : chosen) cells.push_back(row[column]);
      table.add_row(std::move(cells));
    }
    table.notes = all.notes;
    return table;
  }

  static Json json_of(const std::string& path, const analyze::Predictability& all) {
    Json out = Json::parse(report::format_table(all.metrics, report::Format::kJson));
    out["trace"] = path;
    out["tail"] = Json::parse(report::format_table(all.tail, report::Format::kJson));
    if (all.tail_account)
      out["tail_account"] = Json::parse(report::format_table(*all.tail_account, report::Format::kJson));
    return out;
  }

  std::vector<std::string> traces_;
  std::string metric_ = "frame", reference_, trim_ = "none", format_ = "text";
};

}  // namespace

std::unique_ptr<Command> make_predictability_command() {
  return std::make_unique<PredictabilityCommand>();
}

}  // namespace strobe::app
