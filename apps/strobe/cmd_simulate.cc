#include <cstdio>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "command.h"
#include "simulate/device.h"
#include "simulate/scenario.h"
#include "simulate/truth.h"
#include "simulate/write_trace.h"
#include "trace/store.h"

namespace strobe::app {
namespace {

class SimulateCommand : public Command {
 public:
  const char* name() const override { return "simulate"; }
  const char* summary() const override { return "Simulates tenants on a device: a trace and the truth of it"; }
  const char* group() const override { return "Run"; }
  const char* example() const override { return "strobe simulate scenario.yaml -o out && strobe blame out"; }

  void declare(CLI::App& app) override {
    app.add_option("scenario", scenario_, "YAML file: tenants, resources, laws (docs/simulate.md)")->required();
    app.add_option("-o,--output", output_, "Folder for trace.sqlite and truth.json")->required();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const std::string yaml, read_file(scenario_));
    auto scenario = simulate::parse_scenario(yaml);
    if (!scenario) return std::move(scenario).error().at(scenario_);
    STROBE_TRY(make_writable_folder(output_));
    const std::filesystem::path folder = output_;
    const simulate::Log log = simulate::simulate(*scenario);
    STROBE_TRY(trace::write_store(simulate::timeline_of(*scenario, log), folder / "trace.sqlite"));
    STROBE_TRY(write_file(folder / "truth.json", simulate::truth_json(*scenario, log)));
    std::printf("%zu frames, %zu operations: %s, %s\n", log.frames.size(), log.operations.size(),
                (folder / "trace.sqlite").c_str(), (folder / "truth.json").c_str());
    return 0;
  }

 private:
  std::string scenario_, output_;
};

}  // namespace

std::unique_ptr<Command> make_simulate_command() {
  return std::make_unique<SimulateCommand>();
}

}  // namespace strobe::app
