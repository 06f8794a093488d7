#include "sensors/nuscenes_json.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/shorten.h"
#include "base/utf8.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace strobe::sensors {

namespace {

constexpr size_t kPadding = 16;
// Bounds the work that nested garbage can ask for.
constexpr int kMaxDepth = 64;

// The quote or backslash at or behind `at`; `end` where there is none. Reads up to 16 bytes behind the end.
const char* quote_or_escape(const char* at, const char* end) {
#ifdef __SSE2__
  for (; at < end; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const auto found = static_cast<unsigned>(_mm_movemask_epi8(
        _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')))));
    if (found != 0) return std::min(at + __builtin_ctz(found), end);
  }
  return end;
#else
  while (at < end && *at != '"' && *at != '\\') ++at;
  return at;
#endif
}

bool is_bare(char c) {
  return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The escape at `at` (a backslash) into `out`; false where it is none.
bool unescape_one(const char*& at, const char* end, std::string& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  const auto hex4 = [end](const char* digits) -> int64_t {
    uint32_t code = 0;
    if (end - digits < 4) return -1;
    const auto read = std::from_chars(digits, digits + 4, code, 16);
    return read.ptr == digits + 4 ? int64_t{code} : -1;
  };
  if (end - at < 2) return false;
  if (const size_t letter = kLetters.find(at[1]); letter != std::string_view::npos) {
    out.push_back(kMeanings[letter]);
    at += 2;
    return true;
  }
  if (at[1] != 'u') return false;
  int64_t code = hex4(at + 2);
  if (code < 0) return false;
  at += 6;
  if (code >= 0xD800 && code < 0xDC00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
    const int64_t low = hex4(at + 2);
    if (low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      at += 6;
    }
  }
  append_utf8(code >= 0xD800 && code < 0xE000 ? 0xFFFD : static_cast<uint32_t>(code), out);
  return true;
}

}  // namespace

Result<MappedText> MappedText::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return not_found(path.string() + ": no such file");
    return io_error_errno(path.string());
  }
  struct stat info {};
  MappedText out;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return io_error(path.string() + ": not a file");
  }
  out.size_ = static_cast<size_t>(info.st_size);
  // A place of zeros that is larger than the file, and the file over its first part.
  out.mapped_ = out.size_ + kPadding;
  out.mapping_ = ::mmap(nullptr, out.mapped_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (out.mapping_ == MAP_FAILED) {
    out.mapping_ = nullptr;
    ::close(fd);
    return io_error_errno(path.string());
  }
  if (out.size_ > 0) {
    void* const at = ::mmap(out.mapping_, out.size_, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
    if (at == MAP_FAILED) {
      ::close(fd);
      return io_error_errno(path.string());
    }
    ::madvise(out.mapping_, out.size_, MADV_SEQUENTIAL);
  }
  ::close(fd);
  out.data_ = static_cast<const char*>(out.mapping_);
  return out;
}

MappedText::MappedText(MappedText&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_(other.mapped_),
      data_(other.data_),
      size_(other.size_) {}

MappedText& MappedText::operator=(MappedText&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedText::~MappedText() {
  if (mapping_) ::munmap(mapping_, mapped_);
}

size_t JsonCursor::line() const {
  return static_cast<size_t>(std::count(first_, at_, '\n')) + 1;
}

void JsonCursor::fault(std::string what) {
  if (failed_) return;
  failed_ = true;
  fault_ = fmt::format("line {}: {}", line(), what);
}

void JsonCursor::fail(std::string_view expected) {
  if (failed_) return;
  if (at_ == end_) return fault(fmt::format("the text ends, expected {}", expected));
  const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
  fault(fmt::format("expected {}, got {}", expected, shorten(rest.substr(0, rest.find_first_of("\r\n")), 40)));
}

Result<void> JsonCursor::status() const {
  if (failed_) return bad_data(fault_);
  return {};
}

void JsonCursor::open(char bracket, const char* name) {
  skip_space();
  if (failed_) return;
  if (at_ == end_ || *at_ != bracket) return fail(name);
  ++at_;
  fresh_ = true;
}

bool JsonCursor::next(char close) {
  skip_space();
  if (failed_) return false;
  const bool first = std::exchange(fresh_, false);
  if (at_ != end_ && *at_ == close) {
    ++at_;
    return false;
  }
  if (first) return true;
  if (at_ == end_ || *at_ != ',') {
    fail(close == ']' ? "',' or ']'" : "',' or '}'");
    return false;
  }
  ++at_;
  skip_space();
  return true;
}

bool JsonCursor::next_member(std::string_view& key) {
  if (!next('}')) return false;
  key = string();
  skip_space();
  if (failed_) return false;
  if (at_ == end_ || *at_ != ':') {
    fail("':'");
    return false;
  }
  ++at_;
  return true;
}

std::string_view JsonCursor::string() {
  skip_space();
  if (failed_) return {};
  if (at_ == end_ || *at_ != '"') {
    fail("a string");
    return {};
  }
  const char* const start = ++at_;
  at_ = quote_or_escape(at_, end_);
  if (at_ != end_ && *at_ == '"') return {start, static_cast<size_t>(at_++ - start)};
  std::string text(start, at_);
  while (at_ != end_ && *at_ == '\\') {
    if (!unescape_one(at_, end_, text)) {
      fail("an escape");
      return {};
    }
    const char* const from = at_;
    at_ = quote_or_escape(at_, end_);
    text.append(from, at_);
  }
  if (at_ == end_) {
    fail("the end of a string");
    return {};
  }
  ++at_;
  return unescaped_.emplace_back(std::move(text));
}

double JsonCursor::number() {
  skip_space();
  if (failed_) return 0;
  double v = 0;
  const auto read = std::from_chars(at_, end_, v);
  // from_chars knows "nan" and "inf" in any case, too; JSON as Python writes it knows three words.
  const bool digits =
      at_ != end_ && (*at_ == '-' ? at_ + 1 != end_ && at_[1] >= '0' && at_[1] <= '9' : *at_ >= '0' && *at_ <= '9');
  if (digits && read.ec == std::errc() && (read.ptr == end_ || !is_bare(*read.ptr))) {
    at_ = read.ptr;
    return v;
  }
  const char* word_end = at_;
  while (word_end != end_ && is_bare(*word_end)) ++word_end;
  const std::string_view word(at_, static_cast<size_t>(word_end - at_));
  if (word == "NaN")
    v = std::numeric_limits<double>::quiet_NaN();
  else if (word == "Infinity")
    v = std::numeric_limits<double>::infinity();
  else if (word == "-Infinity")
    v = -std::numeric_limits<double>::infinity();
  else if (digits && read.ec == std::errc::result_out_of_range && read.ptr == word_end) {
    // Beyond what a double holds, or nearer to zero: the exponent says which.
    const size_t exponent = word.find_first_of("eE");
    const bool tiny = exponent != std::string_view::npos && word.substr(exponent + 1).starts_with('-');
    v = tiny ? 0 : std::numeric_limits<double>::infinity();
    if (word.front() == '-') v = -v;
  } else {
    fail("a number");
    return 0;
  }
  at_ = word_end;
  return v;
}

int64_t JsonCursor::integer() {
  skip_space();
  if (failed_) return 0;
  int64_t v = 0;
  const auto read = std::from_chars(at_, end_, v);
  if (read.ec != std::errc() || (read.ptr != end_ && is_bare(*read.ptr))) {
    fail("an integer");
    return 0;
  }
  at_ = read.ptr;
  return v;
}

bool JsonCursor::boolean() {
  skip_space();
  if (failed_) return false;
  const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
  if (rest.starts_with("true")) return at_ += 4, true;
  if (rest.starts_with("false")) return at_ += 5, false;
  fail("true or false");
  return false;
}

bool JsonCursor::null() {
  skip_space();
  if (failed_ || !std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with("null")) return false;
  at_ += 4;
  return true;
}

void JsonCursor::skip() {
  skip_space();
  if (failed_) return;
  if (at_ == end_) return fail("a value");
  if (*at_ == '[' || *at_ == '{') return skip_nested();
  if (*at_ == '"') {
    string();
    return;
  }
  const char* const start = at_;
  while (at_ != end_ && is_bare(*at_)) ++at_;
  if (at_ == start) fail("a value");
}

void JsonCursor::skip_nested() {
  std::string_view key;
  char open_brackets[kMaxDepth];
  int depth = 0;
  do {
    skip_space();
    if (failed_) return;
    if (at_ != end_ && (*at_ == '[' || *at_ == '{')) {
      if (depth == kMaxDepth) return fail("less deeply nested values");
      open_brackets[depth++] = *at_++;
      fresh_ = true;
    } else {
      skip();
    }
    // The next value, behind what ends here.
    while (depth > 0 && !failed_) {
      const bool more = open_brackets[depth - 1] == '[' ? next_element() : next_member(key);
      if (more) break;
      --depth;
    }
  } while (depth > 0 && !failed_);
}

void JsonCursor::finish() {
  skip_space();
  if (!failed_ && at_ != end_) fail("the end of the text");
}

}  // namespace strobe::sensors
