#include "gpu/cupti_errors.h"

namespace strobe::gpu {
namespace {

struct Explanation {
  int code;
  const char* text;
};

constexpr Explanation kCupti[] = {
    {1, "a parameter is not what the library takes (another version of it?)"},
    {2, "no such device"},
    {3, "no such context"},
    {7, "not possible in the state that the library is in"},
    {8, "out of memory"},
    {9, "the hardware reported an error"},
    {10, "a structure is too small for this version of the library"},
    {11, "this version of the library does not have the function"},
    {12, "a limit was reached"},
    {13, "not ready"},
    {14, "not compatible with what is already enabled"},
    {15, "the library could not be initialised (is the driver older than the library?)"},
    {19, "a handle is not valid"},
    {20, "no such stream"},
    {21, "this kind of activity is not known to the library"},
    {23, "disabled by a profiler that is already attached (nsys, ncu, cuda-gdb)"},
    {24, "a module is not valid"},
    {26, "another process holds the hardware's counters"},
    {27, "not supported on this device or system"},
    {28, "unified memory cannot be profiled on this system"},
    {29, "unified memory cannot be profiled on this device"},
    {30, "unified memory cannot be profiled on devices without peer access"},
    {31, "unified memory cannot be profiled under MPS"},
    {32, "device-side launches cannot be traced on this device"},
    {33, "not supported on a virtual GPU"},
    {34, "the program was built with a compiler that the library does not support"},
    {35,
     "no permission: the driver lets only administrators profile (NVreg_RestrictProfilingToAdminUsers; in a "
     "container --cap-add=SYS_ADMIN)"},
    {36, "the older profiler interface is already in use in this process"},
    {38, "this device is not supported by the older profiler interface"},
    {39, "another CUPTI client is attached to this process"},
    {40, "no permission on this virtual GPU: the hypervisor must allow profiling"},
    {41, "not supported while confidential computing is on"},
    {42, "not supported on mining cards"},
    {43, "not supported on a MIG instance"},
    {44, "not supported with SLI"},
    {45, "not supported under WSL"},
    {46, "the chip's name is not known to the library"},
    {999, "unknown error; without an NVIDIA driver every call gives it"},
};

constexpr Explanation kDriver[] = {
    {1, "a parameter is not what the driver takes"},
    {2, "out of memory"},
    {3, "not initialised"},
    {4, "the driver is being shut down"},
    {34, "the library is a stub without a driver behind it"},
    {46, "the device is not available"},
    {100, "no CUDA device"},
    {101, "no such device"},
    {802, "the system is not ready (is the fabric manager running?)"},
    {803, "the driver's parts do not fit together (its library and kernel module are of different versions)"},
    {804, "forward compatibility was asked for on hardware that has none"},
    {999, "unknown error (was the driver's kernel module loaded, and /dev/nvidia* passed in?)"},
};

constexpr Explanation kNvml[] = {
    {1, "not initialised"},
    {2, "a parameter is not what the library takes"},
    {3, "not supported on this device"},
    {4, "no permission: root or its right is needed"},
    {6, "not found"},
    {7, "too little room for the answer"},
    {8, "an external power cable is missing"},
    {9, "the driver's kernel module is not loaded"},
    {10, "no answer in time"},
    {11, "an interrupt of the GPU does not arrive"},
    {12, "a part of the library is missing"},
    {13, "this version of the library does not have the function"},
    {15, "the GPU is lost: it has fallen off the bus or cannot be reached"},
    {16, "the GPU must be reset"},
    {17, "the operating system keeps the GPU's control device away (cgroups, a container without it?)"},
    {18, "library and kernel module of the driver are of different versions (reload the module, or reboot)"},
    {19, "the GPU is in use"},
    {20, "out of memory"},
    {21, "no data"},
    {25, "a structure's version is not known to this library"},
    {27, "not ready"},
    {28, "no GPU"},
    {999, "unknown error of the driver"},
};

template <size_t Size>
std::string explain(const char* who, int code, const Explanation (&table)[Size]) {
  std::string line = std::string(who) + " error " + std::to_string(code);
  for (const Explanation& entry : table)
    if (entry.code == code) return line + ": " + entry.text;
  return line + ": not in our table of codes";
}

}  // namespace

std::string cupti_error(int code) {
  return explain("CUPTI", code, kCupti);
}
std::string driver_error(int code) {
  return explain("CUDA driver", code, kDriver);
}
std::string nvml_error(int code) {
  return explain("NVML", code, kNvml);
}

}  // namespace strobe::gpu
