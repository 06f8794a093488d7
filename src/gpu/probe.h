// Whether GPU work can be collected here, and if not, why, in one line.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/cupti.h"

namespace strobe::gpu {

struct DriverFacts {
  int version = 0;  // as cuDriverGetVersion gives it: 13000 is CUDA 13.0
  int devices = 0;
};
// Opens libcuda.so.1 (STROBE_CUDA_LIBRARY), initialises it and counts devices. Not to be called from within the
// driver's own initialisation. Errors: kUnsupported, with the reason: no driver, no device, ...
Result<DriverFacts> probe_driver();

// A device as CUDA numbers it in this process.
struct CudaDevice {
  int number = 0, handle = 0;
  std::string name;                // empty: not told
  std::array<uint64_t, 2> uuid{};  // as CUPTI gives it, of its number where it is not told
  int processors = 0;              // SMs; 0: not told
  int capability = 0;              // compute capability, 90 is 9.0; 0: not told
};
// Those of probe_driver(). Errors: the same.
Result<std::vector<CudaDevice>> cuda_devices();

// A subscription is held while collecting, as a lock: the activity interface itself lets two clients spoil each other's
// records.
class Subscription {
 public:
  // Errors: kUnsupported ("another CUPTI client: NAME", no permission, ...).
  // callback: is called with what Cupti::enable_callback asks for; until then, and where there is none, with nothing.
  static Result<Subscription> take(const Cupti& cupti, cupti::Callback callback = nullptr);
  Subscription(Subscription&& other) noexcept;
  Subscription& operator=(Subscription&&) = delete;
  ~Subscription();
  cupti::Subscriber handle() const { return handle_; }

 private:
  Subscription(cupti::Subscriber handle, cupti::Code (*unsubscribe)(cupti::Subscriber))
      : handle_(handle), unsubscribe_(unsubscribe) {}
  cupti::Subscriber handle_;
  cupti::Code (*unsubscribe_)(cupti::Subscriber);
};

// For people: what works, or the first thing that does not.
struct Probe {
  bool works = false;
  bool has_driver = false;
  std::string line;  // "2 devices, CUDA 13.0, CUPTI 130001 (/usr/.../libcupti.so.13)", or why collection is off
};
Probe probe();

// "only administrators" where the driver's parameters say so, of /proc/driver/nvidia/params or a copy of it. Counters
// need that right; tracing kernels does not.
std::string counter_restriction(const std::string& params_file = "/proc/driver/nvidia/params");

}  // namespace strobe::gpu
