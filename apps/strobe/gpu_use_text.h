// What GPUs did during a run or recording, in its summary.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/table.h"

namespace strobe::app {

// analyze::gpu_use() as objects, one a device, by its columns; null what was not told.
nlohmann::ordered_json gpu_use_json(const Table& use);
// One of them as a line: "GPU 0 (NVIDIA H100 80GB HBM3): 87.5 % busy, 412 W, 1236 J, 2.47 J a frame, ...".
std::string gpu_use_line(const nlohmann::ordered_json& gpu);

}  // namespace strobe::app
