// Links: strobe_models
// Bytes as a file in COCO's format: read, written, read again; then its boxes as truth and as detections.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "models/average_precision.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strobe::models;
  auto dataset = parse_coco({reinterpret_cast<const char*>(data), size});
  if (!dataset) return 0;
  if (dataset->is_result_list) {
    if (!dataset->images.empty()) std::abort();
    return 0;
  }
  const auto again = parse_coco(format_coco(*dataset));
  if (!again || again->annotations.size() != dataset->annotations.size()) std::abort();
  for (size_t i = 0; i < again->annotations.size(); ++i)
    if (again->annotations[i].x != dataset->annotations[i].x) std::abort();

  if (const auto aligned = align_detections(*dataset, *dataset))
    for (const auto& category : average_precision(*dataset, aligned->annotations).categories)
      if (category.ap && !(*category.ap >= 0 && *category.ap <= 1)) std::abort();
  return 0;
}
