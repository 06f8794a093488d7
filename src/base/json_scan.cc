#include "base/json_scan.h"

#include <charconv>

#include "base/utf8.h"

namespace strobe::json {
namespace {

// Bounds the work that nested garbage can ask for.
constexpr size_t kMaxDepth = 64;

// The four digits behind "\u" at `at`; -1 where there are none.
int64_t hex4(std::string_view text, size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return -1;
  uint32_t code = 0;
  const char* const first = text.data() + at + 2;
  const auto result = std::from_chars(first, first + 4, code, 16);
  return result.ptr == first + 4 ? int64_t{code} : -1;
}

}  // namespace

Scan skip_nested(const char*& at, const char* end) {
  uint64_t objects = 0;  // one bit an open bracket, the innermost lowest: 1 is an object
  size_t depth = 0;
  for (; at < end; ++at) {
    switch (*at) {
      case '"': {
        bool escaped = false;
        at = end_of_string(at + 1, end, escaped);
        if (!at) return Scan::kMore;
        break;
      }
      case '{':
      case '[':
        if (++depth > kMaxDepth) return Scan::kBad;
        objects = objects << 1 | (*at == '{' ? 1U : 0U);
        break;
      case '}':
      case ']':
        if ((objects & 1U) != (*at == '}' ? 1U : 0U)) return Scan::kBad;
        objects >>= 1;
        if (--depth == 0) {
          ++at;
          return Scan::kDone;
        }
        break;
      default:
        break;
    }
  }
  return Scan::kMore;
}

std::string unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (const size_t letter = kLetters.find(text[i + 1]); letter != std::string_view::npos) {
      out.push_back(kMeanings[letter]);
      ++i;
      continue;
    }
    int64_t code = hex4(text, i);
    if (code < 0) {
      out.push_back('\\');
      continue;
    }
    i += 5;
    if (code >= 0xD800 && code < 0xDC00) {
      const int64_t low = hex4(text, i + 1);
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        i += 6;
      }
    }
    if (code >= 0xD800 && code < 0xE000) code = 0xFFFD;
    append_utf8(static_cast<uint32_t>(code), out);
  }
  return out;
}

}  // namespace strobe::json
