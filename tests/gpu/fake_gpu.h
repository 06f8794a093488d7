// A stand-in for NVIDIA's libraries: one shared library with the entry points of the CUDA driver, of CUPTI and of NVML
// that Strobe looks for, and functions by which a test plays a device. It writes records in CUPTI's layouts into the
// buffers that it is given, asks for buffers and hands them back as CUPTI does, and loads what CUDA_INJECTION64_PATH
// names when it is initialised, as the driver does.
//
// The environment changes it: FAKE_CUDA_INIT (code of cuInit), FAKE_CUDA_DEVICES, FAKE_CUPTI_OTHER_CLIENT (name),
// FAKE_CUPTI_SUBSCRIBE, FAKE_CUPTI_ENABLE_<kind> (codes), FAKE_CUPTI_VERSION, FAKE_CUPTI_AHEAD_NS (its clock against
// CLOCK_REALTIME), FAKE_CUPTI_FLUSH_HANGS, FAKE_NVML_LOG (file that calls which change clocks are written to),
// FAKE_NVML_NO_PERMISSION.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct FakeLaunch {
  const char* kernel;  // null: a copy of `bytes` (or a set, where copy_kind is 0)
  uint32_t stream;
  uint64_t delay_ns;  // from the call's start to the earliest start on the device; a stream does one thing at a time
  uint64_t duration_ns;
  uint64_t bytes;
  uint32_t copy_kind;      // 1 host to device, 2 device to host, ...
  uint32_t nested;         // 1: the runtime call contains a call of the driver with the same number
  uint32_t no_times;       // 1: the device measured nothing
  int64_t before_call_ns;  // a fault: the kernel seems to begin so long before its call
};
// Makes the call's and the device's records; the call's number.
uint32_t fake_launch(const struct FakeLaunch* launch);
// The two ends of a launch call, so that calls of several threads can overlap; the kernel runs at the end.
void fake_launch_begins(const char* kernel);
void fake_launch_ends(const char* kernel, uint64_t duration_ns);
// The program's context comes (1) or goes: told to who subscribed. Kernels are replayed while it is there.
void fake_context(uint32_t created);
// Graphs. A launch into a stream that captures adds a node to the graph (null: begins one; gives it back): there is its
// call and CUPTI's, and nothing happens on a device. What is instantiated has copies of the nodes; launched, it is one
// record or one a node, all with the launch's number.
void* fake_graph_capture(void* graph, const struct FakeLaunch* launch);
void* fake_graph_instantiate(void* graph);
uint32_t fake_graph_launch(void* instance, uint32_t stream);
// Waits for a stream, as cudaStreamSynchronize: its call and its synchronisation.
void fake_synchronize(uint32_t stream);
// A record as it is, for what the others do not make.
void fake_emit(const void* record, size_t bytes);
uint64_t fake_now(void);
// Of FAKE_CUPTI_AHEAD_NS: the clock is set by so much from now on.
void fake_step_clock(int64_t by_ns);
uint32_t fake_enabled(uint32_t kind);
uint32_t fake_driver_function_enabled(uint32_t function);
// Runtime functions that were switched off.
uint32_t fake_runtime_function_disabled(uint32_t function);
uint64_t fake_outstanding(void);    // buffers that it holds
uint64_t fake_metrics_looks(void);  // times that the sampled counters were asked for
void fake_reset(void);

#ifdef __cplusplus
}  // extern "C"
#endif
