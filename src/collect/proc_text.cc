#include "collect/proc_text.h"

#include <charconv>

#include "base/file.h"

namespace strobe::collect {

namespace {
constexpr std::string_view kSpace = " \t\r\n";
constexpr int kMostCpus = 1 << 16;

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find_first_not_of(separators, at);
    if (begin == std::string_view::npos) break;
    const size_t end = std::min(text.find_first_of(separators, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    at = end;
  }
  return parts;
}
}  // namespace

std::string_view trimmed(std::string_view text) {
  // Device-tree strings end in a NUL byte.
  while (!text.empty() && (text.back() == '\0' || kSpace.find(text.back()) != std::string_view::npos))
    text.remove_suffix(1);
  while (!text.empty() && kSpace.find(text.front()) != std::string_view::npos) text.remove_prefix(1);
  return text;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  return split(text, "\n");
}
std::vector<std::string_view> words_of(std::string_view text) {
  return split(text, kSpace);
}

std::optional<int64_t> number_of(std::string_view text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::string> read_text(const std::filesystem::path& path) {
  auto text = read_file(path);
  if (!text) return std::nullopt;
  std::string content(trimmed(*text));
  if (content.empty()) return std::nullopt;
  return content;
}

std::optional<int64_t> read_number(const std::filesystem::path& path) {
  const auto text = read_text(path);
  return text ? number_of(*text) : std::nullopt;
}

std::map<std::string, std::string> key_values(std::string_view text, char separator) {
  std::map<std::string, std::string> values;
  for (const auto line : lines_of(text)) {
    const size_t at = line.find(separator);
    if (at == std::string_view::npos) continue;
    values.emplace(trimmed(line.substr(0, at)), trimmed(line.substr(at + 1)));
  }
  return values;
}

std::vector<int> cpu_list(std::string_view text) {
  std::vector<int> cpus;
  for (const auto part : split(trimmed(text), ",")) {
    const size_t dash = part.find('-');
    const auto first = number_of(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_of(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMostCpus) return {};
    for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

}  // namespace strobe::collect
