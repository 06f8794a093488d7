#include "gpu/timeline/replay_table.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "base/gpu_words.h"
#include "gpu/replay_choice.h"
#include "gpu/timeline/log_timeline.h"

namespace strobe::gpu {
namespace {

std::string sizes_text(const std::array<uint32_t, 3>& sizes) {
  return std::to_string(sizes[0]) + "," + std::to_string(sizes[1]) + "," + std::to_string(sizes[2]);
}

}  // namespace

void ReplayTable::add(int32_t pid, const Record& record) {
  if (const auto* definition = std::get_if<TextDefinition>(&record)) {
    texts_[{pid, definition->id}] = definition->text;
  } else if (const auto* kernel = std::get_if<ReplayedKernel>(&record)) {
    kernels_.push_back({pid, *kernel, demangled(texts_[{pid, kernel->name.id}]), {}});
  } else if (const auto* value = std::get_if<ReplayedValue>(&record)) {
    // They follow their kernel.
    if (!kernels_.empty() && kernels_.back().pid == pid && kernels_.back().record.order == value->order)
      kernels_.back().values[texts_[{pid, value->figure.id}]] = value->value;
  }
}

Table ReplayTable::table(const std::map<std::string, std::string>& facts) const {
  std::vector<Column> columns{{gpu_words::kReplayPid, "process", 0},
                              {gpu_words::kReplayDevice, "device, as the process numbers it", 0},
                              {gpu_words::kReplayLaunch, "order of the launch in its process, from 1", 0},
                              {gpu_words::kReplayKernel, "kernel; empty: its launch could not be matched"},
                              {gpu_words::kReplayGrid, "blocks"},
                              {gpu_words::kReplayBlock, "threads of a block"}};
  std::set<std::string> seen;
  for (const Kernel& kernel : kernels_)
    for (const auto& [figure, value] : kernel.values) seen.insert(figure);
  std::vector<std::string> figures;
  for (const ReplayFigure& figure : replay_figures()) {
    if (seen.count(figure.name) == 0) continue;
    figures.emplace_back(figure.name);
    columns.push_back({figure.name, std::string(figure.words) + " (" + figure.metrics.front() + ")", 2});
  }
  Table table(gpu_words::kReplayTitle, columns);
  double device_ns = 0;
  for (const Kernel& kernel : kernels_) {
    std::vector<Cell> row{int64_t{kernel.pid},
                          static_cast<int64_t>(kernel.record.device),
                          static_cast<int64_t>(kernel.record.order),
                          kernel.name,
                          sizes_text(kernel.record.grid),
                          sizes_text(kernel.record.block)};
    for (const std::string& figure : figures) {
      const auto value = kernel.values.find(figure);
      const bool has = value != kernel.values.end() && std::isfinite(value->second);
      row.emplace_back();
      if (has) row.back() = value->second;
      if (has && figure == "time_ns") device_ns += value->second;
    }
    table.add_row(std::move(row));
  }
  const auto nameless =
      std::count_if(kernels_.begin(), kernels_.end(), [](const Kernel& kernel) { return kernel.name.empty(); });
  if (nameless > 0)
    table.notes.push_back(std::to_string(nameless) + (nameless == 1 ? " kernel has" : " kernels have") +
                          " no name: launched while another thread's launch was under way, or between launches and "
                          "counters that differ in number (graphs)");
  double launch_ns = 0;
  for (const auto& [key, value] : facts)
    if (key.starts_with("gpu.replay.launch_ns.")) launch_ns += std::strtod(value.c_str(), nullptr);
  for (const auto& [key, value] : facts)
    if (key.starts_with("gpu.replay.") && key.find(".passes.") != std::string::npos) {
      table.notes.push_back("each kernel ran " + value + (value == "1" ? " time" : " times") +
                            " alone, at the clocks that the profiler sets: no time here is one of the program");
      break;
    }
  if (device_ns > 0 && launch_ns > 0)
    table.notes.push_back("launches took " + std::to_string(static_cast<int64_t>(launch_ns / 1e6)) + " ms for " +
                          std::to_string(static_cast<int64_t>(device_ns / 1e6)) +
                          " ms of kernels (what the replay costs; how much memory it saves, CUPTI does not tell)");
  return table;
}

}  // namespace strobe::gpu
