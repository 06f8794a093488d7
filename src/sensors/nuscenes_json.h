// JSON as nuScenes' tables and result files hold it: hundreds of megabytes of rows, read in place by one pass, without
// a tree. Numbers may be NaN, Infinity and -Infinity, as Python writes them.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>

#include "strobe/base/result.h"

namespace strobe::sensors {

// A file in memory as the system maps it; 16 bytes behind its end can be read, and are 0.
class MappedText {
 public:
  // Errors: kNotFound, kIo, each naming the path.
  static Result<MappedText> open(const std::filesystem::path& path);
  MappedText(MappedText&& other) noexcept;
  MappedText& operator=(MappedText&& other) noexcept;
  MappedText(const MappedText&) = delete;
  MappedText& operator=(const MappedText&) = delete;
  ~MappedText();
  std::string_view text() const { return {data_, size_}; }

 private:
  MappedText() = default;
  void* mapping_ = nullptr;
  size_t mapped_ = 0;
  const char* data_ = "";
  size_t size_ = 0;
};

// Walks a text from its start to its end. The first fault sticks: what is asked after it is zero, empty or false, and
// status() tells the line and what was expected there.
class JsonCursor {
 public:
  // Strings with escapes are kept in `unescaped`; the others are views into the text, which must be followed by 16
  // readable bytes.
  JsonCursor(std::string_view text, std::deque<std::string>& unescaped)
      : first_(text.data()), at_(text.data()), end_(text.data() + text.size()), unescaped_(unescaped) {}

  // An array: begin_array(), then while (next_element()) read one value.
  void begin_array() { open('[', "an array"); }
  bool next_element() { return next(']'); }
  // An object: begin_object(), then while (next_member(key)) read or skip its value.
  void begin_object() { open('{', "an object"); }
  bool next_member(std::string_view& key);

  std::string_view string();
  double number();
  int64_t integer();
  bool boolean();
  // The value here, whatever it is.
  void skip();
  // Whether the value here is a null, which is then read.
  bool null();
  // Numbers of an array that must have as many.
  template <size_t N>
  void numbers(double (&out)[N]) {
    begin_array();
    size_t n = 0;
    while (next_element()) {
      const double v = number();
      if (n < N) out[n] = v;
      ++n;
    }
    if (n != N) fail("an array of " + std::to_string(N) + " numbers, it has " + std::to_string(n));
  }

  // Nothing but space is left.
  void finish();
  bool ok() const { return !failed_; }
  // kBadData: "line 12: expected a number, got \"x\"".
  Result<void> status() const;
  // `expected` is what should have stood here.
  void fail(std::string_view expected);
  // A fault in other words.
  void fault(std::string what);
  size_t line() const;

 private:
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  void open(char bracket, const char* name);
  bool next(char close);
  void skip_nested();

  const char* first_;
  const char* at_;
  const char* end_;
  std::deque<std::string>& unescaped_;
  bool fresh_ = false;  // an array or object was just opened
  bool failed_ = false;
  std::string fault_;
};

}  // namespace strobe::sensors
