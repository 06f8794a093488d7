#include "report/level_of_detail.h"

#include <algorithm>
#include <unordered_map>

namespace strobe::report {

using trace::Ranges;

namespace {

int64_t start_of(const Ranges& ranges, int32_t range) {
  return ranges.start_ns[static_cast<size_t>(range)];
}
int64_t end_of(const Ranges& ranges, int32_t range) {
  return ranges.end_ns[static_cast<size_t>(range)];
}

bool stands_alone(const Ranges& ranges, int32_t range, const Detail& detail) {
  const int64_t start = start_of(ranges, range);
  return end_of(ranges, range) - start >= detail.shortest_ns ||
         (start >= detail.full_from_ns && start < detail.full_until_ns);
}

// Calls alone(range) for each that stands for itself and together(first, behind) for neighbours in `row` that start in
// the same stretch of shortest_ns; a single one of those stands for itself.
template <typename Alone, typename Together>
void divide(const Ranges& ranges, const std::vector<int32_t>& row, const Detail& detail, Alone alone,
            Together together) {
  for (size_t i = 0; i < row.size();) {
    if (stands_alone(ranges, row[i], detail)) {
      alone(row[i++]);
      continue;
    }
    const int64_t until = (start_of(ranges, row[i]) / detail.shortest_ns + 1) * detail.shortest_ns;
    const size_t first = i++;
    while (i < row.size() && start_of(ranges, row[i]) < until && !stands_alone(ranges, row[i], detail)) ++i;
    if (i == first + 1)
      alone(row[first]);
    else
      together(first, i);
  }
}

}  // namespace

Detail choose_detail(const Ranges& ranges, const std::vector<const std::vector<int32_t>*>& rows, size_t most,
                     int64_t from_ns) {
  Detail detail;
  size_t all = 0;
  std::vector<int64_t> starts;  // from from_ns on
  for (const auto* row : rows) all += row->size();
  if (all <= most) return detail;
  for (const auto* row : rows)
    for (const int32_t range : *row)
      if (start_of(ranges, range) >= from_ns) starts.push_back(start_of(ranges, range));
  const size_t in_full = std::min(most / 3, starts.size());
  if (in_full > 0) {
    const auto behind = starts.begin() + static_cast<std::ptrdiff_t>(in_full - 1);
    std::nth_element(starts.begin(), behind, starts.end());
    detail.full_from_ns = from_ns;
    detail.full_until_ns = *behind;
  }
  constexpr int64_t kFinest_ns = 1000, kCoarsest_ns = int64_t{1} << 60;
  for (detail.shortest_ns = kFinest_ns; detail.shortest_ns < kCoarsest_ns;
       detail.shortest_ns += detail.shortest_ns / 2) {
    size_t boxes = 0;
    detail.drawn_together = 0;
    for (const auto* row : rows)
      divide(
          ranges, *row, detail, [&](int32_t) { ++boxes; },
          [&](size_t first, size_t behind) {
            ++boxes;
            detail.drawn_together += behind - first;
          });
    if (boxes <= most) break;
  }
  return detail;
}

std::vector<Box> boxes_of(const Ranges& ranges, const std::vector<int32_t>& row, const Detail& detail) {
  std::vector<Box> boxes;
  std::unordered_map<trace::StringId, int64_t> time_of_name;
  divide(
      ranges, row, detail,
      [&](int32_t range) {
        const int64_t start = start_of(ranges, range), end = end_of(ranges, range);
        boxes.push_back({range, start, end, end - start, 1});
      },
      [&](size_t first, size_t behind) {
        Box box{row[first], start_of(ranges, row[first]), 0, 0, static_cast<int64_t>(behind - first)};
        time_of_name.clear();
        int64_t most = -1;
        for (size_t i = first; i < behind; ++i) {
          const int64_t length = end_of(ranges, row[i]) - start_of(ranges, row[i]);
          int64_t& time = time_of_name[ranges.name[static_cast<size_t>(row[i])]];
          box.busy_ns += length;
          if ((time += length) > most) most = time, box.range = row[i];
          box.end_ns = std::max(box.end_ns, end_of(ranges, row[i]));
        }
        boxes.push_back(box);
      });
  return boxes;
}

}  // namespace strobe::report
