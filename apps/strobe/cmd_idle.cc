#include <string>

#include "analyze/idle.h"
#include "ask.h"
#include "command.h"

namespace strobe::app {
namespace {

class IdleCommand : public Command {
 public:
  const char* name() const override { return "idle"; }
  const char* summary() const override { return "A device's compute, other and idle time, and why it idles"; }
  const char* group() const override { return "Ask"; }
  const char* example() const override { return "strobe idle trace.json.gz --threshold-ns 30000 --format json"; }

  void declare(CLI::App& app) override {
    app.add_option("trace", trace_, "Trace file or folder, or another tool's trace")->required();
    app.add_option("--threshold-ns", options_.threshold_ns, "Gaps below it are kernel wait")
        ->check(CLI::Range(int64_t{0}, kMostNs))
        ->capture_default_str();
    app.add_option("--rules", rules_, "strobe, or hta: as HolisticTraceAnalysis counts")->capture_default_str();
    app.add_flag("--work", work_, "Instead: how computation, communication and copies overlap");
    app.add_option("--by", by_, "Instead: stage or tenant: what each did, and the idle time that ended with its work");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(options_.rules, analyze::parse_idle_rules(rules_));
    STROBE_ASSIGN(const analyze::WorkBy by, analyze::parse_work_by(by_));
    const bool owned = by != analyze::WorkBy::kNobody;
    if (owned && (work_ || options_.rules == analyze::IdleRules::kHta))
      return usage_error("--by " + by_ + ": neither with --work nor with --rules hta");
    STROBE_ASSIGN(const trace::Timeline timeline, open_any_trace(trace_, trace::StoreParts::kOperations));
    print_table(work_   ? analyze::work_types(timeline, options_)
                : owned ? analyze::idle_by(timeline, options_, by)
                        : analyze::idle(timeline, options_),
                format);
    return 0;
  }

 private:
  std::string trace_, format_ = "text";
  std::string rules_ = "strobe", by_;
  bool work_ = false;
  analyze::IdleOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_idle_command() {
  return std::make_unique<IdleCommand>();
}

}  // namespace strobe::app
