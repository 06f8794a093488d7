// Reading STROBE_RANGE, of which a trace may have tens of millions of rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::trace {

struct RangeTable {
  std::filesystem::path path;
  uint64_t file_size = 0;
  uint64_t count = 0;  // of rows, as the file says
  size_t lane_count = 0;
  const std::vector<StringId>* strings = nullptr;  // by id in the file
};

// All rows, in parts by as many threads; a part has a connection of its own. Errors: kBadData that names the row.
Result<Ranges> read_ranges(const RangeTable& table);

}  // namespace strobe::trace
