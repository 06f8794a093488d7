#include "gpu/metrics_device.h"

#include <cmath>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "gpu/collector.h"
#include "gpu/cupti_errors.h"
#include "gpu/device_support.h"

namespace strobe::gpu {
namespace {

constexpr size_t kHardwareBytes = size_t{128} << 20;
constexpr uint32_t kImageSamples = 1024;
constexpr double kSystemCyclesPerNs = 1.4;  // about, of the chips that have no other trigger
constexpr int64_t kClockSlack_ns = 1'000'000;
constexpr uint64_t kMostFailures = 10;  // in a row
constexpr int kMostImages = 64;         // at one look
constexpr uint64_t kMostFull = 5;       // looks in a row at a full buffer that gave nothing

// For as long as the process lives: a sampler that is not given back goes on pointing into its configuration.
void keep(MetricChoice choice) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<MetricChoice>;
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(choice));
}

// Chips without a clock of its own for the trigger.
bool counts_cycles(const std::string& chip) {
  return chip.starts_with("TU") || chip == "GA100";
}

}  // namespace

Result<std::unique_ptr<MetricsDevice>> MetricsDevice::open(const CuptiMetrics& cupti, const CudaDevice& device,
                                                           uint64_t period_ns) {
  STROBE_ASSIGN(const std::string name, chip_of(cupti, device.number));
  STROBE_TRY(check_support(cupti, device.handle, name, cupti::kApiPmSampling));
  std::vector<uint8_t> availability;
  if (cupti.pm_availability != nullptr) {
    auto image = cupti::sized<cupti::PmAvailability>();
    image.device = static_cast<size_t>(device.number);
    auto code = cupti.pm_availability(&image);
    if (code == cupti::kSuccess) {
      availability.resize(image.size);
      image.image = availability.data();
      code = cupti.pm_availability(&image);
    }
    // Another sampler of this device only hides what is free.
    if (code == cupti::kInsufficientPrivileges) return unsupported(cupti_error(code));
    if (code != cupti::kSuccess) availability.clear();
  }
  STROBE_ASSIGN(MetricChoice choice, MetricChoice::make(cupti, name, std::move(availability)));
  std::unique_ptr<MetricsDevice> made(new MetricsDevice(cupti, device, name, std::move(choice), period_ns));
  STROBE_TRY(made->enable());
  return made;
}

Result<void> MetricsDevice::enable() {
  auto enable = cupti::sized<cupti::PmEnable>();
  enable.device = static_cast<size_t>(device_.number);
  const auto enabled = cupti_.pm_enable(&enable);
  if (enabled == cupti::kInvalidOperation)
    return unsupported("the counters are being sampled already: only one sampler at a time can have a device");
  if (enabled != cupti::kSuccess) return unsupported(cupti_error(enabled));
  sampling_ = enable.sampling;
  by_cycles_ = counts_cycles(chip_);
  STROBE_TRY(configure());
  return make_image();
}

Result<void> MetricsDevice::configure() {
  auto config = cupti::sized<cupti::PmConfig>();
  config.sampling = sampling_;
  config.size = choice_.configuration().size(), config.image = choice_.configuration().data();
  config.hardware_bytes = kHardwareBytes;
  config.interval =
      by_cycles_ ? static_cast<uint64_t>(static_cast<double>(period_ns_) * kSystemCyclesPerNs) : period_ns_;
  config.trigger = by_cycles_ ? cupti::kEverySystemCycles : cupti::kEveryNanoseconds;
  config.append = cupti::kKeepOldest;
  if (const auto code = cupti_.pm_configure(&config); code != cupti::kSuccess) return unsupported(cupti_error(code));
  return {};
}

Result<void> MetricsDevice::make_image() {
  std::vector<const char*> names = choice_.names();
  auto size = cupti::sized<cupti::PmDataSize>();
  size.sampling = sampling_;
  size.names = names.data(), size.count = names.size(), size.samples = kImageSamples;
  if (const auto code = cupti_.pm_data_size(&size); code != cupti::kSuccess) return unsupported(cupti_error(code));
  image_.assign(size.size, 0);
  if (!empty_image()) return unsupported(broken_);
  return {};
}

// By the library, which touches little of an image of many megabytes.
bool MetricsDevice::empty_image() {
  auto initialize = cupti::sized<cupti::PmDataInitialize>();
  initialize.sampling = sampling_, initialize.size = image_.size(), initialize.image = image_.data();
  const auto code = cupti_.pm_data_initialize(&initialize);
  if (code != cupti::kSuccess) broken_ = cupti_error(code);
  return code == cupti::kSuccess;
}

cupti::Code MetricsDevice::call(cupti::Code (*function)(cupti::PmObject*)) const {
  auto params = cupti::sized<cupti::PmObject>();
  params.sampling = sampling_;
  return function(&params);
}

