#include <cstdio>
#include <string>

#include "base/file.h"
#include "collect/core_set.h"
#include "command.h"
#include "interrupt.h"
#include "tenants/calibration.h"

namespace strobe::app {
namespace {

class CalibrateCommand : public Command {
 public:
  const char* name() const override { return "calibrate"; }
  const char* summary() const override {
    return "Measure how kinds of work slow each other on this machine, for forecasts";
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
  }

  Result<int> run() override {
    if (cores_.empty()) cores_ = collect::allowed_core_list();
    STROBE_ASSIGN(options_.cores, collect::parse_cores(cores_));
    options_.stop = &stop_on_interrupt();
    STROBE_ASSIGN(const tenants::PairCalibration made, tenants::calibrate(options_));
    const std::string text = tenants::calibration_json(made);
    if (output_.empty()) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      return 0;
    }
    STROBE_TRY(write_file(output_, text));
    return 0;
  }

 private:
  std::string output_, cores_;
  tenants::CalibrationOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_calibrate_command() {
  return std::make_unique<CalibrateCommand>();
}

}  // namespace strobe::app
