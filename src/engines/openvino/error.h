// Exceptions of OpenVINO become errors here, at the border.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "engines/request.h"

namespace strobe::engines::openvino_plugin {

// OpenVINO starts its messages with the source places that they passed: keeps what follows the last of them.
inline std::string told(const std::exception& failure) {
  std::string_view text = failure.what();
  for (size_t at = text.find("Exception from "); at != std::string_view::npos; at = text.find("Exception from ")) {
    const size_t end = text.find('\n', at);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return "openvino: " + one_line(text);
}

// Calls `action`, which returns a Result; an exception becomes an error of `kind`.
template <typename Action>
auto guarded(ErrorKind kind, Action&& action) -> decltype(action()) {
  try {
    return std::forward<Action>(action)();
  } catch (const std::exception& failure) {
    return Error(kind, told(failure));
  }
}

}  // namespace strobe::engines::openvino_plugin
