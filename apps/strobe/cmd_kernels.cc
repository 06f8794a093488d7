#include <string>

#include "analyze/kernel_metrics.h"
#include "analyze/kernels.h"
#include "analyze/replay_metrics.h"
#include "ask.h"
#include "command.h"

namespace strobe::app {
namespace {

class KernelsCommand : public Command {
 public:
  const char* name() const override { return "kernels"; }
  const char* summary() const override { return "What the device executed and how long it waited to start"; }
  const char* group() const override { return "Ask"; }
  const char* example() const override { return "strobe kernels trace.json.gz --by layer --top 20 --format json"; }

  void declare(CLI::App& app) override {
    app.add_option("trace", trace_, "Trace file or folder, or another tool's trace")->required();
    app.add_option("--by", by_,
                   "name; layer: and the innermost annotation or operator around the launch call; range: and the "
                   "innermost annotation there (of a CUDA graph's kernel, around the call that captured it); frame, "
                   "stage, tenant: and the one that it ran for")
        ->capture_default_str();
    app.add_flag("--metrics", metrics_,
                 "Instead: what the hardware counters said while each ran alone; a row a name, layer, ..., tenant");
    app.add_option("--replay-metrics", replayed_,
                   "Instead: the counters that `strobe record --gpu-replay-metrics` kept in this file, of the same "
                   "kernels (name, grid, order of launches)");
    app.add_option("--top", options_.top, "At most so many rows, most time first; 0: all")->capture_default_str();
    app.add_option("--filter", filter_, "Names in which this extended regular expression is found");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(options_.by, analyze::parse_kernels_by(by_));
    STROBE_ASSIGN(options_.filter, analyze::NameFilter::parse(filter_));
    if (metrics_ && !replayed_.empty()) return usage_error("--replay-metrics: is given instead of --metrics");
    STROBE_ASSIGN(const trace::Timeline timeline,
                  open_any_trace(trace_, metrics_ ? trace::StoreParts::kAll : trace::StoreParts::kOperations));
    if (!replayed_.empty()) {
      STROBE_ASSIGN(const trace::Timeline replayed, open_any_trace(replayed_));
      auto table = analyze::replay_metrics(timeline, replayed, options_);
      if (!table) return std::move(table.error().at(replayed_));
      print_table(*table, format);
      return 0;
    }
    print_table(metrics_ ? analyze::kernel_metrics(timeline, options_) : analyze::kernels(timeline, options_), format);
    return 0;
  }

 private:
  std::string trace_, format_ = "text";
  std::string by_ = "name", filter_, replayed_;
  analyze::KernelsOptions options_;
  bool metrics_ = false;
};

}  // namespace

std::unique_ptr<Command> make_kernels_command() {
  return std::make_unique<KernelsCommand>();
}

}  // namespace strobe::app
