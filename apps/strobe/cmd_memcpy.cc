#include <string>

#include "analyze/memcpy.h"
#include "ask.h"
#include "command.h"

namespace strobe::app {
namespace {

class MemcpyCommand : public Command {
 public:
  const char* name() const override { return "memcpy"; }
  const char* summary() const override { return "Copies: bytes, speed, memory, overlap with kernels"; }
  const char* group() const override { return "Ask"; }
  const char* example() const override { return "strobe memcpy trace.json.gz"; }

  void declare(CLI::App& app) override {
    app.add_option("trace", trace_, "Trace file or folder, or another tool's trace")->required();
    app.add_flag("--overlap", overlap_, "One row a device: time of kernels, of copies, and of both together");
    app.add_option("--by", by_, "stage or tenant: and the one whose copies they are");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(const analyze::WorkBy by, analyze::parse_work_by(by_));
    STROBE_ASSIGN(const trace::Timeline timeline, open_any_trace(trace_, trace::StoreParts::kOperations));
    print_table(overlap_ ? analyze::memcpy_overlap(timeline, by) : analyze::memcpy_table(timeline, by), format);
    return 0;
  }

 private:
  std::string trace_, format_ = "text", by_;
  bool overlap_ = false;
};

}  // namespace

std::unique_ptr<Command> make_memcpy_command() {
  return std::make_unique<MemcpyCommand>();
}

}  // namespace strobe::app
