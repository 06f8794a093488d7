#include "exporters/perfetto_packets.h"

#include <algorithm>

#include "exporters/names.h"
#include "exporters/text.h"

namespace strobe::exporters {

using trace::StringId;

namespace {

constexpr uint32_t kTracePacket = 1;
namespace packet {
constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInternedData = 12,
                   kSequenceFlags = 13, kTrackDescriptor = 60;
constexpr uint64_t kStateCleared = 1, kNeedsState = 2;
}  // namespace packet
namespace clock_snapshot {
constexpr uint32_t kClocks = 1, kPrimary = 2, kClockId = 1, kTimestamp = 2;
constexpr uint64_t kRealtime = 1, kBoottime = 6;
}  // namespace clock_snapshot
namespace track_event {
constexpr uint32_t kCategoryIids = 3, kDebugAnnotations = 4, kType = 9, kNameIid = 10, kTrackUuid = 11, kName = 23,
                   kDoubleCounterValue = 44, kFlowIds = 47, kTerminatingFlowIds = 48;
}  // namespace track_event
namespace annotation {
constexpr uint32_t kNameIid = 1, kInt = 4, kDouble = 5, kString = 6, kName = 10, kArrayValues = 12, kStringIid = 17;
}  // namespace annotation
namespace interned {
constexpr uint32_t kCategories = 1, kNames = 2, kAnnotationNames = 3, kAnnotationStrings = 29;
constexpr uint32_t kIid = 1, kText = 2;
}  // namespace interned

constexpr uint64_t kSequence = 1;

}  // namespace

PerfettoPackets::PerfettoPackets(ByteSink& sink, const trace::Strings& strings, int64_t utc_ns)
    : sink_(sink), strings_(strings) {
  // Times of events are nanoseconds of the default clock, which begins with the trace; one pair ties it to the wall.
  ProtoMessage snapshot, clock;
  const auto add = [&](uint64_t id, int64_t time_ns) {
    clock.clear();
    clock.integer(clock_snapshot::kClockId, id);
    clock.integer_signed(clock_snapshot::kTimestamp, time_ns);
    snapshot.message(clock_snapshot::kClocks, clock);
  };
  add(clock_snapshot::kBoottime, 0);
  if (utc_ns > 0) add(clock_snapshot::kRealtime, utc_ns);
  snapshot.integer(clock_snapshot::kPrimary, clock_snapshot::kBoottime);
  packet_.message(packet::kClockSnapshot, snapshot);
  write_packet();
}

void PerfettoPackets::write_packet() {
  packet_.integer(packet::kSequenceId, kSequence);
  if (first_) packet_.integer(packet::kSequenceFlags, packet::kStateCleared);
  first_ = false;
  entry_.clear();
  entry_.message(kTracePacket, packet_);
  sink_.append(entry_.bytes());
  sink_.flush_if_full();
  packet_.clear();
}

void PerfettoPackets::track(const ProtoMessage& descriptor) {
  packet_.message(packet::kTrackDescriptor, descriptor);
  write_packet();
}

void PerfettoPackets::write_interned(uint32_t list, uint64_t number, std::string_view text) {
  clean_.clear();
  append_utf8(clean_, text);
  entry_.clear();
  entry_.integer(interned::kIid, number);
  entry_.text(interned::kText, clean_);
  interned_.message(list, entry_);
}

uint64_t PerfettoPackets::intern(std::vector<uint8_t>& known, uint32_t list, StringId id) {
  const uint64_t number = uint64_t{id} + 1;
  if (id >= known.size()) known.resize(strings_.size(), 0);
  if (!known[id]) {
    known[id] = 1;
    write_interned(list, number, strings_[id]);
  }
  return number;
}

// Their numbers lie beyond those of the timeline's texts.
uint64_t PerfettoPackets::intern_key(std::string_view key) {
  const auto found = std::find(literal_keys_.begin(), literal_keys_.end(), key);
  const uint64_t number = strings_.size() + 1 + static_cast<uint64_t>(found - literal_keys_.begin());
  if (found == literal_keys_.end()) {
    literal_keys_.push_back(key);
    write_interned(interned::kAnnotationNames, number, key);
  }
  return number;
}

void PerfettoPackets::begin_event(TrackEventType type, uint64_t track) {
  event_.clear();
  interned_.clear();
  event_.integer(track_event::kType, static_cast<uint64_t>(type));
  event_.integer(track_event::kTrackUuid, track);
}

void PerfettoPackets::name(StringId name) {
  event_.integer(track_event::kNameIid, intern(known_names_, interned::kNames, name));
}

void PerfettoPackets::plain_name(std::string_view name) {
  event_.text(track_event::kName, name);
}

void PerfettoPackets::category(uint32_t kind) {
  if ((known_categories_ >> kind & 1) == 0) {
    known_categories_ |= 1U << kind;
    write_interned(interned::kCategories, kind + 1, kind == kMarkCategory ? "mark" : kRangeKinds[kind]);
  }
  event_.integer(track_event::kCategoryIids, kind + 1);
}

void PerfettoPackets::counter_value(double value) {
  event_.real(track_event::kDoubleCounterValue, value);
}

void PerfettoPackets::flow(uint64_t id, bool ends) {
  event_.fixed(ends ? track_event::kTerminatingFlowIds : track_event::kFlowIds, id);
}

void PerfettoPackets::argument(StringId key, const std::variant<int64_t, double, StringId>& value) {
  annotation_.clear();
  annotation_.integer(annotation::kNameIid, intern(known_keys_, interned::kAnnotationNames, key));
  if (const auto* whole = std::get_if<0>(&value)) {
    annotation_.integer_signed(annotation::kInt, *whole);
  } else if (const auto* real = std::get_if<1>(&value)) {
    annotation_.real(annotation::kDouble, *real);
  } else {
    annotation_.integer(annotation::kStringIid,
                        intern(known_values_, interned::kAnnotationStrings, std::get<2>(value)));
  }
  event_.message(track_event::kDebugAnnotations, annotation_);
}

void PerfettoPackets::argument(std::string_view key, int64_t value) {
  annotation_.clear();
  annotation_.integer(annotation::kNameIid, intern_key(key));
  annotation_.integer_signed(annotation::kInt, value);
  event_.message(track_event::kDebugAnnotations, annotation_);
}

void PerfettoPackets::argument(std::string_view key, std::string_view value) {
  const uint64_t number = intern_key(key);
  clean_.clear();
  append_utf8(clean_, value);
  annotation_.clear();
  annotation_.integer(annotation::kNameIid, number);
  annotation_.text(annotation::kString, clean_);
  event_.message(track_event::kDebugAnnotations, annotation_);
}

void PerfettoPackets::plain_argument(std::string_view key, std::string_view value) {
  annotation_.clear();
  clean_.clear();
  append_utf8(clean_, key);
  annotation_.text(annotation::kName, clean_);
  clean_.clear();
  append_utf8(clean_, value);
  annotation_.text(annotation::kString, clean_);
  event_.message(track_event::kDebugAnnotations, annotation_);
}

void PerfettoPackets::names_argument(std::string_view key, const std::vector<StringId>& names) {
  annotation_.clear();
  annotation_.integer(annotation::kNameIid, intern_key(key));
  for (const StringId name : names) {
    element_.clear();
    element_.integer(annotation::kStringIid, intern(known_values_, interned::kAnnotationStrings, name));
    annotation_.message(annotation::kArrayValues, element_);
  }
  event_.message(track_event::kDebugAnnotations, annotation_);
}

void PerfettoPackets::end_event(int64_t time_ns) {
  packet_.integer_signed(packet::kTimestamp, time_ns);
  if (!interned_.empty()) packet_.message(packet::kInternedData, interned_);
  packet_.integer(packet::kSequenceFlags, packet::kNeedsState);
  packet_.message(packet::kTrackEvent, event_);
  write_packet();
}

}  // namespace strobe::exporters
