#include "report/timeline_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "report/level_of_detail.h"
#include "report/packing.h"

namespace strobe::report {

using nlohmann::ordered_json;
using trace::Timeline;

namespace {

// More arguments than this make the page slow to open; what is left out is said.
constexpr size_t kMostArguments = 200'000;
constexpr size_t kMostAsyncRows = 64;
// A box takes about 11 bytes of the page and 40 of the browser's memory.
constexpr size_t kMostBoxes = 1'500'000;

struct Row {
  int32_t lane = 0;
  int depth = 0;
  bool async = false;
  int64_t last_end = 0;
  std::vector<int32_t> ranges;  // in order of start
  std::vector<Box> boxes;       // what is drawn of them
};

// Where a range is drawn.
struct Place {
  int32_t row = trace::kNone;
  int32_t index = 0;
};

std::string microseconds(int64_t ns) {
  return std::to_string(ns / 1000);
}

// Names that the page needs, numbered from 0 in order of first use.
class NameTable {
 public:
  explicit NameTable(const trace::Strings& strings) : strings_(strings), number_(strings.size(), trace::kNone) {}

  int64_t number(trace::StringId id) {
    if (number_[id] == trace::kNone) {
      number_[id] = static_cast<int32_t>(texts_.size());
      texts_.emplace_back(strings_[id]);
    }
    return number_[id];
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  const trace::Strings& strings_;
  std::vector<int32_t> number_;
  std::vector<std::string> texts_;
};

// Start and end of the first range "run"; the whole timeline where there is none.
std::pair<int64_t, int64_t> run_interval(const Timeline& timeline) {
  const int64_t id = timeline.strings.find("run");
  for (size_t i = 0; i < timeline.ranges.size() && id != trace::kNone; ++i)
    if (timeline.ranges.name[i] == id) return {timeline.ranges.start_ns[i], timeline.ranges.end_ns[i]};
  return {0, timeline.duration_ns};
}

class Layout {
 public:
  explicit Layout(const Timeline& timeline) : places(timeline.ranges.size()) {
    const auto& ranges = timeline.ranges;
    std::vector<int> depth(ranges.size(), 0);
    std::vector<std::vector<int32_t>> rows_of(timeline.lanes.size() * 2);  // nested and asynchronous ones apart
    for (size_t i = 0; i < ranges.size(); ++i) {
      const int32_t parent = ranges.parent[i];
      if (parent != trace::kNone && !ranges.is_async[i]) depth[i] = depth[static_cast<size_t>(parent)] + 1;
      place(timeline, i, depth[i], rows_of[static_cast<size_t>(ranges.lane[i]) * 2 + (ranges.is_async[i] ? 1 : 0)]);
    }
    sort_rows();
    make_boxes(timeline);
  }

  std::vector<Row> rows;
  std::vector<Place> places;  // by range; of those that stand for themselves
  Detail detail;
  size_t left_out = 0;  // asynchronous ranges that overlap too many others

 private:
  // Takes the first line at or below the nesting depth that is free again: foreign traces may overlap where they
  // should nest.
  void place(const Timeline& timeline, size_t range, int depth, std::vector<int32_t>& lines) {
    const bool async = timeline.ranges.is_async[range] != 0;
    auto line = static_cast<size_t>(depth);
    while (line < lines.size() && rows[static_cast<size_t>(lines[line])].last_end > timeline.ranges.start_ns[range])
      ++line;
    if (async && line >= kMostAsyncRows) {
      ++left_out;
      return;
    }
    while (line >= lines.size()) {
      lines.push_back(static_cast<int32_t>(rows.size()));
      rows.push_back({timeline.ranges.lane[range], static_cast<int>(lines.size()) - 1, async, 0, {}, {}});
    }
    Row& row = rows[static_cast<size_t>(lines[line])];
    row.ranges.push_back(static_cast<int32_t>(range));
    row.last_end = std::max(row.last_end, timeline.ranges.end_ns[range]);
  }

  void sort_rows() {
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return std::tuple(a.lane, a.async, a.depth) < std::tuple(b.lane, b.async, b.depth);
    });
  }

