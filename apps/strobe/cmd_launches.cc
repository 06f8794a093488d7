#include <string>

#include "analyze/launches.h"
#include "ask.h"
#include "command.h"

namespace strobe::app {
namespace {

class LaunchesCommand : public Command {
 public:
  const char* name() const override { return "launches"; }
  const char* summary() const override { return "Launch calls; frames that wait for host or device"; }
  const char* group() const override { return "Ask"; }
  const char* example() const override { return "strobe launches trace.json.gz --by-frame"; }

  void declare(CLI::App& app) override {
    app.add_option("trace", trace_, "Trace file or folder, or another tool's trace")->required();
    app.add_option("--rules", rules_, "strobe, or hta: as HolisticTraceAnalysis counts")->capture_default_str();
    app.add_flag("--by-frame", by_frame_, "One row a frame: is it bound by the host or by the device");
    app.add_option("--frames", frames_,
                   "Frames are the ranges in whose names this extended regular expression is found (with --by-frame; "
                   "else: ProfilerStep#, or frames by number)");
    app.add_option("--by", by_, "stage or tenant: and the one that called (not with --by-frame)");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(const analyze::IdleRules rules, analyze::parse_idle_rules(rules_));
    analyze::FrameBoundOptions options;
    STROBE_ASSIGN(const analyze::WorkBy by, analyze::parse_work_by(by_));
    STROBE_ASSIGN(options.frames, analyze::NameFilter::parse(frames_));
    const bool by_frame = by_frame_ || options.frames.is_set();
    if (by != analyze::WorkBy::kNobody && (by_frame || rules == analyze::IdleRules::kHta))
      return usage_error("--by " + by_ + ": neither with frames nor with --rules hta");
    STROBE_ASSIGN(const trace::Timeline timeline, open_any_trace(trace_, trace::StoreParts::kOperations));
    print_table(by_frame ? analyze::frame_bound(timeline, options) : analyze::launches(timeline, rules, by), format);
    return 0;
  }

 private:
  std::string trace_, format_ = "text";
  std::string rules_ = "strobe", frames_, by_;
  bool by_frame_ = false;
};

}  // namespace

std::unique_ptr<Command> make_launches_command() {
  return std::make_unique<LaunchesCommand>();
}

}  // namespace strobe::app
