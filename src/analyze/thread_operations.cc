#include "analyze/thread_operations.h"

#include <algorithm>
#include <limits>
#include <thread>

namespace strobe::analyze {

using trace::kNone;

namespace {

bool is_before(const Operation& a, const Operation& b) {
  return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns < b.end_ns;
}

class Splitter {
 public:
  Splitter(const trace::Ranges& ranges, int32_t lane, std::span<const int64_t> cuts, std::span<const Wait> waits)
      : ranges_(ranges), lane_(lane), cuts_(cuts), waits_(waits) {}

  LargeVector<Operation> split(std::span<const int32_t> of_lane) {
    made_.reserve(of_lane.size() + of_lane.size() / 2 + cuts_.size());
    for (const int32_t range : of_lane) {
      const int64_t start = ranges_.start_ns[static_cast<size_t>(range)], end = end_of(range);
      close_until(start);
      if (!open_.empty() && at_ < start) emit(at_, start, open_.back().range);
      at_ = std::max(at_, start);
      // What overlaps without nesting gives way to what began later.
      while (!open_.empty() && open_.back().end_ns < end) open_.pop_back();
      if (end == start)
        emit_moment(start, range);
      else
        open_.push_back({end, range});
    }
    close_until(std::numeric_limits<int64_t>::max());
    return std::move(made_);
  }

 private:
  struct Open {
    int64_t end_ns;
    int32_t range;
  };
  int64_t end_of(int32_t range) const { return ranges_.end_ns[static_cast<size_t>(range)]; }

  void close_until(int64_t time) {
    while (!open_.empty() && open_.back().end_ns <= time) {
      const Open closed = open_.back();
      if (closed.end_ns > at_) emit(at_, closed.end_ns, closed.range);
      at_ = std::max(at_, closed.end_ns);
      open_.pop_back();
    }
  }

  const Wait* wait_at(int64_t time) {
    while (next_wait_ < waits_.size() && waits_[next_wait_].end_ns <= time) waited_in_ = waits_[next_wait_++].range;
    return next_wait_ < waits_.size() ? &waits_[next_wait_] : nullptr;
  }

  void push(int64_t start, int64_t end, int32_t range) {
    made_.push_back({start, end, range, lane_, waited_in_});
    waited_in_ = kNone;
  }

  void emit(int64_t start, int64_t end, int32_t range) {
    while (start < end) {
      const Wait* wait = wait_at(start);
      if (wait && wait->start_ns <= start) {
        waited_in_ = wait->range;
        start = std::min(end, wait->end_ns);
        continue;
      }
      int64_t limit = wait ? std::min(end, wait->start_ns) : end;
      while (next_cut_ < cuts_.size() && cuts_[next_cut_] <= start) ++next_cut_;
      if (next_cut_ < cuts_.size()) limit = std::min(limit, cuts_[next_cut_]);
      push(start, limit, range);
      start = limit;
    }
  }

  // A range without duration, unless it lies in a wait.
  void emit_moment(int64_t time, int32_t range) {
    const Wait* wait = wait_at(time);
    if (!wait || wait->start_ns >= time) push(time, time, range);
  }

  const trace::Ranges& ranges_;
  const int32_t lane_;
  const std::span<const int64_t> cuts_;
  const std::span<const Wait> waits_;
  LargeVector<Operation> made_;
  std::vector<Open> open_;
  int64_t at_ = std::numeric_limits<int64_t>::min();
  size_t next_cut_ = 0, next_wait_ = 0;
  int32_t waited_in_ = kNone;
};

// Of the lists' heads the first one stays at the top of a heap.
void merge_part(std::vector<std::span<const Operation>> lists, Operation* to) {
  struct Head {
    const Operation* at;
    const Operation* end;
    size_t list;
  };
  std::vector<Head> heap;
  for (size_t i = 0; i < lists.size(); ++i)
    if (!lists[i].empty()) heap.push_back({lists[i].data(), lists[i].data() + lists[i].size(), i});
  const auto goes_first = [](const Head& a, const Head& b) {
    if (is_before(*a.at, *b.at)) return true;
    return !is_before(*b.at, *a.at) && a.list < b.list;
  };
  const auto sift = [&](size_t place) {
    for (;;) {
      size_t least = place;
      for (const size_t child : {2 * place + 1, 2 * place + 2})
        if (child < heap.size() && goes_first(heap[child], heap[least])) least = child;
      if (least == place) return;
      std::swap(heap[place], heap[least]);
      place = least;
    }
  };
  for (size_t i = heap.size(); i-- > 0;) sift(i);
  while (heap.size() > 1) {
    const Head& second = heap.size() == 2 || goes_first(heap[1], heap[2]) ? heap[1] : heap[2];
    Head& top = heap[0];
    do {
      *to++ = *top.at++;
    } while (top.at != top.end && goes_first(top, second));
    if (top.at == top.end) {
      top = heap.back();
      heap.pop_back();
    }
    sift(0);
  }
  if (!heap.empty()) std::copy(heap[0].at, heap[0].end, to);
}

}  // namespace

LargeVector<Operation> thread_operations(const trace::Ranges& ranges, std::span<const int32_t> of_lane, int32_t lane,
                                         std::span<const int64_t> cuts, std::span<const Wait> waits) {
  return Splitter(ranges, lane, cuts, waits).split(of_lane);
}

void merge_by_time(const std::vector<std::span<const Operation>>& lists, Operation* to) {
  size_t count = 0;
  std::span<const Operation> longest;
  for (const auto& list : lists) {
    count += list.size();
    if (list.size() > longest.size()) longest = list;
  }
  constexpr size_t kWorthAThread = 100'000;
  if (count < kWorthAThread) return merge_part(lists, to);
  const int64_t middle = longest[longest.size() / 2].start_ns;
  std::vector<std::span<const Operation>> early, late;
  size_t early_count = 0;
  for (const auto& list : lists) {
    const auto first_late =
        std::partition_point(list.begin(), list.end(), [middle](const Operation& o) { return o.start_ns < middle; });
    const auto early_of_list = static_cast<size_t>(first_late - list.begin());
    early.push_back(list.first(early_of_list));
    late.push_back(list.subspan(early_of_list));
    early_count += early_of_list;
  }
  std::thread other([&] { merge_part(late, to + early_count); });
  merge_part(early, to);
  other.join();
}

void sort_by_time(LargeVector<Operation>& operations) {
  // Ranges come by start, the longest first.
  for (auto first = operations.begin(); first != operations.end();) {
    const auto last =
        std::find_if(first + 1, operations.end(), [&](const Operation& o) { return o.start_ns != first->start_ns; });
    if (last - first > 1) std::stable_sort(first, last, is_before);
    first = last;
  }
  if (!std::is_sorted(operations.begin(), operations.end(), is_before))
    std::stable_sort(operations.begin(), operations.end(), is_before);
}

}  // namespace strobe::analyze