  void make_boxes(const Timeline& timeline) {
    std::vector<const std::vector<int32_t>*> lines;
    for (const Row& row : rows) lines.push_back(&row.ranges);
    detail = choose_detail(timeline.ranges, lines, kMostBoxes, run_interval(timeline).first);
    for (size_t number = 0; number < rows.size(); ++number) {
      Row& row = rows[number];
      row.boxes = boxes_of(timeline.ranges, row.ranges, detail);
      row.ranges = {};
      for (size_t i = 0; i < row.boxes.size(); ++i)
        if (row.boxes[i].count == 1)
          places[static_cast<size_t>(row.boxes[i].range)] = {static_cast<int32_t>(number), static_cast<int32_t>(i)};
    }
  }
};

ordered_json lanes_json(const Timeline& timeline) {
  ordered_json out = ordered_json::array();
  for (const trace::Lane& lane : timeline.lanes) {
    std::string process;
    for (const trace::Process& candidate : timeline.processes)
      if (candidate.pid == lane.pid) process = timeline.strings[candidate.name];
    std::string name(timeline.strings[lane.name]);
    if (name.empty()) {
      const bool of_device = lane.kind != trace::Lane::Kind::kThread;
      name = (of_device ? "GPU " + std::to_string(std::max(lane.device, 0)) + " stream " : "thread ") +
             std::to_string(lane.tid);
    }
    out.push_back({{"name", name}, {"pid", lane.pid}, {"process", process}});
  }
  return out;
}

// Of boxes that stand for several ranges: index - index before, count, time of theirs.
ordered_json row_json(const Timeline& timeline, const Row& row, NameTable& names) {
  const auto& ranges = timeline.ranges;
  VarintWriter times, name_ids, frames, several;
  std::vector<int32_t> open;
  int64_t end = 0, frame = 0;
  size_t last_several = 0;
  for (size_t i = 0; i < row.boxes.size(); ++i) {
    const Box& box = row.boxes[i];
    const auto r = static_cast<size_t>(box.range);
    const int64_t start = std::max(box.start_ns, end);
    const int64_t duration = std::max<int64_t>(0, box.end_ns - start);
    const int64_t of_frame = box.count == 1 ? ranges.frame[r] : trace::kNoFrame;
    times.add(static_cast<uint64_t>(start - end));
    times.add(static_cast<uint64_t>(duration));
    name_ids.add(static_cast<uint64_t>(names.number(ranges.name[r])));
    frames.add_signed(of_frame - frame);
    if (ranges.open[r] && box.count == 1) open.push_back(static_cast<int32_t>(i));
    if (box.count > 1) {
      several.add(i - last_several);
      several.add(static_cast<uint64_t>(box.count));
      several.add(static_cast<uint64_t>(std::min(box.busy_ns, duration)));
      last_several = i;
    }
    end = start + duration;
    frame = of_frame;
  }
  return {{"lane", row.lane},          {"depth", row.depth},          {"async", row.async},
          {"n", row.boxes.size()},     {"times", times.base64()},     {"names", name_ids.base64()},
          {"frames", frames.base64()}, {"several", several.base64()}, {"open", open}};
}

// Arrows between drawn ranges, by the place of their tails: row, index, to row, to index, time - time of the arrow
// before, duration.
ordered_json flows_json(const Timeline& timeline, const Layout& layout) {
  const auto& flows = timeline.flows;
  struct Arrow {
    Place from, to;
    int64_t from_ns, to_ns;
  };
  std::vector<Arrow> arrows;
  for (size_t i = 0; i < flows.size(); ++i) {
    if (flows.from_range[i] == trace::kNone || flows.to_range[i] == trace::kNone) continue;
    const Place from = layout.places[static_cast<size_t>(flows.from_range[i])];
    const Place to = layout.places[static_cast<size_t>(flows.to_range[i])];
    if (from.row == trace::kNone || to.row == trace::kNone) continue;
    arrows.push_back({from, to, flows.from_ns[i], flows.to_ns[i]});
  }
  std::sort(arrows.begin(), arrows.end(), [](const Arrow& a, const Arrow& b) {
    return std::tie(a.from.row, a.from.index, a.from_ns) < std::tie(b.from.row, b.from.index, b.from_ns);
  });
  VarintWriter out;
  int64_t before = 0;
  for (const Arrow& arrow : arrows) {
    for (const int32_t number : {arrow.from.row, arrow.from.index, arrow.to.row, arrow.to.index})
      out.add(static_cast<uint64_t>(number));
    out.add_signed(arrow.from_ns - before);
    out.add_signed(arrow.to_ns - arrow.from_ns);
    before = arrow.from_ns;
  }
  return {{"n", arrows.size()}, {"data", out.base64()}};
}

// lane, time - time before, name, frame of each.
ordered_json marks_json(const Timeline& timeline, NameTable& names) {
  const auto& marks = timeline.marks;
  VarintWriter out;
  int64_t before = 0;
  for (size_t i = 0; i < marks.size(); ++i) {
    out.add(static_cast<uint64_t>(std::max(0, marks.lane[i])));
    out.add_signed(marks.time_ns[i] - before);
    out.add(static_cast<uint64_t>(names.number(marks.name[i])));
    out.add_signed(marks.frame[i]);
    before = marks.time_ns[i];
  }
  return {{"n", marks.size()}, {"data", out.base64()}};
}

// "at": row and index of the range of each argument; "keys" and "values" in the same order.
ordered_json arguments_json(const Timeline& timeline, const Layout& layout, NameTable& names) {
  const auto& arguments = timeline.arguments;
  VarintWriter at, keys;
  ordered_json values = ordered_json::array();
  for (size_t i = 0; i < std::min(arguments.size(), kMostArguments); ++i) {
    const Place place = layout.places[static_cast<size_t>(arguments.range[i])];
    if (place.row == trace::kNone) continue;
    at.add(static_cast<uint64_t>(place.row));
    at.add(static_cast<uint64_t>(place.index));
    keys.add(static_cast<uint64_t>(names.number(arguments.key[i])));
    const auto& value = arguments.value[i];
    if (const auto* count = std::get_if<int64_t>(&value)) values.push_back(*count);
    if (const auto* measure = std::get_if<double>(&value)) values.push_back(*measure);
    if (const auto* text = std::get_if<trace::StringId>(&value)) values.emplace_back(timeline.strings[*text]);
  }
  return {{"at", at.base64()}, {"keys", keys.base64()}, {"values", values}};
}

}  // namespace

