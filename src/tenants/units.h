// Quantities as people write them.
#pragma once

#include <cstdint>
#include <string_view>

#include "strobe/base/result.h"

namespace strobe::tenants {

// "250us", "5ms", "1.5s", "2min", "1h" in seconds. Errors: kUsage, also for a number without a unit, below 0 or not
// finite.
Result<double> parse_duration(std::string_view text);
// "10", "10Hz" in frames a second, above 0. Errors: kUsage.
Result<double> parse_rate(std::string_view text);
// "512MiB", "2GiB", "1000000" in bytes. Errors: kUsage.
Result<int64_t> parse_bytes(std::string_view text);

}  // namespace strobe::tenants
