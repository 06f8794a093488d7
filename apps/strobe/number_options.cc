#include "number_options.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>

namespace strobe::app {
namespace {

// What is wrong with it; empty: nothing.
std::string wrong_whole(const std::string& text, bool is_unsigned) {
  const char* const expected = is_unsigned ? "expected a whole number of 0 or more" : "expected a whole number";
  const size_t digits = text.find_first_not_of("+-");
  const bool negative = text.starts_with('-');
  if (digits == std::string::npos || digits > 1 || (negative && is_unsigned)) return text + ": " + expected;
  char* end = nullptr;
  errno = 0;
  if (is_unsigned)
    (void)std::strtoull(text.c_str(), &end, 0);
  else
    (void)std::strtoll(text.c_str(), &end, 0);
  if (end == text.c_str() || *end != '\0') return text + ": " + expected;
  return errno == ERANGE ? text + ": does not fit; " + expected + " of at most 64 bits" : "";
}

std::string wrong_real(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || std::isnan(value)) return text + ": expected a number";
  return std::isinf(value) ? text + ": expected a finite number" : "";
}

}  // namespace

void check_number_options(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    const std::string type = option->get_type_name();
    if (type.starts_with("UINT"))
      option->check([](const std::string& text) { return wrong_whole(text, true); });
    else if (type.starts_with("INT"))
      option->check([](const std::string& text) { return wrong_whole(text, false); });
    else if (type.starts_with("FLOAT"))
      option->check([](const std::string& text) { return wrong_real(text); });
  }
  for (CLI::App* command : app.get_subcommands({})) check_number_options(*command);
}

}  // namespace strobe::app
