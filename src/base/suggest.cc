#include "base/suggest.h"

#include <algorithm>
#include <utility>

#include "base/shorten.h"

namespace strobe {

namespace {

// What one line of a message can hold.
constexpr size_t kMostNames = 12;
constexpr size_t kLongestName = 64;

// Levenshtein's distance.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

}  // namespace

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string suggest(std::string_view word, const std::vector<std::string>& names) {
  const std::string* best = nullptr;
  size_t nearest = std::max<size_t>(2, word.size() / 3);
  for (const std::string& name : names) {
    // Lengths that differ by more than that cannot be near; names of kernels have thousands of characters.
    if (std::max(name.size(), word.size()) - std::min(name.size(), word.size()) > nearest) continue;
    const size_t distance = edit_distance(word, name);
    if (best != nullptr ? distance >= nearest : distance > nearest) continue;
    best = &name;
    nearest = distance;
  }
  if (best != nullptr) return "did you mean " + *best + "?";
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i) shown.push_back(shorten(names[i], kLongestName));
  const size_t hidden = names.size() - shown.size();
  return "there are: " + joined(shown) + (hidden > 0 ? " and " + std::to_string(hidden) + " more" : "");
}

}  // namespace strobe
