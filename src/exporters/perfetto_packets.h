// Packets of a Perfetto trace: one sequence, whose names are written once and then go by number. Field numbers are
// those of Perfetto's public protos (protos/perfetto/trace: trace_packet, track_event/*, interned_data).
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "base/proto.h"
#include "exporters/byte_sink.h"
#include "strobe/trace/timeline.h"

namespace strobe::exporters {

enum class TrackEventType : uint8_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

class PerfettoPackets {
 public:
  // Begins the sequence. utc_ns: wall clock of time 0, 0: not known.
  PerfettoPackets(ByteSink& sink, const trace::Strings& strings, int64_t utc_ns);

  void track(const ProtoMessage& descriptor);

  // An event: begin_event, then what belongs to it, then end_event.
  void begin_event(TrackEventType type, uint64_t track);
  void name(trace::StringId name);
  void plain_name(std::string_view name);  // not interned: of events that come once
  void category(uint32_t kind);            // index into kRangeKinds, or kMarkCategory
  void counter_value(double value);
  void flow(uint64_t id, bool ends);
  void argument(trace::StringId key, const std::variant<int64_t, double, trace::StringId>& value);
  void argument(std::string_view key, int64_t value);  // key: a literal
  void argument(std::string_view key, std::string_view value);
  // The key is not interned either: of what comes once.
  void plain_argument(std::string_view key, std::string_view value);
  // Several names under one key.
  void names_argument(std::string_view key, const std::vector<trace::StringId>& names);
  void end_event(int64_t time_ns);

  static constexpr uint32_t kMarkCategory = 10;

 private:
  // Number of a text among those of a list of InternedData; written on first use.
  uint64_t intern(std::vector<uint8_t>& known, uint32_t list, trace::StringId id);
  uint64_t intern_key(std::string_view key);
  void write_interned(uint32_t list, uint64_t number, std::string_view text);
  void write_packet();

  ByteSink& sink_;
  const trace::Strings& strings_;
  std::vector<uint8_t> known_names_, known_keys_, known_values_;
  std::vector<std::string_view> literal_keys_;
  std::string clean_;
  uint32_t known_categories_ = 0;
  bool first_ = true;
  ProtoMessage packet_, event_, interned_, entry_, annotation_, element_;
};

}  // namespace strobe::exporters
