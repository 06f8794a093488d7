// Links: strobe_measure
// The configuration of a profile, its lines of measurements and its calibration: refused, or sound.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "measure/device_calibration.h"
#include "measure/measurement_file.h"
#include "measure/profile_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strobe::measure;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto config = read_profile_config(text, "/folder")) {
    for (const int level : config->levels)
      if (level < 0 || level > 95) std::abort();
    for (const int64_t batch : config->batch_sizes)
      if (batch < 1) std::abort();
  }
  ProfileConfig config;
  for (const char* key : {"networks", "levels", "batch_sizes"}) (void)set_in_profile(config, key, text);
  if (const auto row = parse_measurement_line(text)) {
    // What was read is written so that it is read as the same.
    const auto again = parse_measurement_line(measurement_line(*row));
    if (!again || !(again->key == row->key)) std::abort();
  }
  if (const auto found = parse_calibration(text); found && !(found->launch_us > 0)) std::abort();
  return 0;
}
