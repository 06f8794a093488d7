// Where plotly.min.js is.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::report {

// The places looked at, in order: given (when not empty, it alone), the environment's STROBE_PLOTLY_JS,
// ../share/strobe/plotly.min.js beside the folder of the running program.
std::vector<std::filesystem::path> plotly_places(const std::string& given);

// The first of those that is a file. Errors: kNotFound, saying where it was looked for and how to get it.
Result<std::filesystem::path> find_plotly(const std::string& given);

}  // namespace strobe::report
