// Values of a YAML file, each read or refused at its line and column.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::yaml {

// "3:5: message", or " message" where the place is not known (a value that was made, not read).
Error wrong_at(const YAML::Mark& mark, const std::string& message);
Error wrong(const YAML::Node& node, const std::string& message);

using Entries = std::vector<std::pair<YAML::Node, YAML::Node>>;
// Keys and values in the file's order. Errors: not a map, a key that is no word or stands twice.
Result<Entries> entries(const YAML::Node& node, const std::string& what);

Result<std::string> text(const YAML::Node& node);
Result<void> words(const YAML::Node& node, std::string& into);
Result<void> list(const YAML::Node& node, std::vector<std::string>& into);  // or one word
Result<void> flag(const YAML::Node& node, bool& into);
Result<void> number(const YAML::Node& node, double least, double most, double& into);
Result<void> fraction(const YAML::Node& node, float& into);  // 0..1
Result<int64_t> whole_number(const YAML::Node& node, int64_t least, int64_t most);
template <typename T>
Result<void> whole(const YAML::Node& node, int64_t least, int64_t most, T& into) {
  STROBE_ASSIGN(const int64_t value, whole_number(node, least, most));
  into = static_cast<T>(value);
  return {};
}

// Letters, digits, _ and -, at most 60.
bool is_name(const std::string& text);

}  // namespace strobe::yaml
