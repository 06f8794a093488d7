// CUPTI as a table of functions, each of which may be missing.
#pragma once

#include "base/library.h"
#include "gpu/cupti_abi.h"
#include "strobe/base/result.h"

namespace strobe::gpu {

struct Cupti {
  // Looked for in STROBE_CUPTI_LIBRARY; what the process has already; the loader's path; CUDA's folders (CUDA_HOME,
  // CUDA_PATH, /usr/local/cuda*); a wheel's folder beside an already loaded libcudart or libtorch, or in the Python
  // environment (VIRTUAL_ENV). Errors: kNotFound; kUnsupported (a library without the activity interface: names what
  // it lacks).
  static Result<Cupti> load();
  // The library alone, wherever it is. Errors: kNotFound.
  static Result<Library> open_library();

  std::string path;
  uint32_t version = 0;  // CUPTI_API_VERSION of the library; 0: it does not say

  // Without these nothing can be collected.
  cupti::Code (*register_callbacks)(cupti::BufferRequested, cupti::BufferCompleted) = nullptr;
  cupti::Code (*enable)(uint32_t kind) = nullptr;
  cupti::Code (*disable)(uint32_t kind) = nullptr;
  cupti::Code (*flush_all)(uint32_t flags) = nullptr;
  cupti::Code (*next_record)(uint8_t* buffer, size_t valid_size, uint8_t** record) = nullptr;
  cupti::Code (*timestamp)(uint64_t* time) = nullptr;

  // Null where the library lacks them; without each a feature is off.
  cupti::Code (*get_version)(uint32_t* version) = nullptr;
  cupti::Code (*subscribe_v2)(cupti::Subscriber*, cupti::Callback, void* user, cupti::SubscriberParams*) = nullptr;
  cupti::Code (*subscribe)(cupti::Subscriber*, cupti::Callback, void* user) = nullptr;
  cupti::Code (*unsubscribe)(cupti::Subscriber) = nullptr;
  cupti::Code (*enable_and_dump)(uint32_t kind) = nullptr;
  cupti::Code (*set_attribute)(int attribute, size_t* size, void* value) = nullptr;
  cupti::Code (*set_thread_id_type)(int type) = nullptr;
  cupti::Code (*dropped_records)(void* context, uint32_t stream, size_t* dropped) = nullptr;
  cupti::Code (*flush_period)(uint32_t ms) = nullptr;
  cupti::Code (*enable_runtime_api)(uint32_t function, uint8_t enable) = nullptr;
  cupti::Code (*enable_driver_api)(uint32_t function, uint8_t enable) = nullptr;
  cupti::Code (*enable_all_sync_records)(uint8_t enable) = nullptr;
  cupti::Code (*enable_callback)(uint32_t enable, cupti::Subscriber, int domain, uint32_t function) = nullptr;
  cupti::Code (*graph_node_id)(void* node, uint64_t* id) = nullptr;
  cupti::Code (*callback_name)(int domain, uint32_t function, const char** name) = nullptr;
};

}  // namespace strobe::gpu
