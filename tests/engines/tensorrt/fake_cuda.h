// A stand-in for the CUDA driver: memory (not zeros), events, and streams whose work is done when somebody waits for
// them, not before.
//
// The environment changes it: FAKE_CUDA_INIT (code of cuInit), FAKE_CUDA_DEVICES, FAKE_CUDA_MAJOR (of the compute
// capability), FAKE_CUDA_MULTIPROCESSORS, FAKE_CUDA_VERSION (of the driver), FAKE_CUDA_MEMORY (bytes of the device),
// FAKE_CUDA_WAIT (code of waiting).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace strobe::test::fake_cuda {

int64_t setting(const char* name, int64_t otherwise);
bool is_current();  // whether the calling thread has the device's context
void later(void* stream, std::function<void()> work);
void settle(void* stream);  // does what waits
bool owns(const void* device_memory);

}  // namespace strobe::test::fake_cuda
