// Links: strobe_importers
// Any bytes as a log of nvprof: an error of one line, or tables with whole rows.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "importers/nvprof.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strobe;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)importers::looks_like_nvprof(text);
  const auto stream = importers::ByteStream::of_text(text, 256);
  const auto timeline = importers::import_nvprof(*stream, {});
  if (!timeline) {
    if (timeline.error().to_string().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  for (const Table& table : timeline->tables)
    for (const auto& row : table.rows())
      if (row.size() != table.columns().size()) std::abort();
  for (size_t i = 0; i < timeline->ranges.size(); ++i)
    if (timeline->ranges.end_ns[i] < timeline->ranges.start_ns[i] || timeline->ranges.start_ns[i] < 0) std::abort();
  return 0;
}
