// The bytes of a Perfetto trace, taken apart by a decoder of their own. What Perfetto itself makes of them:
// view_test.py.
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <set>

#include "base/file.h"
#include "exporters/exporter.h"
#include "exporters/folder.h"
#include "exporters/text.h"
#include "trace/timeline_maker.h"

namespace strobe {
namespace {

using trace::RangeKind;
using trace::Timeline;

// A message as its fields: numbers (doubles by their bits), texts and messages.
struct Message {
  std::multimap<uint32_t, uint64_t> numbers;
  std::multimap<uint32_t, std::string> texts;

  explicit Message(std::string_view bytes) {
    while (!bytes.empty()) {
      const uint64_t key = varint(bytes);
      const auto field = static_cast<uint32_t>(key >> 3);
      switch (key & 7) {
        case 0:
          numbers.emplace(field, varint(bytes));
          break;
        case 1: {
          uint64_t value = 0;
          if (bytes.size() < 8) throw std::runtime_error("a fixed64 breaks off");
          std::memcpy(&value, bytes.data(), 8);
          bytes.remove_prefix(8);
          numbers.emplace(field, value);
          break;
        }
        case 2: {
          const uint64_t size = varint(bytes);
          if (size > bytes.size()) throw std::runtime_error("a text breaks off");
          texts.emplace(field, bytes.substr(0, size));
          bytes.remove_prefix(size);
          break;
        }
        default:
          throw std::runtime_error("no such wire type");
      }
    }
  }
  uint64_t number(uint32_t field, uint64_t otherwise = 0) const {
    const auto found = numbers.find(field);
    return found == numbers.end() ? otherwise : found->second;
  }
  std::string text(uint32_t field) const {
    const auto found = texts.find(field);
    return found == texts.end() ? "" : found->second;
  }
  std::vector<Message> messages(uint32_t field) const {
    std::vector<Message> all;
    const auto [first, last] = texts.equal_range(field);
    for (auto it = first; it != last; ++it) all.emplace_back(it->second);
    return all;
  }

 private:
  static uint64_t varint(std::string_view& bytes) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      if (bytes.empty() || shift > 63) throw std::runtime_error("a varint breaks off");
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
  }
};

struct Slice {
  std::string name, category;
  int64_t start = 0, end = -1;  // -1: never closed
  uint64_t track = 0;
  size_t depth = 0;
  std::map<std::string, std::string> arguments;
  std::set<uint64_t> out, in;
};

// A trace read back the way trace_processor reads it: events in the order of their times, then of the file; an end
// closes what its track began last.
struct Decoded {
  std::vector<Slice> slices, instants;
  std::map<uint64_t, Message> tracks;
  std::map<uint64_t, std::vector<std::pair<int64_t, double>>> counters;
  std::map<uint64_t, int64_t> clocks;

