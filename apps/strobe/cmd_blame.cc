#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "analyze/blame.h"
#include "analyze/blame_shapley.h"
#include "ask.h"
#include "base/file.h"
#include "command.h"
#include "report/table_format.h"

namespace strobe::app {
namespace {

using Json = nlohmann::ordered_json;

class BlameCommand : public Command {
 public:
  const char* name() const override { return "blame"; }
  const char* summary() const override { return "Of several tenants: who delayed whom, on which resource"; }
  const char* group() const override { return "Ask"; }
  const char* example() const override { return "strobe blame out/trace.sqlite --of misses"; }

  void declare(CLI::App& app) override {
    app.add_option("trace", trace_, "Trace of several tenants, or a folder with one")->required();
    app.add_option("--of", of_, "Which frames: all, misses (of deadlines) or tail (slowest 1 % less the middle half)")
        ->check(CLI::IsMember({"all", "misses", "tail"}))
        ->capture_default_str();
    app.add_flag("--by-frame", by_frame_, "One row a frame and cell");
    app.add_flag("--counterfactual", counterfactual_, "What each would gain without each other, by replay");
    app.add_option("--figure", figure_, "With --counterfactual: mean or p99")
        ->check(CLI::IsMember({"mean", "p99"}))
        ->capture_default_str();
    app.add_option("--calibration", calibration_, "JSON file: how much classes of operations slow each other");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(const trace::Timeline timeline, open_any_trace(trace_));
    auto trace = analyze::tenant_trace(timeline);
    if (!trace) return std::move(trace).error().at(trace_);
    if (!calibration_.empty()) {
      STROBE_ASSIGN(const std::string text, read_file(calibration_));
      auto calibration = analyze::parse_calibration(text);
      if (!calibration) return std::move(calibration).error().at(calibration_);
      analyze::apply_calibration(*trace, *calibration);
    }
    const analyze::BlameAnalysis analysis = analyze::blame(std::move(*trace));
    const analyze::BlameOf of = of_ == "misses" ? analyze::BlameOf::kMisses
                                : of_ == "tail" ? analyze::BlameOf::kTail
                                                : analyze::BlameOf::kAll;
    if (counterfactual_) {
      const auto what = figure_ == "p99" ? analyze::ShapleyOf::kP99 : analyze::ShapleyOf::kMean;
      const analyze::ReplayModel model = analyze::replay_model(analysis);
      print_table(analyze::shapley_table(model, analyze::shapley(model, what), what), format);
    } else if (by_frame_) {
      print_table(analyze::blame_by_frame(analysis, of == analyze::BlameOf::kMisses), format);
    } else if (format == report::Format::kJson) {
      const std::string text = json_of(analysis, of).dump(2) + "\n";
      std::fwrite(text.data(), 1, text.size(), stdout);
    } else if (format == report::Format::kCsv) {
      print_table(analyze::blame_cells(analysis, of), format);
    } else {
      print_table(analyze::blame_matrix(analysis, of, false), format);
      if (of == analyze::BlameOf::kAll) std::putchar('\n');
      if (of == analyze::BlameOf::kAll)
        for (const std::string& sentence : analyze::blame_sentences(analysis)) std::printf("%s\n", sentence.c_str());
    }
    return 0;
  }

 private:
  static Json json_of(const analyze::BlameAnalysis& analysis, analyze::BlameOf of) {
    const analyze::BlameSum sum = analyze::sum_blame(analysis, of);
    const Table cells = analyze::blame_cells(analysis, of);
    Json json;
    Json& list = json["cells"] = Json::array();
    for (size_t row = 0; row < cells.row_count(); ++row) {
      const auto whole = [&](const char* column) { return std::llround(cells.number(row, column).value_or(0)); };
      list.push_back({{"tenant", cells.text(row, "tenant")},
                      {"by", cells.text(row, "by")},
                      {"resource", cells.text(row, "resource")},
                      {"ns", whole("ns")},
                      {"with_backlog_ns", whole("with_backlog_ns")},
                      {"absorbed_ns", whole("absorbed_ns")},
                      {"estimated", whole("estimated") != 0}});
    }
    double excess = 0, switching = 0, unknown = 0, delay = 0;
    Json& tenants = json["tenants"] = Json::array();
    for (size_t i = 0; i < sum.frames.size(); ++i) {
      excess += sum.excess_ns[i];
      switching += sum.switching_ns[i];
      delay += sum.delay_ns[i];
      for (const analyze::BlameCell& cell : sum.direct[i])
        if (cell.by == analyze::blamed(analysis.trace, analyze::Blamed::kUnknown)) unknown += cell.ns;
      tenants.push_back({{"tenant", analysis.trace.tenants[i].name},
                         {"frames", sum.frames[i]},
                         {"latency_ns", std::llround(sum.latency_ns[i])},
                         {"delay_ns", std::llround(sum.delay_ns[i])},
                         {"excess_ns", std::llround(sum.excess_ns[i])},
                         {"switching_ns", std::llround(sum.switching_ns[i])}});
    }
    json["delay_ns"] = std::llround(delay);
    json["excess_ns"] = std::llround(excess);
    json["switching_ns"] = std::llround(switching);
    json["unknown_ns"] = std::llround(unknown);
    Json& beside_idle = json["waited_beside_idle_core"] = Json::array();
    for (size_t i = 0; i < analysis.beside_idle_ns.size(); ++i)
      if (analysis.beside_idle_ns[i] > 0)
        beside_idle.push_back(
            {{"tenant", analysis.trace.tenants[i].name}, {"ns", std::llround(analysis.beside_idle_ns[i])}});
    Json& programs = json["programs"] = Json::array();
    for (const auto& [program, ns] : analysis.programs)
      programs.push_back({{"program", program}, {"ns", std::llround(ns)}});
    json["coverage"] = analysis.gates.known_state;
    json["because"] = analysis.gates.because();
    json["why_not"] = analysis.gates.reasons();
    json["exploratory"] = analysis.gates.exploratory();
    json["sentences"] = analyze::blame_sentences(analysis);
    return json;
  }

  std::string trace_, calibration_, of_ = "all", figure_ = "mean", format_ = "text";
  bool by_frame_ = false, counterfactual_ = false;
};

}  // namespace

std::unique_ptr<Command> make_blame_command() {
  return std::make_unique<BlameCommand>();
}

}  // namespace strobe::app
