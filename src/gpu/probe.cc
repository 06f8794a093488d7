#include "gpu/probe.h"

#include <cstring>
#include <fstream>
#include <utility>

#include "gpu/cupti_errors.h"

namespace strobe::gpu {
namespace {

// CUdevice_attribute of cuda.h.
constexpr int kProcessors = 16, kCapabilityMajor = 75, kCapabilityMinor = 76;

void ignore(void*, int, uint32_t, const void*) {}

Result<Library> open_driver() {
  auto library = Library::open({"STROBE_CUDA_LIBRARY", {"libcuda.so.1"}});
  if (!library)
    return unsupported(library.error().to_string() + " (no NVIDIA driver is installed, or it is not visible here)");
  return library;
}

std::string cuda_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

Result<DriverFacts> probe_driver() {
  STROBE_ASSIGN(const Library opened, open_driver());
  const Library* const library = &opened;
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

Result<std::vector<CudaDevice>> cuda_devices() {
  STROBE_ASSIGN(const DriverFacts facts, probe_driver());
  STROBE_ASSIGN(const Library library, open_driver());
  int (*get)(int*, int) = nullptr;
  int (*get_name)(char*, int, int) = nullptr;
  int (*get_uuid)(uint8_t*, int) = nullptr;
  int (*get_attribute)(int*, int, int) = nullptr;
  library.find(get, "cuDeviceGet");
  library.find(get_name, "cuDeviceGetName");
  library.find(get_uuid, "cuDeviceGetUuid_v2");
  if (get_uuid == nullptr) library.find(get_uuid, "cuDeviceGetUuid");
  library.find(get_attribute, "cuDeviceGetAttribute");
  const auto attribute = [&](int which, int device) {
    int value = 0;
    return get_attribute != nullptr && get_attribute(&value, which, device) == 0 ? value : 0;
  };
  std::vector<CudaDevice> devices;
  for (int number = 0; number < facts.devices; ++number) {
    CudaDevice device{number, number, {}, {~uint64_t{0}, static_cast<uint64_t>(number)}, 0, 0};
    if (get != nullptr && get(&device.handle, number) != 0) continue;
    char name[256] = {};
    if (get_name != nullptr && get_name(name, sizeof name - 1, device.handle) == 0) device.name = name;
    uint8_t uuid[16] = {};
    if (get_uuid != nullptr && get_uuid(uuid, device.handle) == 0) std::memcpy(device.uuid.data(), uuid, sizeof uuid);
    device.processors = attribute(kProcessors, device.handle);
    device.capability = 10 * attribute(kCapabilityMajor, device.handle) + attribute(kCapabilityMinor, device.handle);
    devices.push_back(std::move(device));
  }
  if (devices.empty()) return unsupported(driver_error(100));
  return devices;
}

Result<Subscription> Subscription::take(const Cupti& cupti, cupti::Callback callback) {
  if (callback == nullptr) callback = ignore;
  cupti::Subscriber handle = nullptr;
  char other[cupti::kOldNameBytes + 1] = {};
  cupti::Code code = cupti::kUnknownError;
  if (cupti.subscribe_v2 != nullptr) {
    cupti::SubscriberParams params{sizeof params, "Strobe", other, cupti::kOldNameBytes};
    code = cupti.subscribe_v2(&handle, callback, nullptr, &params);
  } else if (cupti.subscribe != nullptr) {
    code = cupti.subscribe(&handle, callback, nullptr);
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
