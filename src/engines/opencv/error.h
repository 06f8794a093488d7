// Exceptions of OpenCV become errors here, at the border.
#pragma once

#include <exception>
#include <opencv2/core.hpp>
#include <utility>

#include "engines/request.h"

namespace strobe::engines::opencv_plugin {

// Calls `action`, which returns a Result; an exception becomes an error of `kind`.
template <typename Action>
auto guarded(ErrorKind kind, Action&& action) -> decltype(action()) {
  try {
    return std::forward<Action>(action)();
  } catch (const cv::Exception& failure) {
    return Error(kind, "opencv: " + one_line(failure.err.empty() ? failure.what() : failure.err));
  } catch (const std::exception& failure) {
    return Error(kind, "opencv: " + one_line(failure.what()));
  }
}

}  // namespace strobe::engines::opencv_plugin
