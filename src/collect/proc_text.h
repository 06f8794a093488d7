// Small readers for the text files under /proc and /sys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strobe::collect {

std::string_view trimmed(std::string_view text);
std::vector<std::string_view> lines_of(std::string_view text);
std::vector<std::string_view> words_of(std::string_view text);
// The whole text as a number; nothing for "max", "" or "12 kB".
std::optional<int64_t> number_of(std::string_view text);

// The trimmed content; nothing when the file is absent, unreadable or empty.
std::optional<std::string> read_text(const std::filesystem::path& path);
std::optional<int64_t> read_number(const std::filesystem::path& path);

// "key<separator>value" lines, both sides trimmed; the first of a key counts.
std::map<std::string, std::string> key_values(std::string_view text, char separator);

// A Linux list of CPUs: "0-3,8" is 0 1 2 3 8. Empty for text that is no such list.
std::vector<int> cpu_list(std::string_view text);

}  // namespace strobe::collect
