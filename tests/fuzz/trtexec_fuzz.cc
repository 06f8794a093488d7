// Links: strobe_importers
// Any bytes as JSON of trtexec: an error of one line, or a sound timeline.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "importers/trtexec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strobe;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)importers::looks_like_trtexec(text);
  const auto stream = importers::ByteStream::of_text(text);
  const auto timeline = importers::import_trtexec(*stream, {});
  if (!timeline) {
    if (timeline.error().to_string().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  for (size_t i = 0; i < timeline->ranges.size(); ++i)
    if (timeline->ranges.end_ns[i] < timeline->ranges.start_ns[i] || timeline->ranges.start_ns[i] < 0) std::abort();
  for (const auto& kernel : timeline->kernels)
    for (const int32_t layer : kernel.layers)
      if (static_cast<size_t>(layer) >= timeline->layers.size()) std::abort();
  return 0;
}
