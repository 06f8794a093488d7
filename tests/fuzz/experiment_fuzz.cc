// Links: strobe_tenants
// An experiment's file: whatever stands in it, there is an experiment or an error of one line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tenants/experiment.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto experiment = strobe::tenants::read_experiment(text, "/nonexistent");
  if (!experiment) {
    if (experiment.error().exit_code() != 2) std::abort();
    return 0;
  }
  if (experiment->cells.empty()) std::abort();
  for (const auto& cell : experiment->cells) {
    if (cell.spec.tenants.empty() || cell.folder.empty() || cell.folder.size() > 200) std::abort();
    if (cell.folder.find('/') != std::string::npos) std::abort();
  }
  return 0;
}
