// The events of a Chrome trace become a Timeline.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "importers/kineto_event.h"
#include "importers/string_cache.h"
#include "strobe/trace/timeline.h"

namespace strobe::importers {

class KinetoBuilder {
 public:
  // plain: categories and names have no meaning of their own; every event is an annotation with all its arguments.
  explicit KinetoBuilder(bool plain) : plain_(plain), cache_(timeline_.strings) {}

  void add(const Event& event);
  // A member of the outermost object, other than the events.
  void add_property(std::string_view key, const json::Value& value);
  void add_fault(const std::string& kind, uint64_t count) { timeline_.losses.faults[kind] += count; }
  uint64_t event_count() const { return event_count_; }
  // Whether something was there that only PyTorch's profiler writes.
  bool is_pytorch() const { return is_pytorch_; }
  // To be called once, last.
  trace::Timeline finish();

 private:
  enum class Role : uint8_t;  // what an argument is; kineto_arguments.cc
  struct Place {
    int32_t pid = 0, tid = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct PlaceHash {
    size_t operator()(const Place& place) const {
      return (static_cast<uint64_t>(static_cast<uint32_t>(place.pid)) << 32 | static_cast<uint32_t>(place.tid)) *
             0x9E3779B97F4A7C15ULL;
    }
  };
  using LaneMap = std::unordered_map<Place, int32_t, PlaceHash>;
  struct FlowEnd {
    trace::StringId category = 0, name = 0;
    int64_t id = 0;
    int64_t time_ns = 0;
    Place place;
    char phase = 0;
  };
  struct AsyncKey {
    trace::StringId category = 0, id = 0;
    int32_t pid = -1;  // of an id that counts within its process only
    auto operator<=>(const AsyncKey&) const = default;
  };
  struct Names {
    trace::StringId name = 0;
    int64_t sort_index = 0;
  };

  const Category& category(const Event& event);
  trace::StringId text(const json::Value& value);
  int32_t number_of(const json::Value& value, std::map<std::string, int32_t, std::less<>>& words);
  Place place_of(const Event& event);
  int32_t thread_lane(Place place);
  int32_t stream_lane(Place device_and_stream);
  std::optional<int64_t> time_of(const json::Value& value);

  void add_complete(const Event& event, int64_t start_ns);
  int32_t add_range(const Event& event, int64_t start_ns, int64_t end_ns);
  int32_t push_range(trace::StringId name, int64_t start_ns, int64_t end_ns, int32_t lane, trace::RangeKind kind);
  void begin(const Event& event, int64_t time_ns);
  void end(const Event& event, int64_t time_ns);
  AsyncKey async_key(const Event& event);
  void begin_async(const Event& event, int64_t time_ns);
  void end_async(const Event& event, int64_t time_ns);
  void add_mark(const Event& event, int64_t time_ns);
  bool add_memory(const Event& event, int64_t time_ns);
  void add_counters(const Event& event, int64_t time_ns);
  void push_counter(trace::StringId name, int64_t time_ns, int32_t pid, double value);
  void add_flow_end(const Event& event, int64_t time_ns);
  void add_metadata(const Event& event);

  // kineto_arguments.cc
  Role role_of(trace::StringId key);
  void add_argument(int32_t range, trace::StringId key, const json::Value& value);
  void add_arguments(const Event& event, int32_t range, trace::RangeKind kind, bool known);
  // Of an event of a device: what it did, and where (device and stream of `place` where the arguments tell none).
  trace::DeviceOp device_op(const Event& event, trace::RangeKind kind, Place& place, int32_t& context);

  // kineto_finish.cc
  void shift_times();
  void close_open_ranges();
  void place_marks();
  void connect_flows();
  void find_owners();
  void name_and_sort_lanes();
  std::optional<int32_t> lane_at(Place place) const;

  const bool plain_;
  trace::Timeline timeline_;
  StringCache cache_;
  uint64_t event_count_ = 0;
  bool is_pytorch_ = false;

  std::vector<std::pair<std::string, Category>> categories_;
  std::map<std::string, int32_t, std::less<>> pid_words_, tid_words_;
  LaneMap thread_lanes_, stream_lanes_;
  Place last_thread_{-1, -1}, last_stream_{-1, -1};
  int32_t last_thread_lane_ = -1, last_stream_lane_ = -1;
  std::vector<Role> roles_;                                          // by StringId
  std::unordered_map<Place, std::vector<int32_t>, PlaceHash> open_;  // ranges that B began
  std::map<AsyncKey, std::vector<int32_t>> async_open_;
  std::vector<FlowEnd> flow_ends_;
  std::vector<Place> mark_places_;
  std::map<int32_t, Names> process_names_;
  std::map<Place, Names> thread_names_;
  std::map<std::pair<int64_t, int64_t>, std::pair<trace::StringId, trace::StringId>> memory_names_;
  std::map<std::string, int64_t> time_facts_;  // facts that are times
  int64_t first_ns_ = INT64_MAX, last_ns_ = INT64_MIN;
  std::optional<int64_t> base_ns_;  // wall clock of the file's time 0
};

}  // namespace strobe::importers
