#include "base/shorten.h"

#include <algorithm>
#include <vector>

namespace strobe {

namespace {

constexpr std::string_view kEllipsis = "…";

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

size_t length_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

// How deep in brackets each byte lies; an opening and its closing bracket count to the outside. Empty when they do not
// match (an "operator<", an arrow), since then nothing can be left out safely.
std::vector<size_t> depths(std::string_view text, char open, char close) {
  std::vector<size_t> depth(text.size());
  size_t now = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == close && now-- == 0) return {};
    depth[i] = now;
    if (text[i] == open) ++now;
  }
  return now == 0 ? depth : std::vector<size_t>{};
}

// Whatever lies `least` brackets deep or deeper, replaced by one ellipsis a group.
std::string without(std::string_view text, const std::vector<size_t>& depth, size_t least) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (depth[i] < least) {
      out += text[i];
    } else if (i == 0 || depth[i - 1] < least) {
      out += kEllipsis;
    }
  }
  return out;
}

// "(anonymous namespace)" is part of a name, not its parameters.
std::string without_parameters(std::string_view text) {
  static constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::string plain(text);
  for (size_t at = plain.find(kAnonymous); at != std::string::npos; at = plain.find(kAnonymous, at))
    plain.replace(at, kAnonymous.size(), "anonymous");
  const std::vector<size_t> depth = depths(plain, '(', ')');
  return depth.empty() ? plain : without(plain, depth, 1);
}

std::string without_middle(std::string_view text, size_t limit) {
  const size_t kept = limit > 0 ? limit - 1 : 0;
  const size_t head = kept - kept / 3;
  std::string out;
  size_t seen = 0;
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (begins_character(text[at]) && seen++ == head) break;
    out += text[at];
  }
  out += kEllipsis;
  size_t start = text.size();
  for (size_t left = kept / 3; left > 0 && start > at; left -= begins_character(text[start]) ? 1 : 0) --start;
  return out.append(text.substr(start));
}

}  // namespace

std::string shorten(std::string_view text, size_t limit) {
  if (length_of(text) <= limit) return std::string(text);
  std::string best = without_parameters(text);
  if (length_of(best) <= limit) return best;
  const std::vector<size_t> depth = depths(best, '<', '>');
  const size_t deepest = depth.empty() ? 0 : *std::max_element(depth.begin(), depth.end());
  for (size_t least = deepest; least > 0; --least) {
    std::string shorter = without(best, depth, least);
    // An outermost list of arguments is worth its beginning: "gemm<float, 128, …" says more than "gemm<…>".
    if (length_of(shorter) <= limit) return shorter;
    if (least == 1) best = std::move(shorter);
  }
  return length_of(best) <= limit ? best : without_middle(best, limit);
}

}  // namespace strobe
