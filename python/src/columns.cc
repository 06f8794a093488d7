#include "columns.h"

#include <algorithm>
#include <map>

#include "analyze/memcpy.h"

namespace strobe::python {

using trace::kNone;
using trace::RangeKind;
using trace::Timeline;

namespace {

constexpr ColumnType type_of(int64_t) {
  return ColumnType::kInt64;
}
constexpr ColumnType type_of(int32_t) {
  return ColumnType::kInt32;
}
constexpr ColumnType type_of(uint32_t) {
  return ColumnType::kUint32;
}
constexpr ColumnType type_of(uint8_t) {
  return ColumnType::kUint8;
}
constexpr ColumnType type_of(double) {
  return ColumnType::kDouble;
}

// Collects the columns of one table, which all have `rows` rows.
class Builder {
 public:
  Builder(std::string title, const SharedTimeline& timeline, size_t rows)
      : timeline_(timeline), texts_(std::make_shared<Texts>(timeline)) {
    columns_.title = std::move(title);
    columns_.rows = rows;
  }
  // A column of the timeline itself, which stays alive with it.
  template <typename T>
  Builder& view(std::string name, const std::vector<T>& values) {
    return view(std::move(name), type_of(T{}), values, nullptr);
  }
  Builder& flags(std::string name, const std::vector<uint8_t>& values) {
    return view(std::move(name), ColumnType::kBool, values, nullptr);
  }
  Builder& names(std::string name, const std::vector<trace::StringId>& codes) {
    return view(std::move(name), ColumnType::kText, codes, texts_);
  }
  Builder& names(std::string name, std::vector<trace::StringId>&& codes) {
    return own(std::move(name), ColumnType::kText, std::move(codes), texts_);
  }
  // A column made for this table.
  template <typename T>
  Builder& own(std::string name, std::vector<T>&& values) {
    return own(std::move(name), type_of(T{}), std::move(values), nullptr);
  }
  Builder& one_of(std::string name, std::vector<uint8_t>&& codes, std::vector<std::string> texts) {
    return own(std::move(name), ColumnType::kText8, std::move(codes), std::make_shared<Texts>(std::move(texts)));
  }
  Builder& kinds(std::string name, const std::vector<RangeKind>& kinds) {
    static_assert(sizeof(RangeKind) == 1);
    static const auto kTexts = std::make_shared<Texts>(std::vector<std::string>{
        "annotation", "operator", "api", "os", "overhead", "kernel", "copy", "set", "sync", "graph"});
    return view(std::move(name), ColumnType::kText8, kinds, kTexts);
  }
  // The values of `source` at some rows.
  template <typename T>
  Builder& at(std::string name, const std::vector<T>& source, const std::vector<int32_t>& rows) {
    return own(std::move(name), gather(source, rows));
  }
  Builder& names_at(std::string name, const std::vector<trace::StringId>& source, const std::vector<int32_t>& rows) {
    return names(std::move(name), gather(source, rows));
  }
  Columns take() { return std::move(columns_); }

 private:
  template <typename T>
  static std::vector<T> gather(const std::vector<T>& source, const std::vector<int32_t>& rows) {
    std::vector<T> values;
    values.reserve(rows.size());
    for (const int32_t row : rows) values.push_back(source[static_cast<size_t>(row)]);
    return values;
  }
  template <typename T>
  Builder& view(std::string name, ColumnType type, const std::vector<T>& values, std::shared_ptr<const Texts> texts) {
    // A column may be shorter than its table where the rest has no value.
    if (values.size() < columns_.rows) {
      std::vector<T> longer = values;
      longer.resize(columns_.rows);
      return own(std::move(name), type, std::move(longer), std::move(texts));
    }
    columns_.list.push_back({std::move(name), type, values.data(), timeline_, std::move(texts)});
    return *this;
  }
  template <typename T>
  Builder& own(std::string name, ColumnType type, std::vector<T>&& values, std::shared_ptr<const Texts> texts) {
    const auto kept = std::make_shared<const std::vector<T>>(std::move(values));
    columns_.list.push_back({std::move(name), type, kept->data(), kept, std::move(texts)});
    return *this;
  }

