#include "tenants/spin_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <ctime>
#include <mutex>

#include "tenants/units.h"

namespace strobe::tenants {
namespace {

constexpr size_t kStreamBytes = size_t{64} << 20;  // well past the last cache
constexpr size_t kStreamStep = size_t{8} << 10;    // of one round
constexpr int kChainLength = 256;                  // dependent multiply-adds of one round

// The work must be done each time that it is asked for: the compiler is told that the value changes unseen.
double spin_once(double value) {
#if defined(__x86_64__)
  asm volatile("" : "+x"(value));
#else
  asm volatile("" : "+w"(value));
#endif
  for (int i = 0; i < kChainLength; ++i) value = value * 0.999999 + 1e-6;
  return value;
}

// Each thread copies within memory of its own.
class Stream {
 public:
  Stream() : bytes_(2 * kStreamBytes, 1) {}
  double step() {
    std::memcpy(bytes_.data() + kStreamBytes + at_, bytes_.data() + at_, kStreamStep);
    const double value = bytes_[kStreamBytes + at_];
    at_ = (at_ + kStreamStep) % kStreamBytes;
    return value;
  }

 private:
  std::vector<uint8_t> bytes_;
  size_t at_ = 0;
};

}  // namespace

bool is_spin(const std::string& model) {
  return model.starts_with("spin:") || model.starts_with("stream:");
}

Result<SpinWork> parse_spin(const std::string& model) {
  SpinWork work;
  work.kind = model.starts_with("spin:") ? SpinWork::Kind::kCompute : SpinWork::Kind::kBandwidth;
  std::string_view text = model;
  text.remove_prefix(text.find(':') + 1);
  if (const size_t slash = text.find('/'); slash != std::string_view::npos) {
    const std::string_view count = text.substr(slash + 1);
    const auto [end, fault] = std::from_chars(count.data(), count.data() + count.size(), work.pieces);
    if (fault != std::errc() || end != count.data() + count.size() || work.pieces < 1 || work.pieces > 10000)
      return usage_error(fmt::format("model \"{}\": expected 1 to 10000 pieces behind the slash", model));
    text = text.substr(0, slash);
  }
  auto seconds = parse_duration(text);
  if (!seconds) return usage_error(fmt::format("model \"{}\": {}", model, seconds.error().message()));
  if (*seconds > 60) return usage_error(fmt::format("model \"{}\": more than a minute", model));
  work.seconds = *seconds;
  return work;
}

double spin_rounds(SpinWork::Kind kind, int64_t rounds) {
  double value = 1;
  if (kind == SpinWork::Kind::kCompute) {
    for (int64_t i = 0; i < rounds; ++i) value = spin_once(value);
    return value;
  }
  thread_local Stream stream;
  for (int64_t i = 0; i < rounds; ++i) value += stream.step();
  return value;
}

double rounds_per_second(SpinWork::Kind kind) {
  static std::mutex mutex;
  static std::array<double, 2> known{};
  const std::lock_guard lock(mutex);
  double& best = known[static_cast<size_t>(kind)];
  if (best > 0) return best;
  // By the thread's own time: others on the core do not make it slower.
  const auto seconds = [] {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  volatile double kept = spin_rounds(kind, 20000);  // touches the memory, wakes the clock of the core
  for (int trial = 0; trial < 7; ++trial) {
    constexpr int64_t kRounds = 20000;
    const double begin = seconds();
    kept = kept + spin_rounds(kind, kRounds);
    best = std::max(best, static_cast<double>(kRounds) / (seconds() - begin));
  }
  return best;
}

void measure_spin(const CellSpec& cell) {
  for (const TenantSpec& tenant : cell.tenants)
    if (is_spin(tenant.model))
      if (const auto work = parse_spin(tenant.model)) rounds_per_second(work->kind);
}

namespace {

class SpinTask : public Task {
 public:
  SpinTask(const TenantSpec& tenant, const SpinWork& work)
      : name_(tenant.model),
        work_(work),
        rounds_(static_cast<int64_t>(
            std::llround(work.seconds * rounds_per_second(work.kind) / static_cast<double>(work.pieces)))) {
    const char* work_class = work.kind == SpinWork::Kind::kCompute ? "compute" : "bandwidth";
    for (int64_t i = 0; i < work.pieces; ++i)
      pieces_.push_back({work.pieces == 1 ? "spin" : fmt::format("spin_{}", i), work_class});
  }
  std::string model_type() const override { return "image"; }
  std::string model_name() const override { return name_; }
  const std::vector<WorkPiece>& pieces() const override { return pieces_; }
  Result<void> decode(std::span<const SensorFrame>) override { return {}; }
  Result<void> prepare() override { return {}; }
  Result<void> infer(DeviceTurns& turns) override {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      turns.begin(i);
      kept_ = kept_ + spin_rounds(work_.kind, rounds_);
      turns.end(i);
    }
    return {};
  }
  Result<std::vector<Prediction>> finish() override { return std::vector<Prediction>(1); }

 private:
  std::string name_;
  SpinWork work_;
  int64_t rounds_;
  std::vector<WorkPiece> pieces_;
  volatile double kept_ = 0;
};

}  // namespace

Result<std::unique_ptr<Task>> open_spin_task(const TenantSpec& tenant) {
  STROBE_ASSIGN(const SpinWork work, parse_spin(tenant.model));
  std::unique_ptr<Task> task = std::make_unique<SpinTask>(tenant, work);
  spin_rounds(work.kind, 1);
  return task;
}

}  // namespace strobe::tenants
