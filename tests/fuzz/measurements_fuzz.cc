// Links: strobe_predict
// Bytes as measurements.csv, joined with the list of one network: every row of the quantity is used or counted.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "predict/measurements.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strobe::predict;
  const auto measurements = parse_measurements({reinterpret_cast<const char*>(data), size});
  if (!measurements) return 0;
  for (const Quantity quantity : {Quantity::kLatency, Quantity::kMemory}) {
    const auto dataset = join({{"net", 0, {}}}, *measurements, quantity);
    if (!dataset) continue;
    size_t rows = 0;
    for (const Measurement& measured : *measurements) rows += measured.quantity == to_string(quantity) ? 1 : 0;
    if (dataset->samples.size() + static_cast<size_t>(dataset->rows_without_layers) != rows) std::abort();
    if (dataset->note().empty() != (dataset->rows_without_layers == 0)) std::abort();
    for (const Sample& sample : dataset->samples)
      if (sample.passed && !(sample.value > 0)) std::abort();
  }
  return 0;
}
