#include <string>

#include "analyze/stats.h"
#include "ask.h"
#include "command.h"

namespace strobe::app {
namespace {

class StatsCommand : public Command {
 public:
  const char* name() const override { return "stats"; }
  const char* summary() const override { return "Count, time, quantiles and jitter of every name"; }
  const char* group() const override { return "Ask"; }
  const char* example() const override {
    return "strobe stats out/trace.sqlite --by operator --top 20 --filter '^aten::'";
  }

  void declare(CLI::App& app) override {
    app.add_option("trace", trace_, "Trace file or folder, or another tool's trace")->required();
    app.add_option("--by", by_, "What is counted: " + analyze::stats_by_choices())->capture_default_str();
    app.add_option("--top", options_.top, "At most so many rows, most time first; 0: all")->capture_default_str();
    app.add_option("--filter", filter_, "Names in which this extended regular expression is found");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(options_.by, analyze::parse_stats_by(by_));
    STROBE_ASSIGN(options_.filter, analyze::NameFilter::parse(filter_));
    const bool needs_all = options_.by == analyze::StatsBy::kStage;
    STROBE_ASSIGN(const trace::Timeline timeline,
                  open_any_trace(trace_, needs_all ? trace::StoreParts::kAll : trace::StoreParts::kRanges));
    print_table(analyze::stats(timeline, options_), format);
    return 0;
  }

 private:
  std::string trace_, format_ = "text";
  std::string by_ = "range", filter_;
  analyze::StatsOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_stats_command() {
  return std::make_unique<StatsCommand>();
}

}  // namespace strobe::app