  explicit Decoded(const std::string& bytes) {
    struct Event {
      int64_t time;
      Message event;
      Slice slice;
    };
    std::vector<Event> events;
    std::map<uint32_t, std::map<uint64_t, std::string>> interned;
    for (const Message& packet : Message(bytes).messages(1)) {
      EXPECT_EQ(packet.number(10), 1U);
      for (const Message& snapshot : packet.messages(6))
        for (const Message& clock : snapshot.messages(1))
          clocks[clock.number(1)] = static_cast<int64_t>(clock.number(2));
      for (const Message& track : packet.messages(60)) EXPECT_TRUE(tracks.emplace(track.number(1), track).second);
      for (const Message& data : packet.messages(12))
        for (const uint32_t list : {1U, 2U, 3U, 29U})
          for (const Message& entry : data.messages(list)) interned[list][entry.number(1)] = entry.text(2);
      for (const Message& event : packet.messages(11)) {
        EXPECT_EQ(packet.number(13), 2U);
        EXPECT_TRUE(tracks.contains(event.number(11))) << "an event before its track";
        Event one{static_cast<int64_t>(packet.number(8)), event, {}};
        one.slice.name = event.numbers.contains(10) ? interned[2].at(event.number(10)) : event.text(23);
        if (event.numbers.contains(3)) one.slice.category = interned[1].at(event.number(3));
        for (const Message& argument : event.messages(4)) {
          std::string value = argument.text(6);
          if (argument.numbers.contains(4)) value = std::to_string(static_cast<int64_t>(argument.number(4)));
          if (argument.numbers.contains(5)) value = "real";
          if (argument.numbers.contains(17)) value = interned[29].at(argument.number(17));
          for (const Message& element : argument.messages(12)) value += "[" + interned[29].at(element.number(17)) + "]";
          one.slice.arguments[argument.numbers.contains(1) ? interned[3].at(argument.number(1)) : argument.text(10)] =
              value;
        }
        events.push_back(std::move(one));
      }
    }
    std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
    std::map<uint64_t, std::vector<size_t>> open;
    for (Event& one : events) {
      const uint64_t track = one.event.number(11);
      std::vector<size_t>& stack = open[track];
      const auto add_flows = [&one](Slice& slice) {
        const auto [a, b] = one.event.numbers.equal_range(47);
        for (auto it = a; it != b; ++it) slice.out.insert(it->second);
        const auto [c, d] = one.event.numbers.equal_range(48);
        for (auto it = c; it != d; ++it) slice.in.insert(it->second);
      };
      one.slice.track = track;
      one.slice.start = one.time;
      switch (one.event.number(9)) {
        case 1:
          one.slice.depth = stack.size();
          add_flows(one.slice);
          stack.push_back(slices.size());
          slices.push_back(std::move(one.slice));
          break;
        case 2:
          if (stack.empty()) throw std::runtime_error("an end without a begin");
          slices[stack.back()].end = one.time;
          add_flows(slices[stack.back()]);
          stack.pop_back();
          break;
        case 3:
          add_flows(one.slice);
          instants.push_back(std::move(one.slice));
          break;
        default:
          counters[track].emplace_back(one.time, std::bit_cast<double>(one.event.number(44)));
      }
    }
  }

  const Slice& slice(const std::string& name) const {
    for (const Slice& one : slices)
      if (one.name == name) return one;
    throw std::runtime_error("no slice " + name);
  }
};

class Perfetto : public test::Folder {
 protected:
  Decoded exported(const Timeline& timeline) {
    const auto path = folder_ / "out.pftrace";
    EXPECT_TRUE(exporters::export_timeline(timeline, "perfetto", path));
    return Decoded(*read_file(path));
  }
};

TEST_F(Perfetto, RangesNestAsOnTheirThreads) {
  test::TimelineMaker maker;
  maker.timeline.processes.push_back({100, maker.timeline.strings.intern("demo")});
  maker.timeline.utc_start_ns = 1'700'000'000'000'000'001;
  const int32_t lane = maker.lane(101, "main");
  const int32_t frame = maker.range("frame", lane, 0, 100, 7);
  maker.range("infer", lane, 10, 50);
  maker.range("layer", lane, 10, 50);
  maker.range("instant", lane, 50, 50);
  maker.range("post", lane, 50, 100);
  maker.range("next", lane, 100, 120);
  maker.argument(frame, "path", std::string("a.mp4"));
  maker.argument(frame, "count", int64_t{-3});
  maker.argument(frame, "share", 0.5);
  const Decoded trace = exported(maker.finish());
  ASSERT_EQ(trace.slices.size(), 6U);
  const auto check = [&trace](const std::string& name, int64_t start, int64_t end, size_t depth) {
    const Slice& slice = trace.slice(name);
    EXPECT_EQ(slice.start, start) << name;
    EXPECT_EQ(slice.end, end) << name;
    EXPECT_EQ(slice.depth, depth) << name;
    EXPECT_EQ(slice.category, "annotation");
  };
  check("frame", 0, 100, 0);
  check("infer", 10, 50, 1);
  check("layer", 10, 50, 2);
  check("post", 50, 100, 1);
  check("next", 100, 120, 0);
  EXPECT_EQ(trace.slice("instant").end, 50);
  using Arguments = std::map<std::string, std::string>;
  EXPECT_EQ(trace.slice("frame").arguments,
            (Arguments{{"frame", "7"}, {"path", "a.mp4"}, {"count", "-3"}, {"share", "real"}}));
  EXPECT_EQ(trace.slice("layer").arguments, (Arguments{{"frame", "7"}}));
  EXPECT_EQ(trace.clocks, (std::map<uint64_t, int64_t>{{6, 0}, {1, 1'700'000'000'000'000'001}}));
  const Message& thread = trace.tracks.at(trace.slice("frame").track);
  EXPECT_EQ(thread.messages(4).at(0).text(5), "main");
  EXPECT_EQ(thread.messages(4).at(0).number(2), 101U);
  EXPECT_EQ(trace.tracks.at(thread.number(5)).messages(3).at(0).text(6), "demo");
}

TEST_F(Perfetto, WhatDoesNotNestHasATrackOfItsOwn) {
  test::TimelineMaker maker;
  const int32_t lane = maker.lane(101, "main");
  maker.range("a", lane, 0, 100);
  maker.range("b", lane, 50, 150);
  maker.range("request", lane, 10, 40, trace::kNoFrame, true);
  maker.range("request", lane, 20, 60, trace::kNoFrame, true);
  maker.range("request", lane, 45, 70, trace::kNoFrame, true);
  maker.range("open", lane, 140, 200, trace::kNoFrame, false, true);
  maker.timeline.duration_ns = 200;
  const Decoded trace = exported(maker.finish());
  EXPECT_EQ(trace.slice("a").end, 100);
  EXPECT_EQ(trace.slice("b").end, 150);
  EXPECT_NE(trace.slice("a").track, trace.slice("b").track);
  EXPECT_EQ(trace.slice("open").end, -1);
  EXPECT_EQ(trace.slice("open").arguments.at("open"), "1");
  std::map<int64_t, Slice> requests;
  for (const Slice& slice : trace.slices)
    if (slice.name == "request") requests[slice.start] = slice;
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[10].end, 40);
  EXPECT_EQ(requests[20].end, 60);
  EXPECT_EQ(requests[45].end, 70);
  EXPECT_NE(requests[10].track, requests[20].track);
  EXPECT_EQ(requests[10].track, requests[45].track);
}

