// Flags of the words that read a folder of measurements.
#pragma once

#include <CLI/CLI.hpp>

#include "predict/measurements.h"

namespace strobe::app {

inline void declare_row_filter(CLI::App& app, predict::RowFilter& filter) {
  app.add_option("--stage", filter.stage, "Measurements of this stage, where there are several: training, inference");
  app.add_option("--engine", filter.engine, "Measurements of this engine, where there are several");
  app.add_option("--device", filter.device, "Measurements on this device, where there are several: cpu, cuda:0");
}

}  // namespace strobe::app
