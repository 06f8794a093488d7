// Links: strobe_models
// Bytes as a file of weights: read, written, read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "models/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto content = strobe::models::read_safetensors({reinterpret_cast<const char*>(data), size});
  if (!content) return 0;
  for (const auto& [name, tensor] : content->tensors) {
    int64_t elements = 1;
    for (const int64_t side : tensor.shape) elements *= side;
    if (elements != static_cast<int64_t>(tensor.values.size())) std::abort();
  }
  const auto again = strobe::models::read_safetensors(strobe::models::write_safetensors(*content));
  if (!again || again->tensors.size() != content->tensors.size()) std::abort();
  return 0;
}
