#include "bench/machine_watch.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "bench/figures.h"
#include "bench/plan.h"
#include "bench/tool.h"

namespace strobe::bench {
namespace {

namespace fs = std::filesystem;

constexpr auto kPeriod = std::chrono::milliseconds(500);
constexpr int kGpuEvery = 4;  // periods
constexpr double kMicro = 1e-6, kKhzPerMhz = 1000;

int64_t now_ms() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::milliseconds(1);
}

std::optional<uint64_t> number_of(const fs::path& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (!(file >> value)) return std::nullopt;
  return value;
}

// Of all processors that tell it.
std::vector<double> clocks_mhz(const fs::path& root) {
  std::vector<double> out;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(root / "sys/devices/system/cpu", failed))
    if (const auto khz = number_of(entry.path() / "cpufreq/scaling_cur_freq"))
      out.push_back(static_cast<double>(*khz) / kKhzPerMhz);
  if (!out.empty()) return out;
  std::ifstream file(root / "proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("cpu MHz"))
      if (const size_t colon = line.find(':'); colon != std::string::npos)
        out.push_back(std::strtod(line.c_str() + colon + 1, nullptr));
  return out;
}

double number_in(const std::vector<std::string>& row, size_t at) {
  return at < row.size() ? std::strtod(row[at].c_str(), nullptr) : 0;
}

}  // namespace

MachineWatch::MachineWatch(std::vector<int> gpus, fs::path root) : root_(std::move(root)) {
  for (const int id : gpus) {
    Gpu gpu;
    gpu.id = id;
    gpus_.push_back(std::move(gpu));
  }
  find_domains();
  if (!find_program("nvidia-smi")) {
    gpu_answers_ = false;
    no_gpu_ = "nvidia-smi was not found";
  }
  thread_ = std::thread([this] { watch(); });
}

MachineWatch::~MachineWatch() {
  if (!finished_) (void)finish();
}

// Packages only: cores and memory controllers are parts of them.
void MachineWatch::find_domains() {
  std::error_code failed;
  bool any = false, unreadable = false;
  for (const auto& entry : fs::directory_iterator(root_ / "sys/class/powercap", failed)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("intel-rapl:") || std::count(name.begin(), name.end(), ':') != 1) continue;
    any = true;
    const auto now = number_of(entry.path() / "energy_uj");
    unreadable |= !now;
    if (now) domains_.push_back({entry.path(), *now, number_of(entry.path() / "max_energy_range_uj").value_or(0)});
  }
  if (!any) no_energy_ = "this machine shows no RAPL counters (/sys/class/powercap)";
  if (any && unreadable) {
    no_energy_ = "the RAPL counters may be read by root only (/sys/class/powercap)";
    domains_.clear();
  }
}

void MachineWatch::watch() {
  std::unique_lock lock(mutex_);
  for (int round = 0;; ++round) {
    lock.unlock();
    sample_cpu();
    sample_energy();
    if (round % kGpuEvery == 0) sample_gpus();
    lock.lock();
    if (wake_.wait_for(lock, kPeriod, [this] { return stop_; })) return;
  }
}

void MachineWatch::sample_cpu() {
  const auto clocks = clocks_mhz(root_);
  if (clocks.empty()) {
    no_clock_ = "neither cpufreq nor /proc/cpuinfo tells the clock";
    return;
  }
  for (const double mhz : clocks) {
    mhz_min_ = mhz_samples_ == 0 ? mhz : std::min(mhz_min_, mhz);
    mhz_max_ = std::max(mhz_max_, mhz);
    mhz_sum_ += mhz;
    ++mhz_samples_;
  }
}

void MachineWatch::sample_energy() {
  for (auto& domain : domains_) {
    const auto now = number_of(domain.folder / "energy_uj");
    if (!now) continue;
    const uint64_t used = *now >= domain.last ? *now - domain.last : *now + domain.wraps_at - domain.last;
    joules_ += static_cast<double>(used) * kMicro;
    domain.last = *now;
  }
}

void MachineWatch::sample_gpus() {
  if (!gpu_answers_) return;
  bool any = false;
  for (auto& gpu : gpus_) {
    const auto rows = query_gpus("clocks.gr,clocks.mem,power.draw,name", gpu.id);
    if (rows.empty() || rows[0].size() < 4) continue;
    any = true;
    const double watts = number_in(rows[0], 2);
    const int64_t now = now_ms();
    // Trapezoids between samples.
    if (gpu.samples > 0) gpu.joules += (watts + gpu.last_watts) / 2 * static_cast<double>(now - gpu.last_ms) / 1000;
    gpu.graphics += number_in(rows[0], 0);
    gpu.memory += number_in(rows[0], 1);
    gpu.watts += watts;
    gpu.name = rows[0][3];
    gpu.last_watts = watts;
    gpu.last_ms = now;
    ++gpu.samples;
  }
  if (!any) {
    gpu_answers_ = false;
    no_gpu_ = "nvidia-smi shows none of the GPUs of this run";
  }
}

Json MachineWatch::finish() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
    sample_cpu();
    sample_energy();
    sample_gpus();
  }
  finished_ = true;
  Json out, missing = Json::object();
  out["cpu_mhz"] = Json();
  if (mhz_samples_ > 0)
    out["cpu_mhz"] = {{"mean", round_ms(mhz_sum_ / static_cast<double>(mhz_samples_))},
                      {"min", round_ms(mhz_min_)},
                      {"max", round_ms(mhz_max_)}};
  else
    missing["cpu_mhz"] = no_clock_;
  out["cpu_energy_joules"] = domains_.empty() ? Json() : Json(round_ms(joules_));
  if (domains_.empty()) missing["cpu_energy_joules"] = no_energy_;
  out["gpus"] = Json::array();
  for (const auto& gpu : gpus_) {
    if (gpu.samples == 0) continue;
    const auto count = static_cast<double>(gpu.samples);
    out["gpus"].push_back({{"id", gpu.id},
                           {"name", gpu.name},
                           {"graphics_mhz", round_ms(gpu.graphics / count)},
                           {"memory_mhz", round_ms(gpu.memory / count)},
                           {"watts", round_ms(gpu.watts / count)},
                           {"energy_joules", round_ms(gpu.joules)}});
  }
  if (out["gpus"].empty()) missing["gpus"] = no_gpu_;
  out["not_measured"] = std::move(missing);
  return out;
}

}  // namespace strobe::bench