ordered_json timeline_json(const Timeline& timeline) {
  const Layout layout(timeline);
  NameTable names(timeline.strings);
  ordered_json rows = ordered_json::array();
  for (const Row& row : layout.rows) rows.push_back(row_json(timeline, row, names));
  const auto run = run_interval(timeline);
  ordered_json out = {{"duration_ns", timeline.duration_ns},
                      {"run_ns", {run.first, run.second}},
                      {"ranges", timeline.ranges.size()},
                      {"lanes", lanes_json(timeline)},
                      {"rows", std::move(rows)},
                      {"flows", flows_json(timeline, layout)},
                      {"marks", marks_json(timeline, names)},
                      {"args", arguments_json(timeline, layout, names)}};
  out["names"] = names.texts();
  ordered_json notes = ordered_json::array();
  if (timeline.arguments.size() > kMostArguments)
    notes.push_back("arguments are shown for the first " + std::to_string(kMostArguments) + " of " +
                    std::to_string(timeline.arguments.size()) + "; the trace has them all");
  if (layout.detail.drawn_together > 0)
    notes.push_back(std::to_string(layout.detail.drawn_together) + " of " + std::to_string(timeline.ranges.size()) +
                    " ranges are shorter than " + microseconds(layout.detail.shortest_ns) +
                    " µs and are drawn together with their neighbours, but for the first " +
                    microseconds(layout.detail.full_until_ns - layout.detail.full_from_ns) +
                    " µs of the run, which show every range; the trace has them all");
  if (layout.left_out > 0)
    notes.push_back(std::to_string(layout.left_out) + " asynchronous ranges overlap more than " +
                    std::to_string(kMostAsyncRows) + " others and are not drawn; the trace has them all");
  out["notes"] = notes;
  return out;
}

}  // namespace strobe::report
