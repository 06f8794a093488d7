// Links: strobe_predict
// Bytes as layers.csv: read, written, read again; then the paper's features of each list.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "predict/layer_list.h"
#include "predict/paper_features.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strobe::predict;
  const auto lists = parse_layer_lists({reinterpret_cast<const char*>(data), size});
  if (!lists) return 0;
  const auto again = parse_layer_lists(format_layer_lists(*lists));
  if (!again || *again != *lists) std::abort();
  for (const LayerList& list : *lists)
    for (const double value : paper_features(list, 32))
      if (!std::isfinite(value) || value < 0) std::abort();
  return 0;
}
