#include "base/yaml/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

namespace strobe::yaml {

Error wrong_at(const YAML::Mark& mark, const std::string& message) {
  return bad_data(mark.is_null() ? " " + message : fmt::format("{}:{}: {}", mark.line + 1, mark.column + 1, message));
}

Error wrong(const YAML::Node& node, const std::string& message) {
  return wrong_at(node.Mark(), message);
}

Result<Entries> entries(const YAML::Node& node, const std::string& what) {
  if (!node.IsMap()) return wrong(node, fmt::format("{}: expected keys and values", what));
  Entries all;
  std::set<std::string> keys;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) return wrong(entry.first, fmt::format("{}: a key must be a word", what));
    if (!keys.insert(entry.first.Scalar()).second)
      return wrong(entry.first, fmt::format("{}: '{}' stands here twice", what, entry.first.Scalar()));
    all.emplace_back(entry.first, entry.second);
  }
  return all;
}

Result<std::string> text(const YAML::Node& node) {
  if (!node.IsScalar()) return wrong(node, "expected one value");
  if (node.Scalar().find('\0') != std::string::npos) return wrong(node, "has a null character");
  return node.Scalar();
}

Result<void> words(const YAML::Node& node, std::string& into) {
  STROBE_ASSIGN(into, text(node));
  return {};
}

Result<void> list(const YAML::Node& node, std::vector<std::string>& into) {
  into.clear();
  if (!node.IsSequence()) {
    STROBE_ASSIGN(into.emplace_back(), text(node));
    return {};
  }
  for (const auto& item : node) {
    STROBE_ASSIGN(into.emplace_back(), text(item));
  }
  return {};
}

Result<void> flag(const YAML::Node& node, bool& into) {
  if (!node.IsScalar() || !YAML::convert<bool>::decode(node, into)) return wrong(node, "expected true or false");
  return {};
}

Result<void> number(const YAML::Node& node, double least, double most, double& into) {
  double value = 0;
  if (!node.IsScalar() || !YAML::convert<double>::decode(node, value) || !std::isfinite(value) || value < least ||
      value > most)
    return wrong(node, fmt::format("expected a number from {} to {}", least, most));
  into = value;
  return {};
}

Result<void> fraction(const YAML::Node& node, float& into) {
  double value = 0;
  STROBE_TRY(number(node, 0, 1, value));
  into = static_cast<float>(value);
  return {};
}

Result<int64_t> whole_number(const YAML::Node& node, int64_t least, int64_t most) {
  int64_t value = 0;
  if (!node.IsScalar() || !YAML::convert<int64_t>::decode(node, value) || value < least || value > most)
    return wrong(node, most == INT64_MAX ? fmt::format("expected a whole number of at least {}", least)
                                         : fmt::format("expected a whole number from {} to {}", least, most));
  return value;
}

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= 60 && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  });
}

}  // namespace strobe::yaml