  SharedTimeline timeline_;
  std::shared_ptr<const Texts> texts_;
  Columns columns_;
};

std::vector<int64_t> durations(const trace::Ranges& ranges) {
  std::vector<int64_t> result(ranges.size());
  for (size_t i = 0; i < result.size(); ++i) result[i] = ranges.end_ns[i] - ranges.start_ns[i];
  return result;
}

// Rows of some kinds, and for each the index of its entry in a list sorted by range (kNone: it has none).
struct Picked {
  std::vector<int32_t> rows, details;
};
template <typename Detail, typename Wanted>
Picked pick(const Timeline& timeline, const std::vector<Detail>& details, const Wanted& wanted) {
  Picked picked;
  const auto& kind = timeline.ranges.kind;
  size_t next = 0;
  for (size_t i = 0; i < kind.size(); ++i) {
    if (!wanted(kind[i])) continue;
    const auto row = static_cast<int32_t>(i);
    while (next < details.size() && details[next].range < row) ++next;
    picked.rows.push_back(row);
    picked.details.push_back(next < details.size() && details[next].range == row ? static_cast<int32_t>(next) : kNone);
  }
  return picked;
}

// A value of each picked row's detail.
template <typename Detail, typename Get>
auto values_of(const Picked& picked, const std::vector<Detail>& details, const Get& get) {
  static const Detail kNothing{};
  std::vector<decltype(get(kNothing))> values;
  values.reserve(picked.rows.size());
  for (const int32_t i : picked.details) values.push_back(get(i == kNone ? kNothing : details[static_cast<size_t>(i)]));
  return values;
}

// What is known of the places of some ranges.
void add_places(Builder& builder, const Timeline& timeline, const std::vector<int32_t>& rows, bool of_device) {
  std::vector<int32_t> pid, tid, device, context;
  for (const int32_t row : rows) {
    const int32_t index = timeline.ranges.lane[static_cast<size_t>(row)];
    static const trace::Lane kNowhere{};
    const trace::Lane& lane = index < 0 ? kNowhere : timeline.lanes[static_cast<size_t>(index)];
    pid.push_back(lane.pid);
    tid.push_back(lane.tid);
    device.push_back(lane.device);
    context.push_back(lane.context);
  }
  builder.own("pid", std::move(pid));
  if (of_device) builder.own("device", std::move(device)).own("context", std::move(context));
  builder.own(of_device ? "stream" : "tid", std::move(tid));
}

Builder picked_ranges(const char* title, const SharedTimeline& timeline, const Picked& picked, bool of_device) {
  const trace::Ranges& ranges = timeline->ranges;
  Builder builder(title, timeline, picked.rows.size());
  std::vector<int64_t> duration;
  for (const int32_t row : picked.rows)
    duration.push_back(ranges.end_ns[static_cast<size_t>(row)] - ranges.start_ns[static_cast<size_t>(row)]);
  builder.names_at("name", ranges.name, picked.rows)
      .at("start_ns", ranges.start_ns, picked.rows)
      .at("end_ns", ranges.end_ns, picked.rows)
      .own("duration_ns", std::move(duration));
  add_places(builder, *timeline, picked.rows, of_device);
  builder.at("frame", ranges.frame, picked.rows).own("range", std::vector<int32_t>(picked.rows));
  return builder;
}

template <typename List>
Columns arguments_of(const char* title, const char* of, const SharedTimeline& timeline, const List& list,
                     const std::vector<int32_t>& owner) {
  std::vector<uint8_t> type;
  std::vector<int64_t> integer;
  std::vector<double> number;
  std::vector<trace::StringId> text;
  for (const auto& value : list.value) {
    type.push_back(static_cast<uint8_t>(value.index()));
    const auto* whole = std::get_if<int64_t>(&value);
    const auto* real = std::get_if<double>(&value);
    const auto* id = std::get_if<trace::StringId>(&value);
    integer.push_back(whole != nullptr ? *whole : 0);
    number.push_back(real != nullptr ? *real : whole != nullptr ? static_cast<double>(*whole) : 0);
    text.push_back(id != nullptr ? *id : 0);
  }
  return Builder(title, timeline, list.size())
      .view(of, owner)
      .names("key", list.key)
      .one_of("type", std::move(type), {"int", "float", "str"})
      .own("integer", std::move(integer))
      .own("number", std::move(number))
      .names("text", std::move(text))
      .take();
}

}  // namespace

int64_t Texts::find(std::string_view text) const {
  if (timeline_) return timeline_->strings.find(text);
  const auto found = std::find(list_.begin(), list_.end(), text);
  return found == list_.end() ? -1 : found - list_.begin();
}

CompactTexts compact(const ColumnView& column, size_t rows) {
  if (column.type == ColumnType::kText8)
    return compact(static_cast<const uint8_t*>(column.data), rows, column.texts->size());
  return compact(static_cast<const uint32_t*>(column.data), rows, column.texts->size());
}

Columns range_columns(const SharedTimeline& timeline) {
  const trace::Ranges& ranges = timeline->ranges;
  return Builder("ranges", timeline, ranges.size())
      .names("name", ranges.name)
      .view("start_ns", ranges.start_ns)
      .view("end_ns", ranges.end_ns)
      .own("duration_ns", durations(ranges))
      .view("lane", ranges.lane)
      .view("frame", ranges.frame)
      .view("parent", ranges.parent)
      .kinds("kind", ranges.kind)
      .names("category", ranges.category)
      .names("domain", ranges.domain)
      .flags("is_async", ranges.is_async)
      .flags("open", ranges.open)
      .take();
}

Columns kernel_columns(const SharedTimeline& timeline) {
  const auto& ops = timeline->device_ops;
  const Picked picked =
      pick(*timeline, ops, [](RangeKind kind) { return kind == RangeKind::kKernel || kind == RangeKind::kGraph; });
  Builder builder = picked_ranges("kernels", timeline, picked, true);
  using Op = trace::DeviceOp;
  builder.own("launch", values_of(picked, ops, [](const Op& op) { return op.launch; }))
      .own("correlation", values_of(picked, ops, [](const Op& op) { return op.correlation; }));
  constexpr const char* kAxes[] = {"x", "y", "z"};
  for (size_t axis = 0; axis < 3; ++axis)
    builder.own(std::string("grid_") + kAxes[axis],
                values_of(picked, ops, [axis](const Op& op) { return op.grid[axis]; }));
  for (size_t axis = 0; axis < 3; ++axis)
    builder.own(std::string("block_") + kAxes[axis],
                values_of(picked, ops, [axis](const Op& op) { return op.block[axis]; }));
  builder.own("registers", values_of(picked, ops, [](const Op& op) { return op.registers; }))
      .own("static_shared", values_of(picked, ops, [](const Op& op) { return op.static_shared; }))
      .own("dynamic_shared", values_of(picked, ops, [](const Op& op) { return op.dynamic_shared; }));
  return builder.take();
}

Columns memcpy_columns(const SharedTimeline& timeline) {
  const auto& ops = timeline->device_ops;
  const Picked picked =
      pick(*timeline, ops, [](RangeKind kind) { return kind == RangeKind::kCopy || kind == RangeKind::kSet; });
  Builder builder = picked_ranges("memcpys", timeline, picked, true);
  using Op = trace::DeviceOp;
  // Each number that a trace may hold has its own text, so a code is a place in a list without repetitions.
  const auto add = [&](const char* name, const auto& text_of) {
    std::vector<std::string> texts;
    std::vector<uint8_t> codes;
    for (size_t i = 0; i < picked.rows.size(); ++i) {
      const int32_t detail = picked.details[i];
      const std::string text = text_of(picked.rows[i], detail == kNone ? Op{} : ops[static_cast<size_t>(detail)]);
      const auto found = std::find(texts.begin(), texts.end(), text);
      codes.push_back(static_cast<uint8_t>(found - texts.begin()));
      if (found == texts.end()) texts.push_back(text);
    }
    builder.one_of(name, std::move(codes), std::move(texts));
  };
  builder.own("bytes", values_of(picked, ops, [](const Op& op) { return op.bytes; }));
  add("direction", [&](int32_t row, const Op& op) {
    return timeline->ranges.kind[static_cast<size_t>(row)] == RangeKind::kSet ? std::string("set")
                                                                              : analyze::copy_kind_name(op.copy_kind);
  });
  add("source", [](int32_t, const Op& op) { return std::string(analyze::memory_kind_name(op.source_kind)); });
  add("target", [](int32_t, const Op& op) { return std::string(analyze::memory_kind_name(op.target_kind)); });
  builder.own("launch", values_of(picked, ops, [](const Op& op) { return op.launch; }))
      .own("correlation", values_of(picked, ops, [](const Op& op) { return op.correlation; }));
  return builder.take();
}

Columns api_call_columns(const SharedTimeline& timeline) {
  const auto& calls = timeline->api_calls;
  const Picked picked = pick(*timeline, calls, [](RangeKind kind) { return kind == RangeKind::kApi; });
  return picked_ranges("api_calls", timeline, picked, false)
      .own("correlation", values_of(picked, calls, [](const trace::ApiCall& call) { return call.correlation; }))
      .take();
}

Columns argument_columns(const SharedTimeline& timeline) {
  return arguments_of("arguments", "range", timeline, timeline->arguments, timeline->arguments.range);
}

Columns mark_argument_columns(const SharedTimeline& timeline) {
  return arguments_of("mark_arguments", "mark", timeline, timeline->mark_arguments, timeline->mark_arguments.mark);
}

Columns mark_columns(const SharedTimeline& timeline) {
  const trace::Marks& marks = timeline->marks;
  return Builder("marks", timeline, marks.size())
      .names("name", marks.name)
      .view("time_ns", marks.time_ns)
      .view("lane", marks.lane)
      .view("frame", marks.frame)
      .names("category", marks.category)
      .names("domain", marks.domain)
      .take();
}

Columns flow_columns(const SharedTimeline& timeline) {
  const trace::Flows& flows = timeline->flows;
  return Builder("flows", timeline, flows.size())
      .names("name", flows.name)
      .view("from_ns", flows.from_ns)
      .view("to_ns", flows.to_ns)
      .view("from_range", flows.from_range)
      .view("to_range", flows.to_range)
      .view("from_lane", flows.from_lane)
      .view("to_lane", flows.to_lane)
      .take();
}

Columns counter_columns(const SharedTimeline& timeline) {
  const trace::Counters& counters = timeline->counters;
  Builder builder("counters", timeline, counters.size());
  builder.names("name", counters.name).view("time_ns", counters.time_ns).view("value", counters.value);
  builder.view("pid", counters.pid);
  std::vector<int32_t> lane(counters.size(), kNone);
  std::copy(counters.lane.begin(), counters.lane.end(), lane.begin());
  return builder.own("lane", std::move(lane)).take();
}

Columns frame_columns(const SharedTimeline& timeline) {
  struct Frame {
    int64_t start_ns, end_ns, ranges;
  };
  std::map<int64_t, Frame> frames;
  const trace::Ranges& ranges = timeline->ranges;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.frame[i] < 0) continue;
    const auto [found, is_new] = frames.try_emplace(ranges.frame[i], Frame{ranges.start_ns[i], ranges.end_ns[i], 0});
    Frame& frame = found->second;
    frame.start_ns = std::min(frame.start_ns, ranges.start_ns[i]);
    frame.end_ns = std::max(frame.end_ns, ranges.end_ns[i]);
    ++frame.ranges;
  }
  std::vector<int64_t> id, start, end, duration, count;
  for (const auto& [number, frame] : frames) {
    id.push_back(number);
    start.push_back(frame.start_ns);
    end.push_back(frame.end_ns);
    duration.push_back(frame.end_ns - frame.start_ns);
    count.push_back(frame.ranges);
  }
  return Builder("frames", timeline, frames.size())
      .own("frame", std::move(id))
      .own("start_ns", std::move(start))
      .own("end_ns", std::move(end))
      .own("duration_ns", std::move(duration))
      .own("ranges", std::move(count))
      .take();
}

Columns lane_columns(const SharedTimeline& timeline) {
  std::vector<uint8_t> kind;
  std::vector<int32_t> pid, tid, device, context;
  std::vector<trace::StringId> name;
  for (const trace::Lane& lane : timeline->lanes) {
    kind.push_back(static_cast<uint8_t>(lane.kind));
    name.push_back(lane.name);
    pid.push_back(lane.pid);
    tid.push_back(lane.tid);
    device.push_back(lane.device);
    context.push_back(lane.context);
  }
  return Builder("lanes", timeline, timeline->lanes.size())
      .one_of("kind", std::move(kind), {"thread", "stream", "copy engine"})
      .names("name", std::move(name))
      .own("pid", std::move(pid))
      .own("tid", std::move(tid))
      .own("device", std::move(device))
      .own("context", std::move(context))
      .take();
}

Columns process_columns(const SharedTimeline& timeline) {
  std::vector<int32_t> pid;
  std::vector<trace::StringId> name;
  for (const trace::Process& process : timeline->processes) {
    pid.push_back(process.pid);
    name.push_back(process.name);
  }
  return Builder("processes", timeline, timeline->processes.size())
      .own("pid", std::move(pid))
      .names("name", std::move(name))
      .take();
}

}  // namespace strobe::python
