#include <cstdio>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "collect/core_set.h"
#include "command.h"
#include "interrupt.h"
#include "measure/device_calibration.h"
#include "tenants/calibration.h"

namespace strobe::app {
namespace {

class CalibrateCommand : public Command {
 public:
  const char* name() const override { return "calibrate"; }
  const char* summary() const override {
    return "Measure this machine: how kinds of work slow each other, or an engine's speed";
  }
  const char* group() const override { return "Machine"; }
  const char* example() const override {
    return "strobe calibrate -o machine.json && strobe forecast a.sqlite b.sqlite --calibration machine.json";
  }

  void declare(CLI::App& app) override {
    app.add_option("-o,--output", output_, "Where the figures go; without it they are printed");
    app.add_option("--cores", cores_, "The two cores to measure on; without it the first two that are allowed");
    app.add_option("--rounds", options_.rounds, "Measurements of each pair, of which the median counts")
        ->check(CLI::Range(1, 100))
        ->capture_default_str();
    app.add_option("--engine", engine_, "Instead: how fast this engine computes and moves bytes, for predictions");
    app.add_option("--device", device_, "Where the engine runs: cpu, or cuda:N")->capture_default_str();
    app.add_option("--threads", threads_, "Of the engine; 0: the cores that this process may use")
        ->check(CLI::Range(0, 1024))
        ->capture_default_str();
    app.add_option("--seconds", seconds_, "That the engine is measured for")
        ->check(CLI::Range(1.0, 600.0))
        ->capture_default_str();
  }

  Result<int> run() override {
    // Measuring takes a while: not for nothing.
    const std::filesystem::path folder = std::filesystem::path(output_).parent_path();
    std::error_code ignored;
    if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
      return usage_error("-o '" + output_ + "': there is no folder '" + folder.string() + "'");
    if (!engine_.empty()) {
      STROBE_ASSIGN(const measure::DeviceCalibration found,
                    measure::calibrate_device(engine_, device_, threads_, seconds_, &stop_on_interrupt()));
      return put(measure::calibration_json(found));
    }
    if (device_ != "cpu") return usage_error("--device is of --engine, which is not given");
    STROBE_ASSIGN(options_.cores, collect::parse_cores(cores_.empty() ? collect::allowed_core_list() : cores_));
    if (!cores_.empty() && options_.cores.size() > 2)
      return usage_error("--cores '" + cores_ + "': expected two cores");
    options_.stop = &stop_on_interrupt();
    STROBE_ASSIGN(const tenants::PairCalibration made, tenants::calibrate(options_));
    return put(tenants::calibration_json(made));
  }

 private:
  Result<int> put(const std::string& text) const {
    if (output_.empty()) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      return 0;
    }
    STROBE_TRY(write_file(output_, text));
    return 0;
  }

  std::string output_, cores_, engine_, device_ = "cpu";
  int threads_ = 0;
  double seconds_ = 30;
  tenants::CalibrationOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_calibrate_command() {
  return std::make_unique<CalibrateCommand>();
}

}  // namespace strobe::app
