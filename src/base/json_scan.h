// A JSON scanner for traces: one pass over text in place, values as views, no tree. It is lenient where trace writers
// are careless (inf and nan, unknown escapes, control characters in strings) and strict about structure, so that torn
// text is noticed. The text must be followed by 16 readable bytes.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace strobe::json {

enum class Scan : uint8_t {
  kDone,
  kBad,   // no JSON
  kMore,  // the text ends inside
};

enum class Type : uint8_t {
  kNone,
  kString,
  kEscaped,
  kBare,
  kObject,
  kArray
};  // kBare: number, true, false, null, nan

struct Value {
  Type type = Type::kNone;
  std::string_view text;  // between the quotes of a string (kEscaped: still with its backslashes); else all of it
  bool is_string() const { return type == Type::kString || type == Type::kEscaped; }
};

inline bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

inline const char* skip_space(const char* at, const char* end) {
  while (at != end && is_space(*at)) ++at;
  return at;
}

// The quote that ends the string whose first character is at `at`; nullptr: none before `end`.
inline const char* end_of_string(const char* at, const char* end, bool& escaped) {
  while (at < end) {
#ifdef __SSE2__
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i found =
        _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(found));
    if (mask == 0) {
      at += 16;
      continue;
    }
    at += __builtin_ctz(mask);
    if (at >= end) return nullptr;
#else
    if (*at != '"' && *at != '\\') {
      ++at;
      continue;
    }
#endif
    if (*at == '"') return at;
    escaped = true;
    at += 2;
  }
  return nullptr;
}

// The end of an array or object that begins at `at`; on anything but kDone `at` is void.
Scan skip_nested(const char*& at, const char* end);

// The value at `at`, which is no space; `at` is then behind it.
inline Scan scan_value(const char*& at, const char* end, Value& value) {
  if (at == end) return Scan::kMore;
  const char* const first = at;
  switch (*at) {
    case '"': {
      bool escaped = false;
      const char* quote = end_of_string(at + 1, end, escaped);
      if (!quote) return Scan::kMore;
      value = {escaped ? Type::kEscaped : Type::kString, {first + 1, static_cast<size_t>(quote - first - 1)}};
      at = quote + 1;
      return Scan::kDone;
    }
    case '{':
    case '[': {
      const Scan result = skip_nested(at, end);
      if (result != Scan::kDone) return result;
      value = {*first == '{' ? Type::kObject : Type::kArray, {first, static_cast<size_t>(at - first)}};
      return Scan::kDone;
    }
    default: {
      const auto is_bare = [](char c) {
        return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || (c >= 'a' && c <= 'z') ||
               (c >= 'A' && c <= 'Z') || c == '#' || c == '(' || c == ')';
      };
      while (at != end && is_bare(*at)) ++at;
      if (at == first) return Scan::kBad;
      if (at == end) return Scan::kMore;
      value = {Type::kBare, {first, static_cast<size_t>(at - first)}};
      return Scan::kDone;
    }
  }
}

// Members of the object that begins at `at`: calls on_member(key, at, end), which scans the value that begins at `at`.
// Keys are taken as they stand.
template <typename OnMember>
Scan scan_object(const char*& at, const char* end, OnMember&& on_member) {
  if (at == end) return Scan::kMore;
  if (*at != '{') return Scan::kBad;
  at = skip_space(at + 1, end);
  if (at != end && *at == '}') {
    ++at;
    return Scan::kDone;
  }
  for (;;) {
    if (at == end) return Scan::kMore;
    if (*at != '"') return Scan::kBad;
    bool escaped = false;
    const char* const quote = end_of_string(at + 1, end, escaped);
    if (!quote) return Scan::kMore;
    const std::string_view key(at + 1, static_cast<size_t>(quote - at - 1));
    at = skip_space(quote + 1, end);
    if (at == end) return Scan::kMore;
    if (*at != ':') return Scan::kBad;
    at = skip_space(at + 1, end);
    if (const Scan result = on_member(key, at, end); result != Scan::kDone) return result;
    at = skip_space(at, end);
    if (at == end) return Scan::kMore;
    if (*at == '}') {
      ++at;
      return Scan::kDone;
    }
    if (*at != ',') return Scan::kBad;
    at = skip_space(at + 1, end);
  }
}

// A string's text with its escapes resolved; what is no escape stays as it is. Surrogates that do not pair become
// U+FFFD.
std::string unescape(std::string_view text);

}  // namespace strobe::json
