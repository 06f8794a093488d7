// Which cores this process runs on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::collect {

// "0", "0,2", "0-3,6" as core numbers, sorted, each once. Errors: kUsage.
Result<std::vector<int>> parse_cores(std::string_view list);

// The cores that the calling thread may use, as such a list: "0-3,6".
std::string allowed_core_list();

// Whether this process may run on all of these. Errors: kUsage (not a list), kUnsupported (a core that the machine
// lacks or this process may not use: says which there are).
Result<void> check_cores(std::string_view list);

// Binds the calling thread, and every thread that it starts later, to these cores. To be called before any other thread
// is there. Errors: those of check_cores.
Result<void> bind_to_cores(std::string_view list);

}  // namespace strobe::collect
