#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "analyze/grid_effects.h"
#include "analyze/predictability.h"
#include "ask.h"
#include "command.h"
#include "report/table_format.h"
#include "trace/open.h"

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
    return "strobe predictability out/000*/trace.sqlite --reference alone/trace.sqlite\n  strobe predictability "
           "out/priority";
  }

  void declare(CLI::App& app) override {
    app.add_option("traces", traces_,
                   "Trace files, or folders of runs; of several runs, also what the variation comes from and what each "
                   "factor of their experiment changes")
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
    STROBE_ASSIGN(const std::vector<std::string> paths, all_traces());
    for (const std::string& path : paths) {
      STROBE_ASSIGN(const trace::Timeline timeline, open_any_trace(path));
      auto groups = analyze::latency_groups(timeline, metric_);
      if (!groups) return std::move(groups).error().at(path);
      STROBE_ASSIGN(const analyze::Predictability all, analyze::predictability(timeline, *groups, options));
      latencies.push_back({analyze::experiment_factors(timeline), std::move(*groups), path});
      if (format == report::Format::kJson) {
        runs.push_back(json_of(path, all));
        continue;
      }
      if (paths.size() > 1 && format == report::Format::kText) text += path + "\n\n";
      if (format == report::Format::kCsv) {
        text += report::format_table(all.metrics, format);
        continue;
      }
      text += report::format_table(for_people(all.metrics), format);
      if (all.tail_account && all.tail_account->row_count() > 0)
        text += "\n" + report::format_table(*all.tail_account, format);
      if (all.tail.row_count() > 0) text += "\n" + report::format_table(all.tail, format);
      if (paths.size() > 1) text += "\n";
    }
    std::vector<std::pair<const char*, Table>> between;  // runs
    if (paths.size() > 1) {
      if (auto sources = analyze::variation_sources(latencies)) between.emplace_back("variation", std::move(*sources));
      if (auto effects = analyze::main_effects(latencies, {})) between.emplace_back("effects", std::move(*effects));
      if (Table table = analyze::interactions(latencies, {}); table.row_count() > 0)
        between.emplace_back("interactions", std::move(table));
    }
    if (format == report::Format::kJson) {
      Json out = runs.size() == 1 ? runs[0] : Json{{"runs", runs}};
      for (const auto& [key, table] : between) out[key] = Json::parse(report::format_table(table, format));
      text = out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    } else if (format == report::Format::kText) {
      for (const auto& [key, table] : between) text += report::format_table(table, format) + "\n";
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }

 private:
  // A folder stands for every trace in it: those of an experiment's cells.
  Result<std::vector<std::string>> all_traces() const {
    std::vector<std::string> paths;
    std::error_code ignored;
    for (const std::string& given : traces_) {
      std::vector<std::filesystem::path> files;
      if (std::filesystem::is_directory(given, ignored)) {
        STROBE_ASSIGN(files, trace::trace_files(given));
      }
      if (files.empty()) files.emplace_back(given);
      for (const auto& file : files) paths.push_back(file.string());
    }
    return paths;
  }

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
