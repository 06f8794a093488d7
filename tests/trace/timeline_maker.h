// Small timelines by hand, random ones by seed, and what differs between two.
#pragma once

#include <cmath>
#include <random>
#include <sstream>
#include <string>

#include "strobe/trace/timeline.h"

namespace strobe::test {

class TimelineMaker {
 public:
  trace::Timeline timeline;

  int32_t lane(int32_t tid, const std::string& name = "", int32_t pid = 100,
               trace::Lane::Kind kind = trace::Lane::Kind::kThread, int32_t device = trace::kNone,
               int32_t context = trace::kNone) {
    timeline.lanes.push_back({kind, pid, tid, timeline.strings.intern(name), device, context});
    return static_cast<int32_t>(timeline.lanes.size() - 1);
  }
  int32_t range(const std::string& name, int32_t lane, int64_t start, int64_t end, int64_t frame = trace::kNoFrame,
                bool is_async = false, bool open = false, trace::RangeKind kind = trace::RangeKind::kAnnotation) {
    trace::Ranges& ranges = timeline.ranges;
    ranges.name.push_back(timeline.strings.intern(name));
    ranges.lane.push_back(lane);
    ranges.start_ns.push_back(start);
    ranges.end_ns.push_back(end);
    ranges.frame.push_back(frame);
    ranges.parent.push_back(trace::kNone);
    ranges.is_async.push_back(is_async ? 1 : 0);
    ranges.open.push_back(open ? 1 : 0);
    ranges.kind.push_back(kind);
    return static_cast<int32_t>(ranges.size() - 1);
  }
  int32_t api_call(const std::string& name, int32_t lane, int64_t start, int64_t end, int64_t correlation) {
    const int32_t row = range(name, lane, start, end, trace::kNoFrame, false, false, trace::RangeKind::kApi);
    timeline.api_calls.push_back({row, correlation});
    return row;
  }
  // The operation, of which more can be told.
  trace::DeviceOp& device_op(trace::RangeKind kind, const std::string& name, int32_t lane, int64_t start, int64_t end,
                             int64_t correlation) {
    trace::DeviceOp op;
    op.range = range(name, lane, start, end, trace::kNoFrame, false, false, kind);
    op.correlation = correlation;
    timeline.device_ops.push_back(op);
    return timeline.device_ops.back();
  }
  void argument(int32_t range, const std::string& key, int64_t value) { add_argument(range, key, value); }
  void argument(int32_t range, const std::string& key, double value) { add_argument(range, key, value); }
  void argument(int32_t range, const std::string& key, const std::string& value) {
    add_argument(range, key, timeline.strings.intern(value));
  }
  void mark(const std::string& name, int32_t lane, int64_t time, int64_t frame = trace::kNoFrame) {
    timeline.marks.time_ns.push_back(time);
    timeline.marks.name.push_back(timeline.strings.intern(name));
    timeline.marks.lane.push_back(lane);
    timeline.marks.frame.push_back(frame);
  }
  void flow(const std::string& name, int32_t from_lane, int64_t from, int32_t to_lane, int64_t to,
            int32_t from_range = trace::kNone, int32_t to_range = trace::kNone) {
    trace::Flows& flows = timeline.flows;
    flows.name.push_back(timeline.strings.intern(name));
    flows.from_ns.push_back(from);
    flows.to_ns.push_back(to);
    flows.from_range.push_back(from_range);
    flows.to_range.push_back(to_range);
    flows.from_lane.push_back(from_lane);
    flows.to_lane.push_back(to_lane);
  }
  void counter(const std::string& name, int32_t pid, int64_t time, double value, int32_t lane = trace::kNone) {
    timeline.counters.time_ns.push_back(time);
    timeline.counters.name.push_back(timeline.strings.intern(name));
    timeline.counters.pid.push_back(pid);
    timeline.counters.value.push_back(value);
    if (lane == trace::kNone) return;
    timeline.counters.lane.resize(timeline.counters.size(), trace::kNone);
    timeline.counters.lane.back() = lane;
  }
  // Of the last mark.
  template <typename Value>
  void mark_argument(const std::string& key, Value value) {
    timeline.mark_arguments.mark.push_back(static_cast<int32_t>(timeline.marks.size() - 1));
    timeline.mark_arguments.key.push_back(timeline.strings.intern(key));
    timeline.mark_arguments.value.emplace_back(value);
  }
  trace::Timeline finish() {
    timeline.finish();
    return std::move(timeline);
  }

