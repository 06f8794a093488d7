#include "analyze/compare.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ask.h"
#include "bench/results.h"
#include "bench_compare.h"
#include "command.h"

namespace strobe::app {
namespace {

using Json = nlohmann::ordered_json;

Json side_json(const analyze::ComparedSide& side) {
  return {{"n", side.n},        {"mean", side.mean_ns}, {"std", side.std_ns}, {"min", side.min_ns},
          {"p50", side.p50_ns}, {"p90", side.p90_ns},   {"p99", side.p99_ns}, {"max", side.max_ns}};
}

// Times are nanoseconds.
std::string json_of(const analyze::Comparison& comparison) {
  Json out;
  out["metric"] = comparison.metric;
  out["statistic"] = analyze::statistic_name(comparison.statistic);
  out["a"] = side_json(comparison.a);
  out["b"] = side_json(comparison.b);
  out["ratio"] = comparison.ratio ? Json(*comparison.ratio) : Json();
  out["ci95"] = Json();
  if (comparison.interval) out["ci95"] = {comparison.interval->low, comparison.interval->high};
  out["verdict"] = comparison.verdict;
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

class CompareCommand : public Command {
 public:
  const char* name() const override { return "compare"; }
  const char* summary() const override { return "Is B slower than A, and how sure is that"; }
  const char* group() const override { return "Ask"; }
  const char* example() const override {
    return "strobe compare before.sqlite after.sqlite --metric frame --fail-above 1.05";
  }

  void declare(CLI::App& app) override {
    app.add_option("a", a_, "Trace A, the one to compare with; or a folder of strobe bench")->required();
    app.add_option("b", b_, "Trace B, or another such folder")->required();
    app.add_option(
        "--metric", metric_,
        "range:NAME, operator:NAME, kernel:NAME, api:NAME, memcpy:NAME, frame (latency) or end_to_end (from one "
        "finished frame to the next); without it: the largest changes of all names. Of benchmarks: LEVEL or "
        "LEVEL:STAGE, without it all stages");
    app.add_option("--statistic", statistic_, "Of which the ratio B / A is: mean, p50 or p99")->capture_default_str();
    app.add_option("--fail-above", fail_above_,
                   "Exit with 1 when the whole 95 % interval of the ratio lies above this");
    app.add_option("--top", options_.top, "Rows of the largest changes; 0: all")->capture_default_str();
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(options_.statistic, analyze::parse_statistic(statistic_));
    if (bench::is_run(a_) && bench::is_run(b_))
      return compare_benchmarks({.a = a_,
                                 .b = b_,
                                 .metric = metric_,
                                 .statistic = options_.statistic,
                                 .fail_above = fail_above_.value_or(0),
                                 .format = format});
    if (fail_above_ && (!(*fail_above_ > 0) || std::isinf(*fail_above_)))
      return usage_error(fmt::format("--fail-above {:g}: expected a ratio above 0", *fail_above_));
    if (metric_.empty() && fail_above_) return usage_error("--fail-above needs --metric");
    STROBE_ASSIGN(const trace::Timeline a, open_any_trace(a_));
    STROBE_ASSIGN(const trace::Timeline b, open_any_trace(b_));
    if (metric_.empty()) {
      print_table(analyze::largest_changes(a, b, options_), format);
      return 0;
    }
    auto of_a = analyze::samples_of(a, metric_);
    if (!of_a) return std::move(of_a.error()).at(a_);
    auto of_b = analyze::samples_of(b, metric_);
    if (!of_b) return std::move(of_b.error()).at(b_);
    const analyze::Comparison comparison = analyze::compare(metric_, *of_a, *of_b, options_);
    if (fail_above_ && !comparison.interval)
      return bad_data(fmt::format("too few samples to check --fail-above: {} and {}, it takes {} on either side",
                                  comparison.a.n, comparison.b.n, analyze::least_samples(options_.statistic)));
    if (format == report::Format::kJson) {
      const std::string text = json_of(comparison);
      std::fwrite(text.data(), 1, text.size(), stdout);
    } else {
      print_table(analyze::comparison_table(comparison), format);
    }
    return fail_above_ && comparison.interval->low > *fail_above_ ? 1 : 0;
  }

 private:
  std::string a_, b_, metric_, statistic_ = "mean", format_ = "text";
  std::optional<double> fail_above_;
  analyze::CompareOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_compare_command() {
  return std::make_unique<CompareCommand>();
}

}  // namespace strobe::app
