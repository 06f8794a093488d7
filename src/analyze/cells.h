#pragma once

#include <optional>
#include <string>

#include "base/table.h"

namespace strobe::analyze {

inline Cell cell_if(bool present, double value) {
  Cell cell;
  if (present) cell = value;
  return cell;
}
inline Cell cell(std::optional<double> value) {
  return cell_if(value.has_value(), value.value_or(0));
}
// A missing value for an empty text.
inline Cell cell(const std::string& text) {
  Cell cell;
  if (!text.empty()) cell = text;
  return cell;
}

}  // namespace strobe::analyze
