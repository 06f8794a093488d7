#include "analyze/gpu_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/cells.h"
#include "analyze/passes.h"
#include "base/gpu_words.h"
#include "base/tenant_words.h"

namespace strobe::analyze {

namespace words = gpu_words;

namespace {

constexpr double kWholeEnough = 0.95;  // of a stretch that samples must cover for its energy to be told
constexpr double kClockMoved = 0.02;

using Curve = std::vector<std::pair<int64_t, double>>;  // by time
struct Device {
  std::map<std::string, Curve, std::less<>> figures;
  const Curve* find(std::string_view name) const {
    const auto found = figures.find(name);
    return found == figures.end() || found->second.empty() ? nullptr : &found->second;
  }
};

// By device. Where several samplers saw one (a recording within a recording), the one that saw it most: their energies
// begin at different times.
std::map<int, Device> devices_of(const trace::Timeline& timeline) {
  const trace::Counters& counters = timeline.counters;
  std::map<trace::StringId, std::optional<std::pair<int, std::string>>> names;
  std::map<int, std::map<int32_t, std::pair<size_t, Device>>> seen;
  for (size_t i = 0; i < counters.size(); ++i) {
    auto [name, is_new] = names.try_emplace(counters.name[i]);
    if (is_new)
      if (const auto parsed = words::parse_counter(timeline.strings[counters.name[i]]))
        name->second = {parsed->first, std::string(parsed->second)};
    if (!name->second) continue;
    auto& [count, device] = seen[name->second->first][counters.pid[i]];
    device.figures[name->second->second].emplace_back(counters.time_ns[i], counters.value[i]);
    if (name->second->second == words::kPower || name->second->second == words::kBusy) ++count;
  }
  std::map<int, Device> devices;
  for (auto& [gpu, samplers] : seen) {
    const auto most = std::max_element(samplers.begin(), samplers.end(),
                                       [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
    if (most->second.first > 0) devices[gpu] = std::move(most->second.second);
  }
  return devices;
}

Curve within(const Curve* curve, const Stretch& stretch) {
  Curve points;
  if (curve == nullptr) return points;
  for (const auto& point : *curve)
    if (point.first >= stretch.start_ns && point.first <= stretch.end_ns) points.push_back(point);
  return points;
}
std::optional<double> mean(const Curve& points) {
  if (points.empty()) return std::nullopt;
  double sum = 0;
  for (const auto& [time, value] : points) sum += value;
  return sum / static_cast<double>(points.size());
}
std::optional<double> highest(const Curve& points) {
  if (points.empty()) return std::nullopt;
  return std::max_element(points.begin(), points.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->second;
}

double value_at(const Curve& curve, int64_t time) {
  const auto after = std::lower_bound(curve.begin(), curve.end(), time,
                                      [](const auto& point, int64_t at) { return point.first < at; });
  if (after == curve.end()) return curve.back().second;
  if (after == curve.begin() || after->first == time) return after->second;
  const auto before = std::prev(after);
  const double share = static_cast<double>(time - before->first) / static_cast<double>(after->first - before->first);
  return before->second + share * (after->second - before->second);
}

struct Energy {
  std::optional<double> joules, mean_w;
};
// cumulated: joules up to each time. The part of the stretch that it covers must be nearly all of it.
Energy energy_in(const Curve& cumulated, const Stretch& stretch) {
  if (cumulated.size() < 2) return {};
  const int64_t from = std::max(stretch.start_ns, cumulated.front().first);
  const int64_t to = std::min(stretch.end_ns, cumulated.back().first);
  if (to <= from) return {};
  const double joules = value_at(cumulated, to) - value_at(cumulated, from);
  const auto covered = static_cast<double>(to - from);
  Energy energy{std::nullopt, joules * 1e9 / covered};
  if (covered >= kWholeEnough * static_cast<double>(stretch.end_ns - stretch.start_ns)) energy.joules = joules;
  return energy;
}
Curve area_under(const Curve& power) {
  Curve cumulated;
  double joules = 0;
  for (size_t i = 0; i < power.size(); ++i) {
    if (i > 0)
      joules +=
          (power[i].second + power[i - 1].second) / 2 * static_cast<double>(power[i].first - power[i - 1].first) / 1e9;
    cumulated.emplace_back(power[i].first, joules);
  }
  return cumulated;
}

Energy energy_of(int gpu, const Device& device, const Stretch& stretch, Table& table) {
  constexpr double kStep_s = 0.1, kWorthSaying = 0.02;
  if (const Curve* counter = device.find(words::kEnergy)) {
    const Energy energy = energy_in(*counter, stretch);
    const double seconds = static_cast<double>(stretch.end_ns - stretch.start_ns) / 1e9;
    if (energy.joules && seconds > 0 && kStep_s / seconds > kWorthSaying)
      table.notes.push_back(fmt::format(
          "GPU {}: {:.2g} s are short for the energy counter, which may move only each 0.1 s: up to {:.0f} % off", gpu,
          seconds, 100 * std::min(1.0, kStep_s / seconds)));
    if (energy.mean_w) return energy;
  }
  const Curve* power = device.find(words::kPower);
  return power == nullptr ? Energy{} : energy_in(area_under(*power), stretch);
}

// Any number may stand in a trace.
uint64_t bits_of(double value) {
  constexpr double kMostBits = 9007199254740992.0;  // 2^53
  return value >= 0 && value < kMostBits ? static_cast<uint64_t>(value) : 0;
}

struct Clocks {
  std::optional<double> median, low, high, throttled;
  std::string reasons;
};
Clocks clocks_of(const Device& device, const Stretch& stretch) {
  Clocks clocks;
  const Curve reasons = within(device.find(words::kClockReasons), stretch);
  std::map<int64_t, uint64_t> at;  // a look gives all its figures one time
  std::map<uint64_t, size_t> by_bit;
  size_t working = 0, throttled = 0;
  for (const auto& [time, value] : reasons) {
    const uint64_t bits = bits_of(value);
    at[time] = bits;
    if ((bits & words::kIdle) != 0) continue;
    ++working;
    throttled += (bits & words::kThrottled) != 0 ? 1 : 0;
    for (uint64_t left = bits & words::kThrottled; left != 0; left &= left - 1) ++by_bit[left & ~(left - 1)];
  }
  if (working > 0) clocks.throttled = static_cast<double>(throttled) / static_cast<double>(working);
  for (const auto& [bit, count] : by_bit)
    clocks.reasons += fmt::format("{}{} {:.0f} %", clocks.reasons.empty() ? "" : ", ", words::clock_reasons_text(bit),
                                  100 * static_cast<double>(count) / static_cast<double>(working));
  std::vector<double> mhz;
  for (const auto& [time, value] : within(device.find(words::kSmClock), stretch)) {
    const auto why = at.find(time);
    if (why == at.end() || (why->second & words::kIdle) == 0) mhz.push_back(value);
  }
  if (mhz.empty()) return clocks;
  std::sort(mhz.begin(), mhz.end());
  clocks.median = mhz[mhz.size() / 2];
  clocks.low = mhz.front(), clocks.high = mhz.back();
  return clocks;
}

// A line for each GPU instance of a device under MIG: what the table's row, of the whole device, cannot say.
void note_instances(int gpu, const Device& device, const Stretch& stretch, Table& table) {
  constexpr std::string_view kPrefix = "mig.";
  for (const auto& [name, curve] : device.figures) {
    const size_t end = name.find('.', kPrefix.size());
    if (!name.starts_with(kPrefix) || end == std::string::npos || name.substr(end + 1) != words::kMemoryUsed) continue;
    const std::string instance = name.substr(0, end + 1);
    const auto most = highest(within(&curve, stretch));
    if (!most) continue;
    std::string line = fmt::format("GPU {}, MIG instance {}: {:.0f} MiB used at most", gpu,
                                   name.substr(kPrefix.size(), end - kPrefix.size()), *most / (1 << 20));
    if (const auto busy = mean(within(device.find(instance + words::kGpmSmBusy), stretch)))
      line += fmt::format(", its SMs at work {:.1f} %", *busy);
    table.notes.push_back(std::move(line));
  }
}

}  // namespace

Stretch measured_stretch(const trace::Timeline& timeline) {
  if (const PipelineRun run = pipeline_run(timeline); run.has_run && run.end_ns > run.start_ns)
    return {run.start_ns, run.end_ns, run.finished};
  const int64_t window = timeline.strings.find(tenant_words::kWindow);
  const int64_t domain = timeline.strings.find(tenant_words::kWindowDomain);
  for (size_t i = 0; window != trace::kNone && i < timeline.ranges.size(); ++i)
    if (timeline.ranges.name[i] == window && timeline.ranges.domain_of(i) == domain)
      return {timeline.ranges.start_ns[i], timeline.ranges.end_ns[i], 0};
  return {0, timeline.duration_ns, 0};
}

Table gpu_use(const trace::Timeline& timeline, const Stretch& stretch) {
  Table table("Use of the GPUs",
              {{"gpu", "number of the device", 0},
               {"name", "", 0},
               {"samples", "readings of its power or use in the stretch", 0},
               {"busy_percent", "of the time some kernel ran; not how full the device was", 1},
               {"memory_busy_percent", "of the time its memory was read or written", 1},
               {"memory_used_mib", "most that was used of it, by everyone", 0},
               {"mean_w", "mean power of the whole device", 1},
               {"energy_j", "of the whole device, idle time and other programs included", 1},
               {"energy_j_per_frame", "energy_j / finished frames", 3},
               {"sm_clock_mhz", "median while it was not idle", 0},
               {"sm_clock_low_mhz", "lowest while it was not idle", 0},
               {"sm_clock_high_mhz", "highest while it was not idle", 0},
               {"throttled_share", "of the samples that were not idle: power or heat held the clocks down", 3},
               {"throttled_by", "what did, with its share of the same", 0, true},
               {"temperature_c", "highest", 0}});
  for (const auto& [gpu, device] : devices_of(timeline)) {
    const Curve power = within(device.find(words::kPower), stretch);
    const Curve busy = within(device.find(words::kBusy), stretch);
    const Energy energy = energy_of(gpu, device, stretch, table);
    // A short stretch may lie between two samples: its energy is known all the same.
    if (power.empty() && busy.empty() && !energy.mean_w) continue;
    const Clocks clocks = clocks_of(device, stretch);
    const auto name = timeline.facts.find(fmt::format("gpu.{}.name", gpu));
    std::optional<double> memory = highest(within(device.find(words::kMemoryUsed), stretch)), per_frame;
    if (memory) *memory /= 1 << 20;
    if (energy.joules && stretch.frames > 0) per_frame = *energy.joules / static_cast<double>(stretch.frames);
    table.add_row({int64_t{gpu}, cell(name == timeline.facts.end() ? std::string() : name->second),
                   static_cast<int64_t>(std::max(power.size(), busy.size())), cell(mean(busy)),
                   cell(mean(within(device.find(words::kMemoryBusy), stretch))), cell(memory), cell(energy.mean_w),
                   cell(energy.joules), cell(per_frame), cell(clocks.median), cell(clocks.low), cell(clocks.high),
                   cell(clocks.throttled), cell(clocks.reasons),
                   cell(highest(within(device.find(words::kTemperature), stretch)))});
    if (clocks.high && *clocks.high - *clocks.low > kClockMoved * *clocks.high)
      table.notes.push_back(
          fmt::format("GPU {}: its SM clock moved between {:.0f} and {:.0f} MHz while it worked ({:.0f} %): times of "
                      "this run are those of changing clocks (--maximize_clocks holds them)",
                      gpu, *clocks.low, *clocks.high, 100 * (*clocks.high - *clocks.low) / *clocks.high));
    note_instances(gpu, device, stretch, table);
    if (const auto lost = timeline.facts.find(fmt::format("gpu.{}.lost", gpu)); lost != timeline.facts.end())
      table.notes.push_back(fmt::format("GPU {} was lost while it was sampled: {}", gpu, lost->second));
  }
  return table;
}

Table gpu_samples(const trace::Timeline& timeline) {
  Table table("Samples of the GPUs", {{"time", "s", 3},
                                      {"gpu_util", "percent", 1},
                                      {"mem_util", "percent", 1},
                                      {"mem_used_MB", "2^20 bytes", 1},
                                      {"power_W", "", 3},
                                      {"gpu", "number of the device", 0},
                                      {"sm_clock_MHz", "", 0},
                                      {"mem_clock_MHz", "", 0},
                                      {"temperature_C", "", 0},
                                      {"clock_event_reasons", "in words", 0, true}});
  for (const auto& one : devices_of(timeline)) {
    const auto& gpu = one.first;
    const auto& device = one.second;
    // Any of these is there once a look.
    const Curve* looks = device.find(words::kPower);
    for (const char* other : {words::kMemoryUsed, words::kSmClock, words::kBusy})
      if (looks == nullptr) looks = device.find(other);
    if (looks == nullptr) continue;
    int64_t before = INT64_MIN;
    const auto at = [&](const char* name, int64_t time) -> std::optional<double> {
      const Curve* curve = device.find(name);
      if (curve == nullptr) return std::nullopt;
      const auto found = std::lower_bound(curve->begin(), curve->end(), time,
                                          [](const auto& point, int64_t of) { return point.first < of; });
      if (found == curve->end() || found->first != time) return std::nullopt;
      return found->second;
    };
    const auto since = [&](const char* name, int64_t time) -> std::optional<double> {
      const Curve* curve = device.find(name);
      if (curve == nullptr) return std::nullopt;
      const auto first = std::upper_bound(curve->begin(), curve->end(), before,
                                          [](int64_t of, const auto& point) { return of < point.first; });
      double sum = 0, count = 0;
      for (auto point = first; point != curve->end() && point->first <= time; ++point) sum += point->second, ++count;
      if (count > 0) return sum / count;
      if (first == curve->begin()) return std::nullopt;
      return std::prev(first)->second;
    };
    for (const auto& [time, value] : *looks) {
      std::optional<double> memory = at(words::kMemoryUsed, time);
      if (memory) *memory /= 1 << 20;
      const auto reasons = at(words::kClockReasons, time);
      table.add_row({static_cast<double>(time) / 1e9, cell(since(words::kBusy, time)),
                     cell(since(words::kMemoryBusy, time)), cell(memory), cell(at(words::kPower, time)), int64_t{gpu},
                     cell(at(words::kSmClock, time)), cell(at(words::kMemoryClock, time)),
                     cell(at(words::kTemperature, time)),
                     cell(words::clock_reasons_text(bits_of(reasons.value_or(0))))});
      before = time;
    }
  }
  return table;
}

}  // namespace strobe::analyze
