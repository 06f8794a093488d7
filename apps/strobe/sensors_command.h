// One word after `strobe sensors`: a file of its own, sensors_<word>.cc, and a line in the list of cmd_sensors.cc.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "strobe/base/result.h"

namespace strobe::app {

class SensorsCommand {
 public:
  virtual ~SensorsCommand() = default;
  virtual const char* name() const = 0;
  virtual const char* summary() const = 0;  // one line, under 60 characters
  virtual void declare(CLI::App& app) = 0;
  // As Command::run().
  virtual Result<int> run() = 0;
};

std::unique_ptr<SensorsCommand> make_sensors_info();
std::unique_ptr<SensorsCommand> make_sensors_dump();
std::unique_ptr<SensorsCommand> make_sensors_convert();
std::unique_ptr<SensorsCommand> make_sensors_publish();
std::unique_ptr<SensorsCommand> make_sensors_replay();
std::unique_ptr<SensorsCommand> make_sensors_weather();
std::unique_ptr<SensorsCommand> make_sensors_evaluate();

}  // namespace strobe::app
