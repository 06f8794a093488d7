// The process's names: each text once, copied, with a dense id; and the file that says so to readers.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::record {

// Layout of a .names file: a magic, then entries in the order of their ids.
inline constexpr std::string_view kNamesMagic = "STROBENM";
struct NameEntry {
  uint32_t bytes;
  uint32_t crc;  // CRC-32 of the text, which follows
};

class NameTable {
 public:
  // The table of this process; it is never destroyed.
  static NameTable& instance();

  // While a file is open, a new name is in it before its id is returned, so that no record can name what is not there.
  uint32_t intern(std::string_view text);
  // Writes all names to a new file, and later ones as they come. Errors: kIo.
  Result<void> open_file(const std::filesystem::path& path);
  // Tries again what could not be written; false when some names are still missing in the file.
  bool flush();
  // Waits until the disk has the names that are in the file now; others can be made meanwhile. Errors: kIo.
  Result<void> sync();
  // Bytes in the file.
  uint64_t close_file();
  // Locked around fork(), so that the child finds a whole table. The child forgets the parent's file.
  void before_fork() { mutex_.lock(); }
  void after_fork(bool child);

 private:
  bool flush_locked();

  std::mutex mutex_;
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, uint32_t> ids_;
  int file_ = -1;
  size_t written_ = 0;
  uint64_t bytes_ = 0;
  uint64_t reserved_ = 0;
};

// What a category is called in the table of names: "6:strobeinfer" is "infer" of the domain "strobe".
std::string category_text(std::string_view name, std::string_view domain);
struct CategoryText {
  std::string_view name, domain;
};
// Nothing: that is no such text.
std::optional<CategoryText> parse_category(std::string_view text);

// Names by id. Damage is counted in `damaged`; an incomplete last entry is none: its id was never used.
std::vector<std::string> parse_names(std::string_view file, uint64_t& damaged);

}  // namespace strobe::record
