// Exceptions of LibTorch become errors here, at the border.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <utility>

#include "engines/request.h"

namespace strobe::engines::torch_plugin {

// Calls `action`, which returns a Result; an exception becomes an error of `kind`.
template <typename Action>
auto guarded(ErrorKind kind, Action&& action) -> decltype(action()) {
  try {
    return std::forward<Action>(action)();
  } catch (const c10::Error& failure) {
    return Error(kind, "torch: " + one_line(failure.what_without_backtrace()));
  } catch (const std::exception& failure) {
    return Error(kind, "torch: " + one_line(failure.what()));
  }
}

}  // namespace strobe::engines::torch_plugin
