// Work that may crash or hang (a foreign library at its first load), done in a child process.
#pragma once

#include <functional>
#include <string>

#include "strobe/base/result.h"

namespace strobe::app {

// What the work returned, in a fork of this process; to be called while the process has one thread. Errors: kEngine
// when the child crashed ("stopped by signal 11 (Segmentation fault)"), ended by itself, or took longer than that.
Result<std::string> in_child(const std::function<std::string()>& work, int timeout_s);

}  // namespace strobe::app
