// The hardware counters of one device, sampled at a fixed interval by the device itself (CUPTI's PM sampling). Nothing
// is repeated and nothing serialised; the counters are those of the whole device, whoever uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/metric_choice.h"
#include "gpu/probe.h"

namespace strobe::gpu {

class MetricsDevice {
 public:
  // Makes the device ready: all that can be refused is refused here, in one line. The table must outlive it. Errors:
  // kUnsupported (no permission, held by somebody else, virtual GPU, MIG, confidential computing, chip not known, ...).
  static Result<std::unique_ptr<MetricsDevice>> open(const CuptiMetrics& cupti, const CudaDevice& device,
                                                     uint64_t period_ns);
  MetricsDevice(const MetricsDevice&) = delete;
  MetricsDevice& operator=(const MetricsDevice&) = delete;
  // Gives the counters back; where this process traces GPU work, that waits for its end: giving them back ends all of
  // CUPTI.
  ~MetricsDevice();

  const CudaDevice& device() const { return device_; }
  const std::string& chip() const { return chip_; }
  const MetricChoice& choice() const { return choice_; }
  // The interval is of the device's clock and not of time: about so long.
  bool by_cycles() const { return by_cycles_; }

  Result<void> start();
  // One sample: its time on CUPTI's clock, and its figures in the order of choice().metrics(), not a number where one
  // has none.
  using Put = std::function<void(uint64_t start_ns, const std::vector<double>& values)>;
  // What has come since the last time. To be called before the hardware's buffer is full.
  void read(const Put& put);
  // Ends it, and reads the rest.
  void stop(const Put& put);

  uint64_t samples() const { return samples_; }
  uint64_t missing() const { return missing_; }  // that should lie between those which came
  uint64_t unreadable() const { return unreadable_; }
  uint64_t overflows() const { return overflows_; }      // times that the hardware's buffer was full
  const std::string& broken() const { return broken_; }  // why nothing comes any more; empty: it does
  // How the device's times were brought onto CUPTI's clock; empty: they are on it.
  const std::string& clock_note() const { return clock_note_; }

 private:
  MetricsDevice(const CuptiMetrics& cupti, const CudaDevice& device, std::string chip, MetricChoice choice,
                uint64_t period_ns)
      : cupti_(cupti), device_(device), chip_(std::move(chip)), choice_(std::move(choice)), period_ns_(period_ns) {}
  Result<void> enable();
  Result<void> configure();
  Result<void> make_image();
  bool empty_image();
  cupti::Code call(cupti::Code (*function)(cupti::PmObject*)) const;
  void restart();
  void take(const Put& put);
  bool place(uint64_t start_ns, uint64_t end_ns);

  const CuptiMetrics& cupti_;
  const CudaDevice device_;
  const std::string chip_;
  MetricChoice choice_;
  const uint64_t period_ns_;
  bool by_cycles_ = false;
  void* sampling_ = nullptr;
  std::vector<uint8_t> image_;
  std::vector<double> values_;
  uint64_t asked_ns_ = 0, begun_ns_ = 0;  // CUPTI's clock before and after the start
  bool placed_ = false, stopped_ = false;
  int64_t shift_ns_ = 0;  // of the device's times
  uint64_t last_start_ns_ = 0, last_end_ns_ = 0, samples_ = 0, missing_ = 0, unreadable_ = 0, overflows_ = 0,
           failures_ = 0, full_in_a_row_ = 0;
  std::string broken_, clock_note_;
};

}  // namespace strobe::gpu