TEST_F(Perfetto, DevicesFlowsMarksCounters) {
  test::TimelineMaker maker;
  maker.timeline.processes.push_back({100, 0});
  const int32_t thread = maker.lane(101, "main"), other = maker.lane(102, "worker");
  const int32_t stream = maker.lane(7, "", 100, trace::Lane::Kind::kStream, 1);
  maker.range("produce", thread, 0, 100);
  maker.range("consume", other, 200, 300);
  maker.flow("item", thread, 90, other, 210);
  maker.flow("lost", thread, 400, other, 410);
  maker.api_call("cudaLaunchKernel", thread, 20, 30, 17);
  auto& kernel = maker.device_op(RangeKind::kKernel, "gemm", stream, 50, 60, 17);
  kernel.grid[0] = 4, kernel.grid[1] = 2, kernel.grid[2] = 1;
  maker.mark("tick", other, 220, 9);
  maker.mark_argument("n", int64_t{4});
  maker.counter("queue", 100, 5, 2.5);
  maker.counter("queue", 100, 6, 3.5, thread);
  maker.timeline.facts["engine"] = "torch";
  maker.timeline.losses.faults["unmatched pop"] = 3;
  const Decoded trace = exported(maker.finish());
  EXPECT_EQ(trace.slice("produce").out, trace.slice("consume").in);
  EXPECT_EQ(trace.slice("produce").out.size(), 1U);
  EXPECT_EQ(trace.slice("produce").arguments.at("flows"), "[item]");
  EXPECT_EQ(trace.slice("cudaLaunchKernel").out, trace.slice("gemm").in);
  EXPECT_EQ(trace.slice("gemm").category, "kernel");
  EXPECT_EQ(trace.slice("gemm").arguments.at("grid"), "4,2,1");
  EXPECT_EQ(trace.slice("gemm").arguments.at("correlation"), "17");
  const Message& of_stream = trace.tracks.at(trace.slice("gemm").track);
  EXPECT_EQ(of_stream.text(2), "stream 7");
  const Message& device = trace.tracks.at(of_stream.number(5));
  EXPECT_EQ(device.text(2), "GPU 1");
  EXPECT_EQ(trace.tracks.at(device.number(5)).messages(3).at(0).number(1), 100U);
  std::map<std::string, std::vector<Slice>> instants;
  for (const Slice& one : trace.instants) instants[one.name].push_back(one);
  ASSERT_EQ(instants["tick"].size(), 1U);
  EXPECT_EQ(instants["tick"][0].start, 220);
  EXPECT_EQ(instants["tick"][0].arguments, (std::map<std::string, std::string>{{"frame", "9"}, {"n", "4"}}));
  ASSERT_EQ(instants["lost"].size(), 2U);
  EXPECT_EQ(instants["lost"][0].out, instants["lost"][1].in);
  EXPECT_EQ(instants["facts"].at(0).arguments.at("engine"), "torch");
  EXPECT_EQ(instants["losses"].at(0).arguments.at("unmatched pop"), "3");
  ASSERT_EQ(trace.counters.size(), 2U);
  std::set<uint64_t> parents;
  for (const auto& [track, values] : trace.counters) {
    EXPECT_EQ(values.size(), 1U);
    EXPECT_EQ(trace.tracks.at(track).text(2), "queue");
    parents.insert(trace.tracks.at(track).number(5));
  }
  EXPECT_TRUE(parents.contains(trace.slice("produce").track));
}

