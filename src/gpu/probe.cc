#include "gpu/probe.h"

#include <fstream>
#include <utility>

#include "gpu/cupti_errors.h"

namespace strobe::gpu {
namespace {

void ignore(void*, int, uint32_t, const void*) {}

std::string cuda_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

Result<DriverFacts> probe_driver() {
  auto library = Library::open({"STROBE_CUDA_LIBRARY", {"libcuda.so.1"}});
  if (!library)
    return unsupported(library.error().to_string() + " (no NVIDIA driver is installed, or it is not visible here)");
  int (*init)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*get_version)(int*) = nullptr;
  library->find(init, "cuInit");
  library->find(count, "cuDeviceGetCount");
  library->find(get_version, "cuDriverGetVersion");
  if (init == nullptr || count == nullptr)
    return unsupported(library->path() + ": is no CUDA driver, it lacks cuInit or cuDeviceGetCount");
  if (const int code = init(0); code != 0) return unsupported(driver_error(code));
  DriverFacts facts;
  if (const int code = count(&facts.devices); code != 0) return unsupported(driver_error(code));
  if (facts.devices < 1) return unsupported(driver_error(100));
  if (get_version != nullptr && get_version(&facts.version) != 0) facts.version = 0;
  return facts;
}

Result<Subscription> Subscription::take(const Cupti& cupti) {
  cupti::Subscriber handle = nullptr;
  char other[cupti::kOldNameBytes + 1] = {};
  cupti::Code code = cupti::kUnknownError;
  if (cupti.subscribe_v2 != nullptr) {
    cupti::SubscriberParams params{sizeof params, "Strobe", other, cupti::kOldNameBytes};
    code = cupti.subscribe_v2(&handle, ignore, nullptr, &params);
  } else if (cupti.subscribe != nullptr) {
    code = cupti.subscribe(&handle, ignore, nullptr);
  } else {
    return Subscription(nullptr, nullptr);
  }
  if (code == cupti::kSuccess) return Subscription(handle, cupti.unsubscribe);
  if (code == cupti::kMultipleSubscribers)
    return unsupported(std::string("another CUPTI client") + (other[0] == 0 ? "" : ": ") + other +
                       "; only one tool at a time can trace a process");
  return unsupported(cupti_error(code));
}

Subscription::Subscription(Subscription&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), unsubscribe_(other.unsubscribe_) {}

Subscription::~Subscription() {
  if (handle_ != nullptr && unsubscribe_ != nullptr) unsubscribe_(handle_);
}

Probe probe() {
  Probe result;
  const auto driver = probe_driver();
  if (!driver) {
    result.line = driver.error().to_string();
    return result;
  }
  result.has_driver = true;
  const auto cupti = Cupti::load();
  if (!cupti) {
    result.line = cupti.error().to_string() + " (pip install nvidia-cuda-cupti, or set STROBE_CUPTI_LIBRARY)";
    return result;
  }
  if (const auto subscription = Subscription::take(*cupti); !subscription) {
    result.line = subscription.error().to_string();
    return result;
  }
  result.works = true;
  result.line = std::to_string(driver->devices) + (driver->devices == 1 ? " device" : " devices") + ", CUDA " +
                cuda_version(driver->version) + ", CUPTI " + std::to_string(cupti->version) + " (" + cupti->path + ")";
  return result;
}

std::string counter_restriction(const std::string& params_file) {
  std::ifstream params(params_file);
  for (std::string line; std::getline(params, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.substr(0, colon) != "RmProfilingAdminOnly") continue;
    return line.find('1', colon) != std::string::npos ? "only administrators" : "";
  }
  return "";
}

}  // namespace strobe::gpu
