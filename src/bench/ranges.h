// The ranges of one benchmarked process, before any figure is made of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strobe::bench {

// Indices and counts up to here: their sums stay whole numbers, too.
inline constexpr int64_t kMostItems = 1'000'000'000'000;

struct BatchMark {
  int64_t index = 0;
  std::optional<int64_t> items;  // nothing: was pushed with an index, but popped without a count
};

struct RangeTime {
  std::string path;  // "obj_name/range/child"
  double cpu_ms = 0, gpu_ms = 0;
  std::optional<BatchMark> batch = {};
  bool inside = false;  // below a range with a batch index

  bool closed_batch() const { return batch && batch->items; }
};

// Each path once, in the order in which they ended: children before their parents.
using RangeTimes = std::vector<RangeTime>;

// "a/b" of "a/b/c"; empty for a path of one name.
inline std::string_view parent_path(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}
// Whether path is prefix itself or lies below it.
inline bool is_at_or_below(std::string_view path, std::string_view prefix) {
  return path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/');
}

}  // namespace strobe::bench