MetricsDevice::~MetricsDevice() {
  if (sampling_ == nullptr) return;
  if (collecting()) {
    keep(std::move(choice_));
  } else {
    call(cupti_.pm_disable);
  }
}

Result<void> MetricsDevice::start() {
  cupti_.timestamp(&asked_ns_);
  if (const auto code = call(cupti_.pm_start); code != cupti::kSuccess) return unsupported(cupti_error(code));
  cupti_.timestamp(&begun_ns_);
  return {};
}

void MetricsDevice::read(const Put& put) {
  if (!broken_.empty()) return;
  bool overflow = false;
  const uint64_t before = samples_;
  for (int i = 0; i < kMostImages; ++i) {
    auto decode = cupti::sized<cupti::PmDecode>();
    decode.sampling = sampling_;
    decode.image = image_.data(), decode.size = image_.size();
    const auto code = cupti_.pm_decode(&decode);
    overflow |= decode.overflow != 0 || code == cupti::kOutOfMemory;
    if (code != cupti::kSuccess) {
      if (code != cupti::kOutOfMemory && ++failures_ == kMostFailures) broken_ = cupti_error(code);
      break;
    }
    failures_ = 0;
    const uint64_t had = samples_;
    take(put);
    if (!empty_image()) break;
    // A look may stop for no reason that it says: the next one goes on, and the last one must.
    const bool more =
        decode.stop == cupti::kImageIsFull || (stopped_ && decode.stop == cupti::kStoppedOtherwise && samples_ > had);
    if (!more) break;
  }
  if (!overflow || samples_ > before) full_in_a_row_ = 0;
  if (!overflow) return;
  ++overflows_;
  if (++full_in_a_row_ >= kMostFull)
    broken_ = "the hardware's buffer stays full, whatever is done";
  else if (!stopped_ && broken_.empty())
    restart();
}

// A buffer that was full takes nothing more until it is made anew.
void MetricsDevice::restart() {
  call(cupti_.pm_stop);
  if (const auto configured = configure(); !configured) {
    broken_ = configured.error().to_string();
    return;
  }
  if (const auto code = call(cupti_.pm_start); code != cupti::kSuccess) broken_ = cupti_error(code);
}

void MetricsDevice::take(const Put& put) {
  auto info = cupti::sized<cupti::PmDataInfo>();
  info.image = image_.data(), info.size = image_.size();
  if (cupti_.pm_data_info(&info) != cupti::kSuccess) {
    ++unreadable_;
    return;
  }
  for (size_t i = 0; i < info.completed; ++i) {
    auto sample = cupti::sized<cupti::PmSampleInfo>();
    sample.sampling = sampling_;
    sample.image = image_.data(), sample.size = image_.size(), sample.index = i;
    const bool told = cupti_.pm_sample_info(&sample) == cupti::kSuccess;
    // After a stop comes one of no length, at the time of the start: no time that it could be of.
    if (told && sample.start != 0 && sample.start == sample.end) continue;
    // In this order: what has a time and no figures is not missing, too.
    if (!told || !place(sample.start, sample.end) || !choice_.evaluate(image_, i, values_)) {
      ++unreadable_;
      continue;
    }
    ++samples_;
    put(sample.start + static_cast<uint64_t>(shift_ns_), values_);
  }
}

// Whether the sample has a time that can be; of the first one, how the device's clock stands to CUPTI's.
bool MetricsDevice::place(uint64_t start_ns, uint64_t end_ns) {
  if (start_ns == 0 || end_ns <= start_ns || start_ns <= last_start_ns_) return false;
  if (!placed_) {
    uint64_t now = 0;
    cupti_.timestamp(&now);
    const auto before = static_cast<int64_t>(asked_ns_ - start_ns), after = static_cast<int64_t>(end_ns - now);
    if (before > kClockSlack_ns || after > kClockSlack_ns) {
      shift_ns_ = static_cast<int64_t>(begun_ns_ - start_ns);
      clock_note_ = "the device's own clock: its first sample is put where the sampling had begun, which is known to " +
                    std::to_string((begun_ns_ - asked_ns_) / 1000) + " us; drift is not taken out";
    }
    placed_ = true;
  } else if (start_ns > last_end_ns_) {
    const double gap = static_cast<double>(start_ns - last_end_ns_) / static_cast<double>(end_ns - start_ns);
    if (gap > 0.5) missing_ += static_cast<uint64_t>(std::llround(gap));
  }
  last_start_ns_ = start_ns, last_end_ns_ = end_ns;
  return true;
}

void MetricsDevice::stop(const Put& put) {
  if (!broken_.empty()) return;
  const auto code = call(cupti_.pm_stop);
  stopped_ = true;
  // What the hardware still held.
  read(put);
  if (code != cupti::kSuccess && broken_.empty()) broken_ = cupti_error(code);
}

}  // namespace strobe::gpu
