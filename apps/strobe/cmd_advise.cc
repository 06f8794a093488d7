#include <string>

#include "analyze/rules.h"
#include "ask.h"
#include "command.h"

namespace strobe::app {
namespace {

class AdviseCommand : public Command {
 public:
  const char* name() const override { return "advise"; }
  const char* summary() const override { return "What could be faster: findings with next steps"; }
  const char* group() const override { return "Ask"; }
  const char* example() const override { return "strobe advise trace.json.gz"; }

  void declare(CLI::App& app) override {
    app.add_option("trace", trace_, "Trace file or folder, or another tool's trace")->required();
    app.add_option("--gap-ns", options_.gap_ns, "Idle time of a device from which on it is a finding")
        ->check(CLI::Range(int64_t{0}, kMostNs))
        ->capture_default_str();
    app.add_option("--small-kernel-ns", options_.small_kernel_ns, "Kernels that take less are small")
        ->check(CLI::Range(int64_t{0}, kMostNs))
        ->capture_default_str();
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(const trace::Timeline timeline, open_any_trace(trace_));
    print_table(analyze::rules(timeline, options_), format);
    return 0;
  }

 private:
  std::string trace_, format_ = "text";
  analyze::RulesOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_advise_command() {
  return std::make_unique<AdviseCommand>();
}

}  // namespace strobe::app
