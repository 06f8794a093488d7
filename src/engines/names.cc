#include "strobe/engines/engine.h"

namespace strobe::engines {

std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::kF32:
      return "f32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kF16:
      return "f16";
    case Precision::kInt8:
      return "i8";
  }
  return "?";
}

std::string_view to_string(Hint hint) {
  return hint == Hint::kLatency ? "latency" : "throughput";
}

}  // namespace strobe::engines
