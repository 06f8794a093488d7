#include "bench/machine_watch.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "bench/figures.h"

namespace strobe::bench {
namespace {

namespace fs = std::filesystem;

constexpr auto kPeriod = std::chrono::milliseconds(500);
constexpr double kMicro = 1e-6, kKhzPerMhz = 1000;

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

}  // namespace

MachineWatch::MachineWatch(const std::vector<int>& gpus, fs::path root) : root_(std::move(root)), gpus_(gpus) {
  find_domains();
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
  for (;;) {
    lock.unlock();
    sample_cpu();
    sample_energy();
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
  GpuWatch::Seen gpus = gpus_.finish();
  out["gpus"] = std::move(gpus.gpus);
  if (!gpus.missing.empty()) missing["gpus"] = std::move(gpus.missing);
  out["not_measured"] = std::move(missing);
  return out;
}

}  // namespace strobe::bench
