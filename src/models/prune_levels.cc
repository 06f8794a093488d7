// "0,10,...,90" and "0:90:10" as numbers.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <string_view>

#include "models/prune.h"

namespace strobe::models {
namespace {

Error not_levels(const std::string& text, const std::string& why) {
  return usage_error(fmt::format("levels '{}': {}; expected percent such as 0,10,...,90 or 0:90:10", text, why));
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t end = text.find(at); end != std::string_view::npos; end = text.find(at)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

Result<int> number(const std::string& text, std::string_view part) {
  int value = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
  if (error != std::errc{} || end != part.data() + part.size())
    return not_levels(text, fmt::format("'{}' is no whole number", part));
  if (value < 0 || value > kMostPruned)
    return not_levels(text, fmt::format("{} is not of 0 to {}", value, kMostPruned));
  return value;
}

// first, first + step, ..., last
Result<void> add_range(const std::string& text, int first, int step, int last, std::vector<int>& levels) {
  if (step <= 0 || first > last || (last - first) % step != 0)
    return not_levels(text, fmt::format("steps of {} do not lead from {} to {}", step, first, last));
  for (int level = first; level <= last; level += step) levels.push_back(level);
  return {};
}

}  // namespace

Result<std::vector<int>> parse_levels(const std::string& text) {
  std::vector<int> levels;
  std::string spaceless = text;
  std::erase(spaceless, ' ');
  const auto parts = split(spaceless, ',');
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == "...") {
      if (i < 2 || i + 1 == parts.size() || levels.size() < 2)
        return not_levels(text, "... stands between two levels and a last one");
      STROBE_ASSIGN(const int last, number(text, parts[++i]));
      const int step = levels.back() - levels[levels.size() - 2];
      const int first = levels.back();
      levels.pop_back();
      STROBE_TRY(add_range(text, first, step, last, levels));
    } else if (const auto range = split(parts[i], ':'); range.size() > 1) {
      if (range.size() != 3) return not_levels(text, "a range is first:last:step");
      STROBE_ASSIGN(const int first, number(text, range[0]));
      STROBE_ASSIGN(const int last, number(text, range[1]));
      STROBE_ASSIGN(const int step, number(text, range[2]));
      STROBE_TRY(add_range(text, first, step, last, levels));
    } else {
      STROBE_ASSIGN(const int level, number(text, parts[i]));
      levels.push_back(level);
    }
  }
  if (std::adjacent_find(levels.begin(), levels.end(), std::greater_equal<>()) != levels.end())
    return not_levels(text, "each level has to be above the one before it");
  return levels;
}

}  // namespace strobe::models
