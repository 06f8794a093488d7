#include <string>

#include "analyze/layers.h"
#include "ask.h"
#include "command.h"

namespace strobe::app {
namespace {

class LayersCommand : public Command {
 public:
  const char* name() const override { return "layers"; }
  const char* summary() const override { return "Time and cost of the network's layers"; }
  const char* group() const override { return "Ask"; }
  const char* example() const override { return "strobe layers out/openvino/trace.sqlite --fusion --format csv"; }

  void declare(CLI::App& app) override {
    app.add_option("trace", trace_, "Trace file or folder, or another tool's trace")->required();
    app.add_flag("--fusion", fusion_, "One row an executed kernel: which layers ended in it");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(const trace::Timeline timeline, open_any_trace(trace_, trace::StoreParts::kRanges));
    print_table(fusion_ ? analyze::fusion(timeline) : analyze::layers(timeline), format);
    return 0;
  }

 private:
  std::string trace_, format_ = "text";
  bool fusion_ = false;
};

}  // namespace

std::unique_ptr<Command> make_layers_command() {
  return std::make_unique<LayersCommand>();
}

}  // namespace strobe::app
