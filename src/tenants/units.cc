#include "tenants/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>

namespace strobe::tenants {
namespace {

using Unit = std::pair<std::string_view, double>;

// A number of at least 0 and one of the units; nothing when it is none.
Result<double> parse(std::string_view text, std::initializer_list<Unit> units, const char* expected) {
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault == std::errc() && std::isfinite(number) && number >= 0) {
    std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    for (const auto& [name, factor] : units)
      if (rest == name) return number * factor;
  }
  return usage_error(fmt::format("\"{}\": expected {}", text, expected));
}

}  // namespace

Result<double> parse_duration(std::string_view text) {
  STROBE_ASSIGN(const double seconds, parse(text, {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}},
                                            "a time with its unit, as 250us, 5ms, 1.5s, 2min or 1h"));
  constexpr double kYear = 365.0 * 24 * 3600;  // nanoseconds of it fit into 64 bits
  if (seconds > kYear) return usage_error(fmt::format("\"{}\": more than a year", text));
  return seconds;
}

Result<double> parse_rate(std::string_view text) {
  STROBE_ASSIGN(const double rate, parse(text, {{"", 1}, {"Hz", 1}, {"fps", 1}}, "frames a second, as 10 or 10Hz"));
  if (rate <= 0 || rate > 1e5) return usage_error(fmt::format("\"{}\": expected a rate above 0, at most 100000", text));
  return rate;
}

Result<int64_t> parse_bytes(std::string_view text) {
  STROBE_ASSIGN(
      const double bytes,
      parse(text,
            {{"", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}},
            "an amount of memory, as 512MiB or 2GiB"));
  if (bytes > 9e18) return usage_error(fmt::format("\"{}\": more than any machine has", text));
  return static_cast<int64_t>(bytes);
}

}  // namespace strobe::tenants
