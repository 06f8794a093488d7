// Exceptions of LibTorch become errors here, at the border.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>
#include <utility>

#include "engines/request.h"

namespace strobe::engines::torch_plugin {

// What CUDA's allocator says, up to how much there was: "CUDA out of memory. Tried to allocate ... is free."
inline Error out_of_memory(const std::string& text) {
  constexpr std::string_view kLast = " is free.";
  const size_t end = text.find(kLast);
  return unsupported("torch: the device's memory is full; a smaller --batch-size or network may fit (" +
                     one_line(end == std::string::npos ? text : text.substr(0, end + kLast.size())) + ")");
}

// Calls `action`, which returns a Result; an exception becomes an error of `kind`; a device whose
// memory is full is kUnsupported.
template <typename Action>
auto guarded(ErrorKind kind, Action&& action) -> decltype(action()) {
  try {
    return std::forward<Action>(action)();
  } catch (const c10::OutOfMemoryError& failure) {
    return out_of_memory(failure.what_without_backtrace());
  } catch (const c10::Error& failure) {
    return Error(kind, "torch: " + one_line(failure.what_without_backtrace()));
  } catch (const std::exception& failure) {
    return Error(kind, "torch: " + one_line(failure.what()));
  }
}

}  // namespace strobe::engines::torch_plugin
