// Fills empty tables of a SQLite file by writing their pages, in the format that https://sqlite.org/fileformat2.html
// describes: rows that come in the order of their rowids need no statement machinery and no search, which together
// take several times as long as the rows themselves.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::trace {

class BulkFile;

// One table's rows, in ascending order of rowid. A row is row(), then a value for each column, in order; the column
// that is the rowid (INTEGER PRIMARY KEY) gets null().
class BulkTable {
 public:
  void row(int64_t rowid) {
    if (columns_ > 0) end_row();
    rowid_ = rowid;
  }
  void null() { types_[columns_++] = 0; }
  void integer(int64_t value);
  void integer_unless(int64_t value, int64_t none) { value == none ? null() : integer(value); }
  // "Not a number" becomes NULL, as SQLite does it.
  void real(double value);
  // To be called once, last. Errors: kIo; kInternal where rowids did not ascend.
  Result<void> finish();

 private:
  friend class BulkFile;
  struct Child {
    uint32_t page;
    int64_t last_rowid;
  };
  // The most columns a table here has.
  static constexpr int kMostColumns = 24;

  BulkTable(BulkFile& file, uint32_t root);
  void end_row();
  void end_leaf();
  // Pages of one level above, whose root is written in its place.
  void write_interior();
  void start_page(bool is_leaf);
  void add_cell(const uint8_t* cell, size_t size);

  BulkFile* file_;
  uint32_t root_;
  std::vector<uint8_t> page_;
  size_t header_ = 0, cells_ = 0, content_ = 0;  // of the page: bytes of its head, cells, where their content begins
  std::vector<Child> children_;
  int64_t rowid_ = 0, last_rowid_ = 0;
  bool has_rows_ = false, is_ordered_ = true;
  int columns_ = 0;
  uint8_t types_[kMostColumns];
  uint8_t body_[8 * kMostColumns];
  size_t body_size_ = 0;
};

// A SQLite file that nobody else has open and whose tables are empty where they are to be filled.
class BulkFile {
 public:
  // Errors: kIo, kInternal (no such file as we make).
  static Result<BulkFile> open(const std::filesystem::path& path);
  BulkFile(const BulkFile&) = delete;
  BulkFile& operator=(const BulkFile&) = delete;
  BulkFile(BulkFile&& other) noexcept;
  BulkFile& operator=(BulkFile&&) = delete;
  ~BulkFile();

  // The table whose root is that page (sqlite_master.rootpage). One at a time.
  BulkTable table(int64_t root_page) { return {*this, static_cast<uint32_t>(root_page)}; }
  // Makes the file's head true. To be called once, last. Errors: kIo.
  Result<void> close();

 private:
  friend class BulkTable;
  BulkFile(int file, size_t page_size, uint32_t pages) : file_(file), page_size_(page_size), pages_(pages) {}
  // Appends a page and tells its number.
  uint32_t append(const std::vector<uint8_t>& page);
  void write_at(uint64_t offset, const uint8_t* bytes, size_t size);
  void flush();

  int file_ = -1;
  size_t page_size_ = 0;
  uint32_t pages_ = 0;
  std::vector<uint8_t> pending_;  // pages that follow each other, up to the last one
  int error_ = 0;                 // of the first write that failed
};

inline void BulkTable::integer(int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  const uint64_t magnitude = value < 0 ? ~bits : bits;
  // Serial types: 8 and 9 are the numbers 0 and 1; 1 to 6 are integers of 1, 2, 3, 4, 6 and 8 bytes.
  uint8_t type = 6;
  int bytes = 8;
  if (bits <= 1) {
    type = static_cast<uint8_t>(8 + bits);
    bytes = 0;
  } else if (magnitude < uint64_t{1} << 7) {
    type = 1, bytes = 1;
  } else if (magnitude < uint64_t{1} << 15) {
    type = 2, bytes = 2;
  } else if (magnitude < uint64_t{1} << 23) {
    type = 3, bytes = 3;
  } else if (magnitude < uint64_t{1} << 31) {
    type = 4, bytes = 4;
  } else if (magnitude < uint64_t{1} << 47) {
    type = 5, bytes = 6;
  }
  types_[columns_++] = type;
  // The value's bytes stand at the front of a word, of which only they count.
  const uint64_t word = bytes == 0 ? 0 : __builtin_bswap64(bits << (64 - 8 * bytes));
  std::memcpy(body_ + body_size_, &word, 8);
  body_size_ += static_cast<size_t>(bytes);
}

inline void BulkTable::real(double value) {
  if (value != value) return null();
  types_[columns_++] = 7;
  uint64_t bits = 0;
  std::memcpy(&bits, &value, 8);
  bits = __builtin_bswap64(bits);
  std::memcpy(body_ + body_size_, &bits, 8);
  body_size_ += 8;
}

}  // namespace strobe::trace
