// Chrome trace JSON ("Trace Event Format"), in the categories and arguments of PyTorch's profiler where those have a
// word for something, so that tools for either read it.
#pragma once

#include <filesystem>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::exporters {

// One event a line. A name that ends in ".gz" is compressed. Errors: kIo.
Result<void> write_chrome(const trace::Timeline& timeline, const std::filesystem::path& output);

}  // namespace strobe::exporters
