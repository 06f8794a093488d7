// Links: strobe_importers
// Any bytes as Chrome or PyTorch JSON (or gzip of it): an error of one line, or a sound timeline, whatever the size of
// the blocks in which the bytes come.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "importers/kineto.h"

namespace {

using namespace strobe;

void check(const trace::Timeline& timeline) {
  const auto& ranges = timeline.ranges;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.start_ns[i] < 0 || ranges.end_ns[i] < ranges.start_ns[i]) std::abort();
    if (static_cast<size_t>(ranges.lane[i]) >= timeline.lanes.size()) std::abort();
    if (ranges.parent[i] >= static_cast<int32_t>(ranges.size())) std::abort();
  }
  for (const int32_t range : timeline.arguments.range)
    if (static_cast<size_t>(range) >= ranges.size()) std::abort();
  for (const auto& op : timeline.device_ops)
    if (static_cast<size_t>(op.range) >= ranges.size() || op.launch >= static_cast<int32_t>(ranges.size()))
      std::abort();
  for (const int32_t lane : timeline.marks.lane)
    if (static_cast<size_t>(lane) >= timeline.lanes.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  size_t counts[2] = {0, 0};
  for (const size_t block : {size_t{4096}, size_t{61}}) {
    const auto stream = importers::ByteStream::of_text(text, block);
    const auto timeline = importers::import_kineto(*stream, {});
    if (timeline) {
      check(*timeline);
    } else if (timeline.error().to_string().find('\n') != std::string::npos) {
      std::abort();
    }
    counts[block == 61 ? 1 : 0] = timeline ? timeline->ranges.size() + 1 : 0;
  }
  if (counts[0] != counts[1]) std::abort();
  return 0;
}
