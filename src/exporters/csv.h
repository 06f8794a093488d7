// CSV files as RFC 4180 has them: fields with quotes where needed, lines that end in CR LF, a header line.
#pragma once

#include <filesystem>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::exporters {

// Into a folder, which is made, one file a kind of record; or, where the output's name ends in ".csv", the ranges into
// that file. The files replace those of the same names when all of them are complete. Errors: kIo.
Result<void> write_csv(const trace::Timeline& timeline, const std::filesystem::path& output);

}  // namespace strobe::exporters
