// Links: strobe_predict
// Bytes as a fitted model: asked about a network, written, read again, asked once more.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "predict/model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strobe::predict;
  const auto model = parse_model({reinterpret_cast<const char*>(data), size});
  if (!model) return 0;
  const LayerRow conv{LayerKind::kConv, 4, 8, 3, 3, 1, 1, 1, 1, 1, 16, 16, 16, 16, false, false, {-1}};
  const LayerList list{"net", 0, {conv}};
  const auto again = parse_model(format_model(*model));
  if (!again) std::abort();
  for (const int64_t batch : {1, 32}) {
    const double a = model->predictor->predict(list, batch).value, b = again->predictor->predict(list, batch).value;
    if (std::memcmp(&a, &b, sizeof a) != 0) std::abort();
  }
  return 0;
}