// An item that arrives in a range that was open before it left: the arrow must not point back in time.
TEST_F(Perfetto, AnArrowIntoAnOlderRangeArrivesAtItsEnd) {
  test::TimelineMaker maker;
  const int32_t thread = maker.lane(101), other = maker.lane(102);
  maker.range("wait", other, 0, 300);
  maker.range("produce", thread, 100, 200);
  maker.flow("item", thread, 150, other, 250);
  const std::string path = folder_ / "out.pftrace";
  const Timeline timeline = maker.finish();
  ASSERT_TRUE(exporters::export_timeline(timeline, "perfetto", path));
  std::vector<std::pair<int64_t, uint32_t>> ends;  // time, field
  for (const Message& packet : Message(*read_file(path)).messages(1))
    for (const Message& event : packet.messages(11))
      for (const uint32_t field : {47U, 48U})
        if (event.numbers.contains(field)) ends.emplace_back(static_cast<int64_t>(packet.number(8)), field);
  std::sort(ends.begin(), ends.end());
  EXPECT_EQ(ends, (std::vector<std::pair<int64_t, uint32_t>>{{100, 47}, {300, 48}}));
}

TEST_F(Perfetto, NamesBecomeUtf8) {
  test::TimelineMaker maker;
  const int32_t range = maker.range(test::kHostileName, maker.lane(1, test::kHostileName), 0, 10);
  maker.argument(range, test::kHostileName, test::kHostileName);
  const Decoded trace = exported(maker.finish());
  EXPECT_EQ(trace.slices.at(0).name, test::kHostileNameClean);
  EXPECT_EQ(trace.slices.at(0).arguments.at(test::kHostileNameClean), test::kHostileNameClean);
}

TEST_F(Perfetto, AnyTimelineKeepsEveryRange) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    const Timeline timeline = test::random_timeline(seed, 300);
    const Decoded trace = exported(timeline);
    using Key = std::tuple<std::string, int64_t, int64_t>;
    std::multiset<Key> expected, got;
    for (const Slice& slice : trace.slices)
      got.emplace(slice.name, slice.start, slice.end == -1 ? timeline.duration_ns : slice.end);
    for (size_t i = 0; i < timeline.ranges.size(); ++i) {
      std::string name;
      exporters::append_utf8(name, timeline.strings[timeline.ranges.name[i]]);
      expected.emplace(name, timeline.ranges.start_ns[i], timeline.ranges.end_ns[i]);
    }
    std::vector<Key> differing;
    std::set_symmetric_difference(got.begin(), got.end(), expected.begin(), expected.end(),
                                  std::back_inserter(differing));
    EXPECT_THAT(differing, testing::IsEmpty()) << "seed " << seed;
    size_t values = 0;
    for (const auto& [track, of_track] : trace.counters) values += of_track.size();
    EXPECT_EQ(values, timeline.counters.size());
  }
}

TEST_F(Perfetto, WhatCannotBeWrittenLeavesTheOldFile) {
  const auto path = folder_ / "none" / "out.pftrace";
  const auto done = exporters::export_timeline(test::random_timeline(1, 10), "perfetto", path);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind(), ErrorKind::kIo);
  EXPECT_NE(done.error().to_string().find(path.string()), std::string::npos);
  const auto full = exporters::export_timeline(test::random_timeline(1, 10), "csv", "/dev/full");
  EXPECT_FALSE(full);
}

}  // namespace
}  // namespace strobe
