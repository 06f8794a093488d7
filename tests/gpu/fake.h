// The stand-in for NVIDIA's libraries, as a test in this process plays with it.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gpu/fake_gpu.h"
#include "support/test_data.h"

namespace strobe::gpu::testing {

inline std::string fake_library(const char* name = "libstrobe_fake_gpu.so") {
  return (std::filesystem::path(strobe::test::binaries_folder()).parent_path() / "lib" / name).string();
}

// Sets a variable of the environment for the life of the object.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { ::unsetenv(name_); }

 private:
  const char* name_;
};

// Found by the collector as the driver and as CUPTI.
class Fake {
 public:
  explicit Fake(const char* library = "libstrobe_fake_gpu.so")
      : library_(fake_library(library)),
        driver_("STROBE_CUDA_LIBRARY", library_),
        cupti_("STROBE_CUPTI_LIBRARY", library_),
        handle_(::dlopen(library_.c_str(), RTLD_NOW)) {
    if (handle_ == nullptr) {
      ADD_FAILURE() << ::dlerror();
      std::abort();
    }
    find(graph_capture, "fake_graph_capture"), find(graph_instantiate, "fake_graph_instantiate");
    find(launch_begins, "fake_launch_begins"), find(launch_ends, "fake_launch_ends");
    find(context, "fake_context"), find(graph_launch, "fake_graph_launch");
    find(launch, "fake_launch"), find(synchronize, "fake_synchronize"), find(emit, "fake_emit");
    find(now, "fake_now"), find(step_clock, "fake_step_clock"), find(enabled, "fake_enabled");
    find(driver_function_enabled, "fake_driver_function_enabled");
    find(runtime_function_disabled, "fake_runtime_function_disabled");
    find(outstanding, "fake_outstanding"), find(reset, "fake_reset");
    find(metrics_looks, "fake_metrics_looks");
    reset();
  }
  decltype(&fake_launch) launch;
  decltype(&fake_launch_begins) launch_begins;
  decltype(&fake_launch_ends) launch_ends;
  decltype(&fake_context) context;
  decltype(&fake_graph_capture) graph_capture;
  decltype(&fake_graph_instantiate) graph_instantiate;
  decltype(&fake_graph_launch) graph_launch;
  decltype(&fake_synchronize) synchronize;
  decltype(&fake_emit) emit;
  decltype(&fake_now) now;
  decltype(&fake_step_clock) step_clock;
  decltype(&fake_enabled) enabled;
  decltype(&fake_driver_function_enabled) driver_function_enabled;
  decltype(&fake_runtime_function_disabled) runtime_function_disabled;
  decltype(&fake_outstanding) outstanding;
  decltype(&fake_metrics_looks) metrics_looks;
  decltype(&fake_reset) reset;

  uint32_t kernel(const char* name, uint64_t delay_ns, uint64_t duration_ns, uint32_t stream = 7) const {
    FakeLaunch one{};
    one.kernel = name, one.stream = stream, one.delay_ns = delay_ns, one.duration_ns = duration_ns;
    return launch(&one);
  }

 private:
  template <typename Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
  }
  std::string library_;
  Environment driver_, cupti_;
  void* handle_;
};

using Folder = strobe::test::ScratchFolder;

}  // namespace strobe::gpu::testing
