// A file that SQLite writes: it appears under its name when it is complete.
#pragma once

#include <filesystem>
#include <functional>

#include "strobe/base/result.h"

namespace strobe::trace {

// Calls write with a name beside path at which an empty file lies, and renames that file when write succeeded; else
// the file is removed and an older one at path stays. Errors: those of write and kIo, with the path.
Result<void> write_new_file(const std::filesystem::path& path,
                            const std::function<Result<void>(const std::filesystem::path& temporary)>& write);

}  // namespace strobe::trace
