#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "analyze/layers.h"
#include "ask.h"
#include "command.h"
#include "inference_device.h"
#include "interrupt.h"
#include "models/model.h"

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
    app.add_option("--device-speed", device_,
                   "File of `strobe calibrate --engine`: what each layer would take by its operations and bytes");
    app.add_option("--network", network_, "With it: the network, where the trace's name of it cannot be opened");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(const trace::Timeline timeline, open_any_trace(trace_, trace::StoreParts::kRanges));
    Table table = fusion_ ? analyze::fusion(timeline) : analyze::layers(timeline);
    if (!device_.empty()) {
      if (fusion_) return usage_error("--device-speed predicts layers, not what --fusion shows");
      STROBE_ASSIGN(table, with_predictions(table, timeline));
    }
    print_table(table, format);
    return 0;
  }

 private:
  static std::string fact(const trace::Timeline& timeline, const char* key) {
    const auto found = timeline.facts.find(key);
    return found == timeline.facts.end() ? std::string() : found->second;
  }

  // The same rows with predicted_us, and measured time over it.
  Result<Table> with_predictions(const Table& measured, const trace::Timeline& timeline) const {
    const std::string engine = fact(timeline, "engine"), model = fact(timeline, "model");
    if (network_.empty() && model.empty())
      return usage_error("the trace does not name its network: --network").at(trace_);
    STROBE_ASSIGN(const models::Graph graph, models::open_graph(network_.empty() ? model : network_, {}));
    const std::string device = fact(timeline, "engine.device");  // only GPUs tell
    STROBE_ASSIGN(const measure::DeviceCalibration calibration,
                  device_calibration(engine, device.empty() ? "cpu" : device, "", 0, device_, 0, stop_on_interrupt()));
    const int64_t batch = std::max(1LL, std::atoll(fact(timeline, "pipeline.batch").c_str()));
    const std::vector<double> times = predict::layer_times_ms(graph, batch, inference_device(calibration));
    std::vector<Column> columns = measured.columns();
    columns.push_back(
        {"predicted_us", "by its operations and bytes on the calibrated device; 0: ends in another's kernel", 1});
    columns.push_back({"measured_over_predicted", "", 2});
    Table table(measured.title(), columns);
    table.coverage = measured.coverage;
    table.notes = measured.notes;
    double sum = 0, sum_measured = 0;
    for (size_t row = 0; row < measured.row_count(); ++row) {
      std::vector<Cell> cells = measured.rows()[row];
      const std::string name = measured.text(row, "layer");
      const auto found = std::find_if(graph.layers.begin(), graph.layers.end(),
                                      [&](const models::Layer& layer) { return layer.name == name; });
      const auto mean = measured.number(row, "mean_us");
      if (found == graph.layers.end()) {
        cells.insert(cells.end(), {Cell(), Cell()});
      } else {
        const double predicted = 1e3 * times[static_cast<size_t>(found - graph.layers.begin())];
        sum += predicted, sum_measured += mean.value_or(0);
        cells.emplace_back(predicted);
        cells.push_back(mean && predicted > 0 ? Cell(*mean / predicted) : Cell());
      }
      table.add_row(std::move(cells));
    }
    if (sum > 0 && calibration.device != "cpu")
      table.notes.push_back(
          fmt::format("all layers: measured {:.0f} us, predicted {:.0f} us on {}", sum_measured, sum, device));
    else if (sum > 0)
      table.notes.push_back(fmt::format("all layers: measured {:.0f} us, predicted {:.0f} us for {} thread{}",
                                        sum_measured, sum, calibration.threads, calibration.threads == 1 ? "" : "s"));
    return table;
  }

  std::string trace_, device_, network_, format_ = "text";
  bool fusion_ = false;
};

}  // namespace

std::unique_ptr<Command> make_layers_command() {
  return std::make_unique<LayersCommand>();
}

}  // namespace strobe::app