 private:
  template <typename Value>
  void add_argument(int32_t range, const std::string& key, Value value) {
    timeline.arguments.range.push_back(range);
    timeline.arguments.key.push_back(timeline.strings.intern(key));
    timeline.arguments.value.emplace_back(value);
  }
};

// Of a range of that kind: what is known beyond it, anything included.
template <typename Below>
void add_device_details(trace::Timeline& timeline, int32_t row, trace::RangeKind kind, Below below) {
  if (kind == trace::RangeKind::kApi) timeline.api_calls.push_back({row, below(50) - 10});
  if (!trace::is_device(kind) || below(10) == 0) return;
  trace::DeviceOp op;
  op.range = row;
  op.correlation = below(50) - 10;
  if (below(3) == 0 && !timeline.api_calls.empty())
    op.launch = timeline.api_calls[static_cast<size_t>(below(static_cast<int64_t>(timeline.api_calls.size())))].range;
  if (op.correlation % 3 == 0) op.capture = row / 2;
  op.bytes = below(3) == 0 ? -1 : below(int64_t{1} << 40);
  op.copy_kind = static_cast<uint8_t>(below(256));
  op.source_kind = static_cast<uint8_t>(below(9));
  op.target_kind = static_cast<uint8_t>(below(9));
  op.sync_type = static_cast<uint8_t>(below(5));
  op.sync_stream = static_cast<int32_t>(below(8)) - 1;
  op.sync_correlation = below(5);
  for (int axis = 0; axis < 3; ++axis) {
    op.grid[axis] = static_cast<uint32_t>(below(int64_t{1} << 32));
    op.block[axis] = static_cast<uint32_t>(below(1024));
  }
  op.registers = static_cast<int32_t>(below(257)) - 1;
  op.static_shared = static_cast<int32_t>(below(3)) - 1;
  op.dynamic_shared = static_cast<int32_t>(below(1 << 20)) - 1;
  timeline.device_ops.push_back(op);
}

// Everything that a timeline can hold, in any order and combination, times and texts at their limits included.
inline trace::Timeline random_timeline(uint32_t seed, int range_count) {
  std::mt19937 random(seed);
  const auto below = [&random](int64_t limit) {
    return limit <= 0 ? int64_t{0} : static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  };
  const std::string texts[] = {"read",
                               "infer",
                               "",
                               "conv \"3x3\", 'same'",
                               "naïve \xE2\x82\xAC",
                               std::string("nul\0inside", 10),
                               "\xff\xfe not UTF-8",
                               "50 % _v7000",
                               std::string(3000, 'x')};
  const auto text = [&] { return texts[below(std::size(texts))]; };
  TimelineMaker maker;
  trace::Timeline& timeline = maker.timeline;
  const auto name = [&] { return timeline.strings.intern(text()); };
  for (int i = 0; i < 3; ++i) timeline.processes.push_back({static_cast<int32_t>(100 + i), name()});
  const int64_t lane_count = 1 + below(6);
  for (int64_t i = 0; i < lane_count; ++i)
    maker.lane(static_cast<int32_t>(below(1 << 30)), text(), 100 + static_cast<int32_t>(below(3)),
               static_cast<trace::Lane::Kind>(below(3)), static_cast<int32_t>(below(3)) - 1,
               static_cast<int32_t>(below(3)) - 1);
  const int64_t duration = 10 * range_count + 1;
  const auto lane = [&] { return static_cast<int32_t>(below(lane_count)); };
  const auto frame = [&] { return below(3) == 0 ? trace::kNoFrame : below(1 << 20) - 100; };
  for (int i = 0; i < range_count; ++i) {
    const int64_t start = below(duration);
    const bool open = below(20) == 0;
    const auto kind = static_cast<trace::RangeKind>(below(10));
    const int32_t row = maker.range(text(), lane(), start, open ? duration : start + below(duration - start), frame(),
                                    below(5) == 0, open, kind);
    add_device_details(timeline, row, kind, below);
    if (below(3) == 0) maker.argument(row, text(), static_cast<int64_t>((uint64_t{random()} << 32) | random()));
    if (below(5) == 0) maker.argument(row, text(), below(4) == 0 ? std::nan("") : static_cast<double>(below(1000)) / 8);
    if (below(5) == 0) maker.argument(row, text(), text());
    if (below(5) == 0) timeline.ranges.categorize_last(name(), name());
    if (below(4) == 0) {
      maker.mark(text(), lane(), below(duration), frame());
      if (below(2) == 0) timeline.marks.categorize_last(name(), name());
      if (below(3) == 0) maker.mark_argument(text(), below(3) == 0 ? std::nan("") : static_cast<double>(below(9)) / 8);
      if (below(3) == 0) maker.mark_argument(text(), static_cast<int64_t>((uint64_t{random()} << 32) | random()));
      if (below(3) == 0) maker.mark_argument(text(), name());
    }
    if (below(4) == 0) maker.flow(text(), lane(), below(duration), lane(), below(duration));
    if (below(6) == 0) maker.flow(text(), trace::kNone, below(duration), lane(), below(duration), row, row);
    if (below(4) == 0)
      maker.counter(text(), 100, below(duration), static_cast<double>(below(1000)) / 3,
                    below(2) == 0 ? trace::kNone : lane());
  }
  for (int32_t core = 0; core < 2; ++core)
    for (int64_t at = below(50); at < duration; at += 1 + below(duration))
      timeline.core_runs.push_back({at, at + below(2), core, static_cast<int32_t>(below(1 << 22)),
                                    static_cast<int32_t>(below(1 << 22)), name(), name(), below(2) == 0});
  for (int64_t i = below(10); i > 0; --i)
    timeline.layers.push_back({name(), name(), name(), below(1000), below(1000), below(1000)});
  for (int64_t i = below(10); i > 0; --i) {
    trace::NetworkKernel kernel{name(), name(), name(), {}, {}};
    for (int64_t k = below(4); k > 0 && !timeline.layers.empty(); --k)
      kernel.layers.push_back(static_cast<int32_t>(below(static_cast<int64_t>(timeline.layers.size()))));
    for (int64_t k = below(4); k > 0; --k) kernel.duration_ns.push_back(below(1000));
    timeline.kernels.push_back(std::move(kernel));
  }
  for (int64_t i = below(3); i > 0; --i) {
    std::vector<Column> columns;
    for (int64_t k = below(5); k >= 0; --k) columns.push_back({text(), text(), static_cast<int>(below(7))});
    Table table(text(), columns);
    for (int64_t row = below(6); row > 0; --row) {
      std::vector<Cell> cells;
      for (size_t k = 0; k < columns.size(); ++k) {
        const Cell choices[] = {Cell(), below(1 << 30) - 5, static_cast<double>(below(64)) / 4, text()};
        cells.push_back(choices[below(4)]);
      }
      table.add_row(std::move(cells));
    }
    if (below(2) == 0) table.coverage = static_cast<double>(below(5)) / 4;
    for (int64_t k = below(3); k > 0; --k) table.notes.push_back(text());
    timeline.tables.push_back(std::move(table));
  }
  for (int64_t i = below(6); i > 0; --i) timeline.facts["fact" + std::to_string(below(10))] = text();
  timeline.losses.dropped_records = static_cast<uint64_t>(below(3));
  if (below(2) == 0) timeline.losses.faults["unmatched pop"] = uint64_t{1} << below(64);
  timeline.utc_start_ns = 1'700'000'000'000'000'000 + below(1'000'000'000);
  timeline.duration_ns = duration;
  return maker.finish();
}

// The first difference in words; empty for equal timelines.
inline std::string difference(const trace::Timeline& a, const trace::Timeline& b) {
  std::ostringstream out;
  const auto same = [&out](const char* what, const auto& left, const auto& right) {
    if (!out.str().empty() || left == right) return;
    out << what << " differ";
    if constexpr (requires { left.size(); }) {
      out << " (" << left.size() << " and " << right.size() << ")";
      for (size_t i = 0; i < std::min(left.size(), right.size()); ++i)
        if constexpr (requires { left[i] == right[i]; }) {
          if (left[i] == right[i]) continue;
          out << " at " << i;
          break;
        }
    }
  };
  std::vector<std::string_view> left_texts, right_texts;
  for (trace::StringId i = 0; i < a.strings.size(); ++i) left_texts.push_back(a.strings[i]);
  for (trace::StringId i = 0; i < b.strings.size(); ++i) right_texts.push_back(b.strings[i]);
  same("strings", left_texts, right_texts);
  const auto flat = [](const auto& rows, auto... member) {
    std::vector<int64_t> numbers;
    for (const auto& row : rows) (numbers.push_back(static_cast<int64_t>(row.*member)), ...);
    return numbers;
  };
  const auto processes = [&](const auto& t) { return flat(t.processes, &trace::Process::pid, &trace::Process::name); };
  same("processes", processes(a), processes(b));
  const auto lanes = [&](const auto& t) {
    using L = trace::Lane;
    return flat(t.lanes, &L::kind, &L::pid, &L::tid, &L::name, &L::device, &L::context);
  };
  same("lanes", lanes(a), lanes(b));
  const auto core_runs = [&](const auto& t) {
    using R = trace::CoreRun;
    return flat(t.core_runs, &R::start_ns, &R::end_ns, &R::core, &R::pid, &R::tid, &R::name, &R::holder, &R::preempted);
  };
  same("core runs", core_runs(a), core_runs(b));
  same("range starts", a.ranges.start_ns, b.ranges.start_ns);
  same("range ends", a.ranges.end_ns, b.ranges.end_ns);
  same("range names", a.ranges.name, b.ranges.name);
  same("range lanes", a.ranges.lane, b.ranges.lane);
  same("range frames", a.ranges.frame, b.ranges.frame);
  same("range parents", a.ranges.parent, b.ranges.parent);
  same("asynchronous ranges", a.ranges.is_async, b.ranges.is_async);
  same("range kinds", a.ranges.kind, b.ranges.kind);
  same("open ranges", a.ranges.open, b.ranges.open);
  same("argument ranges", a.arguments.range, b.arguments.range);
  same("argument keys", a.arguments.key, b.arguments.key);
  // "Not a number" equals itself here.
  const auto values = [](const auto& arguments) {
    std::vector<std::string> texts;
    for (const auto& value : arguments.value)
      std::visit([&](auto v) { texts.push_back(std::to_string(value.index()) + ":" + std::to_string(v)); }, value);
    return texts;
  };
  same("argument values", values(a.arguments), values(b.arguments));
  same("range categories", a.ranges.category, b.ranges.category);
  same("range domains", a.ranges.domain, b.ranges.domain);
  same("mark categories", a.marks.category, b.marks.category);
  same("mark domains", a.marks.domain, b.marks.domain);
  same("marks with arguments", a.mark_arguments.mark, b.mark_arguments.mark);
  same("mark argument keys", a.mark_arguments.key, b.mark_arguments.key);
  same("mark argument values", values(a.mark_arguments), values(b.mark_arguments));
  same("mark times", a.marks.time_ns, b.marks.time_ns);
  same("mark names", a.marks.name, b.marks.name);
  same("mark lanes", a.marks.lane, b.marks.lane);
  same("mark frames", a.marks.frame, b.marks.frame);
  same("flow names", a.flows.name, b.flows.name);
  same("flow starts", a.flows.from_ns, b.flows.from_ns);
  same("flow ends", a.flows.to_ns, b.flows.to_ns);
  same("flow sources", a.flows.from_range, b.flows.from_range);
  same("flow targets", a.flows.to_range, b.flows.to_range);
  same("flow source lanes", a.flows.from_lane, b.flows.from_lane);
  same("flow target lanes", a.flows.to_lane, b.flows.to_lane);
  same("counter times", a.counters.time_ns, b.counters.time_ns);
  same("counter names", a.counters.name, b.counters.name);
  same("counter processes", a.counters.pid, b.counters.pid);
  same("counter values", a.counters.value, b.counters.value);
  same("counter lanes", a.counters.lane, b.counters.lane);
  const auto layers = [&](const auto& t) {
    using L = trace::NetworkLayer;
    return flat(t.layers, &L::name, &L::type, &L::shape, &L::parameters, &L::flop, &L::bytes);
  };
  same("layers", layers(a), layers(b));
  const auto kernels = [&](const auto& t) {
    using K = trace::NetworkKernel;
    return flat(t.kernels, &K::name, &K::type, &K::implementation);
  };
  same("kernels", kernels(a), kernels(b));
  for (size_t i = 0; i < std::min(a.kernels.size(), b.kernels.size()); ++i) {
    same("kernel layers", a.kernels[i].layers, b.kernels[i].layers);
    same("kernel durations", a.kernels[i].duration_ns, b.kernels[i].duration_ns);
  }
  const auto device_ops = [&](const auto& t) {
    using D = trace::DeviceOp;
    std::vector<int64_t> numbers = flat(t.device_ops, &D::range, &D::launch, &D::capture, &D::correlation, &D::bytes,
                                        &D::copy_kind, &D::source_kind, &D::target_kind, &D::sync_type, &D::sync_stream,
                                        &D::sync_correlation, &D::registers, &D::static_shared, &D::dynamic_shared);
    for (const D& op : t.device_ops)
      for (const auto& size : {op.grid, op.block}) numbers.insert(numbers.end(), size, size + 3);
    return numbers;
  };
  same("device operations", device_ops(a), device_ops(b));
  const auto api_calls = [&](const auto& t) {
    return flat(t.api_calls, &trace::ApiCall::range, &trace::ApiCall::correlation);
  };
  same("API calls", api_calls(a), api_calls(b));
  same("tables", a.tables.size(), b.tables.size());
  for (size_t i = 0; i < std::min(a.tables.size(), b.tables.size()); ++i) {
    const auto columns = [](const Table& table) {
      std::vector<std::string> texts{table.title()};
      for (const Column& c : table.columns()) texts.insert(texts.end(), {c.name, c.help, std::to_string(c.decimals)});
      return texts;
    };
    same("table columns", columns(a.tables[i]), columns(b.tables[i]));
    same("table rows", a.tables[i].rows(), b.tables[i].rows());
    same("table coverages", a.tables[i].coverage, b.tables[i].coverage);
    same("table notes", a.tables[i].notes, b.tables[i].notes);
  }
  same("facts", a.facts, b.facts);
  same("dropped records", a.losses.dropped_records, b.losses.dropped_records);
  same("faults", a.losses.faults, b.losses.faults);
  same("utc start", a.utc_start_ns, b.utc_start_ns);
  same("duration", a.duration_ns, b.duration_ns);
  return out.str();
}

}  // namespace strobe::test
