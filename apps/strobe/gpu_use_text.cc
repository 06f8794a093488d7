#include "gpu_use_text.h"

#include <fmt/format.h>

#include <variant>

namespace strobe::app {

using Json = nlohmann::ordered_json;

Json gpu_use_json(const Table& use) {
  Json gpus = Json::array();
  for (const auto& row : use.rows()) {
    Json gpu;
    for (size_t i = 0; i < row.size(); ++i) {
      Json& value = gpu[use.columns()[i].name];
      if (const auto* count = std::get_if<int64_t>(&row[i])) value = *count;
      if (const auto* measure = std::get_if<double>(&row[i])) value = *measure;
      if (const auto* text = std::get_if<std::string>(&row[i])) value = *text;
    }
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::string gpu_use_line(const Json& gpu) {
  std::string line = fmt::format("GPU {}", gpu["gpu"].get<int64_t>());
  if (gpu["name"].is_string()) line += fmt::format(" ({})", gpu["name"].get<std::string>());
  std::string rest;
  const auto add = [&](const char* key, fmt::format_string<double> text, double factor = 1) {
    if (!gpu[key].is_number()) return;
    rest += (rest.empty() ? ": " : ", ") + fmt::format(text, factor * gpu[key].get<double>());
  };
  add("busy_percent", "{:.1f} % busy");
  add("mean_w", "{:.1f} W");
  add("energy_j", "{:.1f} J");
  add("energy_j_per_frame", "{:.3f} J a frame");
  add("memory_used_mib", "{:.0f} MiB used at most");
  add("sm_clock_mhz", "{:.0f} MHz");
  add("temperature_c", "{:.0f} degrees at most");
  if (gpu["throttled_share"].is_number() && gpu["throttled_share"].get<double>() > 0)
    rest += fmt::format(", throttled {:.1f} % of its working time ({})", 100 * gpu["throttled_share"].get<double>(),
                        gpu["throttled_by"].get<std::string>());
  return line + rest;
}

}  // namespace strobe::app
