// The names by which ROS 2's middleware knows topics and types; the plugin has them, too.
#include <fmt/format.h>

#include <cctype>
#include <string_view>
#include <vector>

#include "sensors/dds.h"

namespace strobe::sensors {

namespace {

bool is_word(std::string_view word) {
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word.front())) != 0) return false;
  for (const char c : word)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  return true;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = 0;;) {
    const size_t end = text.find('/', at);
    words.push_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return words;
    at = end + 1;
  }
}

}  // namespace

Result<std::string> dds_topic_name(const std::string& ros_topic) {
  const std::string_view bare = std::string_view(ros_topic).substr(ros_topic.starts_with('/') ? 1 : 0);
  for (const std::string_view word : split(bare)) {
    if (!is_word(word)) {
      return usage_error(fmt::format("topic '{}': expected words of letters, digits and _ with / between", ros_topic));
    }
  }
  return "rt/" + std::string(bare);
}

Result<std::string> dds_type_name(const std::string& ros_type) {
  const auto words = split(ros_type);
  const bool is_long = words.size() == 3 && (words[1] == "msg" || words[1] == "srv" || words[1] == "action");
  if ((!is_long && words.size() != 2) || !is_word(words.front()) || !is_word(words.back()))
    return usage_error(fmt::format("type '{}': expected package/msg/Name", ros_type));
  return fmt::format("{}::{}::dds_::{}_", words.front(), is_long ? words[1] : "msg", words.back());
}

}  // namespace strobe::sensors
