#include "importers/kineto_builder.h"

#include <algorithm>
#include <charconv>

#include "importers/decimal.h"

namespace strobe::importers {

using json::Value;
using trace::RangeKind;
using trace::StringId;

namespace {

// Ids that are no numbers get numbers from here on.
constexpr int32_t kFirstWordId = 1 << 30;

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

const Value* argument(const Event& event, std::string_view key) {
  const auto found =
      std::find_if(event.args.begin(), event.args.end(), [key](const EventArgument& arg) { return arg.key == key; });
  return found == event.args.end() ? nullptr : &found->value;
}

}  // namespace

void KinetoBuilder::add(const Event& event) {
  ++event_count_;
  if (event.phase == 'M') return add_metadata(event);
  if (event.phase == 0) return add_fault("event without a phase", 1);
  const std::optional<int64_t> time_ns = time_of(event.time);
  if (!time_ns) return add_fault("event without a time that can be read", 1);
  switch (event.phase) {
    case 'X':
      return add_complete(event, *time_ns);
    case 'B':
      return begin(event, *time_ns);
    case 'E':
      return end(event, *time_ns);
    case 'b':
    case 'S':
      return begin_async(event, *time_ns);
    case 'e':
    case 'F':
      return end_async(event, *time_ns);
    case 'i':
    case 'I':
    case 'R':
    case 'n':
    case 'T':
    case 'p':
      return add_mark(event, *time_ns);
    case 's':
    case 't':
    case 'f':
      return add_flow_end(event, *time_ns);
    case 'C':
      return add_counters(event, *time_ns);
    default:
      return add_fault(std::string("event of a phase that is not kept: ") + event.phase, 1);
  }
}

const Category& KinetoBuilder::category(const Event& event) {
  static const Category kPlain;
  if (plain_) return kPlain;
  const std::string_view name = event.category.text;
  for (const auto& [known, category] : categories_)
    if (known == name) return category;
  // A file with a category for each event would make every search long.
  constexpr size_t kMost = 64;
  if (categories_.size() == kMost) categories_.pop_back();
  categories_.emplace_back(name, category_of(name));
  is_pytorch_ |= categories_.back().second.known;
  return categories_.back().second;
}

StringId KinetoBuilder::text(const Value& value) {
  if (value.type == json::Type::kEscaped) return timeline_.strings.intern(json::unescape(value.text));
  return cache_.intern(value.text);
}

int32_t KinetoBuilder::number_of(const Value& value, std::map<std::string, int32_t, std::less<>>& words) {
  std::string_view text = value.text;
  if (value.type == json::Type::kNone) return 0;
  constexpr std::string_view kStream = "stream ";
  if (text.starts_with(kStream)) text.remove_prefix(kStream.size());
  if (const auto number = parse_number<int64_t>(text); number && *number >= INT32_MIN && *number <= UINT32_MAX)
    return static_cast<int32_t>(static_cast<uint32_t>(*number));
  if (const auto found = words.find(value.text); found != words.end()) return found->second;
  const auto id = static_cast<int32_t>(kFirstWordId + words.size());
  words.emplace(value.text, id);
  return id;
}

KinetoBuilder::Place KinetoBuilder::place_of(const Event& event) {
  return {number_of(event.pid, pid_words_), number_of(event.tid, tid_words_)};
}

int32_t KinetoBuilder::thread_lane(Place place) {
  if (place == last_thread_ && last_thread_lane_ >= 0) return last_thread_lane_;
  const auto [found, is_new] = thread_lanes_.try_emplace(place, static_cast<int32_t>(timeline_.lanes.size()));
  if (is_new) timeline_.lanes.push_back({.kind = trace::Lane::Kind::kThread, .pid = place.pid, .tid = place.tid});
  last_thread_ = place;
  return last_thread_lane_ = found->second;
}

int32_t KinetoBuilder::stream_lane(Place place) {
  if (place == last_stream_ && last_stream_lane_ >= 0) return last_stream_lane_;
  const auto [found, is_new] = stream_lanes_.try_emplace(place, static_cast<int32_t>(timeline_.lanes.size()));
  // The process is found at the end: events name the device where others name their process.
  if (is_new) timeline_.lanes.push_back({.kind = trace::Lane::Kind::kStream, .tid = place.tid, .device = place.pid});
  last_stream_ = place;
  return last_stream_lane_ = found->second;
}

std::optional<int64_t> KinetoBuilder::time_of(const Value& value) {
  if (value.type != json::Type::kBare && value.type != json::Type::kString) return std::nullopt;
  constexpr int kMicrosecondsToNanoseconds = 3;
  return scaled_decimal(value.text, kMicrosecondsToNanoseconds);
}

void KinetoBuilder::add_complete(const Event& event, int64_t start_ns) {
  // The profiler's own row: how long it was on.
  if (!plain_ && event.category.text == "Trace" && event.pid.text == "Spans") {
    is_pytorch_ = true;
    time_facts_["profiler.start_ns"] = start_ns;
    time_facts_["profiler.end_ns"] = start_ns + time_of(event.duration).value_or(0);
    return;
  }
  const std::optional<int64_t> duration_ns = time_of(event.duration);
  if (!duration_ns) add_fault("complete event without a duration that can be read", 1);
  add_range(event, start_ns, start_ns + duration_ns.value_or(0));
}

int32_t KinetoBuilder::add_range(const Event& event, int64_t start_ns, int64_t end_ns) {
  const Category& category = this->category(event);
  RangeKind kind = category.kind;
  const StringId name = text(event.name);
  int64_t frame = trace::kNoFrame;
  constexpr std::string_view kStep = "ProfilerStep#";
  if (!plain_ && event.name.text.starts_with(kStep)) {
    frame = parse_number<int64_t>(event.name.text.substr(kStep.size())).value_or(trace::kNoFrame);
    kind = RangeKind::kAnnotation;  // the oldest files call it an operator
  }
  Place place = place_of(event);
  trace::DeviceOp op;
  int32_t context = trace::kNone;
  if (category.on_stream) op = device_op(event, kind, place, context);
  const int32_t lane = category.on_stream ? stream_lane(place) : thread_lane(place);
  if (context != trace::kNone) timeline_.lanes[static_cast<size_t>(lane)].context = context;
  const int32_t range = push_range(name, start_ns, end_ns, lane, kind);
  timeline_.ranges.frame.back() = frame;
  if (is_device(kind)) {
    op.range = range;
    timeline_.device_ops.push_back(op);
  }
  add_arguments(event, range, kind, category.known);
  return range;
}

int32_t KinetoBuilder::push_range(StringId name, int64_t start_ns, int64_t end_ns, int32_t lane, RangeKind kind) {
  trace::Ranges& ranges = timeline_.ranges;
  ranges.start_ns.push_back(start_ns);
  ranges.end_ns.push_back(end_ns);
  ranges.name.push_back(name);
  ranges.lane.push_back(lane);
  ranges.frame.push_back(trace::kNoFrame);
  ranges.is_async.push_back(0);
  ranges.open.push_back(0);
  ranges.kind.push_back(kind);
  first_ns_ = std::min(first_ns_, start_ns);
  last_ns_ = std::max({last_ns_, start_ns, end_ns});
  return static_cast<int32_t>(ranges.size() - 1);
}

void KinetoBuilder::begin(const Event& event, int64_t time_ns) {
  const int32_t range = add_range(event, time_ns, time_ns);
  timeline_.ranges.open[static_cast<size_t>(range)] = 1;
  open_[place_of(event)].push_back(range);
}

void KinetoBuilder::end(const Event& event, int64_t time_ns) {
  const auto found = open_.find(place_of(event));
  if (found == open_.end() || found->second.empty()) return add_fault("end of a range where none was open", 1);
  const int32_t range = found->second.back();
  found->second.pop_back();
  timeline_.ranges.open[static_cast<size_t>(range)] = 0;
  timeline_.ranges.end_ns[static_cast<size_t>(range)] = time_ns;
  last_ns_ = std::max(last_ns_, time_ns);
  add_arguments(event, range, RangeKind::kAnnotation, false);
}

KinetoBuilder::AsyncKey KinetoBuilder::async_key(const Event& event) {
  AsyncKey key{.category = text(event.category), .id = text(event.id)};
  if (event.local_id.type != json::Type::kNone) {
    // "id2": {"local": "0x1"} counts within its process; {"global": ...} does not.
    key.id = text(event.local_id);
    if (event.local_id.text.find("\"local\"") != std::string_view::npos) key.pid = place_of(event).pid;
  }
  return key;
}

void KinetoBuilder::begin_async(const Event& event, int64_t time_ns) {
  const int32_t lane = thread_lane(place_of(event));
  const int32_t range = push_range(text(event.name), time_ns, time_ns, lane, RangeKind::kAnnotation);
  timeline_.ranges.is_async.back() = 1;
  timeline_.ranges.open.back() = 1;
  async_open_[async_key(event)].push_back(range);
  add_arguments(event, range, RangeKind::kAnnotation, false);
}

void KinetoBuilder::end_async(const Event& event, int64_t time_ns) {
  const auto found = async_open_.find(async_key(event));
  if (found == async_open_.end()) return add_fault("asynchronous end without a begin", 1);
  const int32_t range = found->second.back();
  found->second.pop_back();
  if (found->second.empty()) async_open_.erase(found);
  timeline_.ranges.open[static_cast<size_t>(range)] = 0;
  timeline_.ranges.end_ns[static_cast<size_t>(range)] = time_ns;
  last_ns_ = std::max(last_ns_, time_ns);
  add_arguments(event, range, RangeKind::kAnnotation, false);
}

void KinetoBuilder::add_mark(const Event& event, int64_t time_ns) {
  if (!plain_) {
    if (event.name.text == "Record Window End" && event.pid.text.empty()) {
      time_facts_["profiler.window_end_ns"] = time_ns;
      return;
    }
    if (event.pid.text == "Traces" && event.name.text.starts_with("Iteration Start")) {
      time_facts_["profiler.iteration_start_ns"] = time_ns;
      return;
    }
    if (event.name.text == "[memory]" && add_memory(event, time_ns)) return;
  }
  trace::Marks& marks = timeline_.marks;
  marks.time_ns.push_back(time_ns);
  marks.name.push_back(text(event.name));
  marks.lane.push_back(trace::kNone);
  marks.frame.push_back(trace::kNoFrame);
  mark_places_.push_back(place_of(event));
  first_ns_ = std::min(first_ns_, time_ns);
  last_ns_ = std::max(last_ns_, time_ns);
}

// PyTorch's memory events as counters of a device: what is allocated and reserved, or (older files) the change alone.
bool KinetoBuilder::add_memory(const Event& event, int64_t time_ns) {
  const Value* bytes = argument(event, "Bytes");
  const Value* type = argument(event, "Device Type");
  const Value* id = argument(event, "Device Id");
  if (!bytes || !type || !id) return false;
  const Value* allocated = argument(event, "Total Allocated");
  const Value* reserved = argument(event, "Total Reserved");
  const int64_t type_number = parse_number<int64_t>(type->text).value_or(0);
  const int64_t id_number = parse_number<int64_t>(id->text).value_or(0);
  const int64_t kind = allocated ? type_number : type_number - INT32_MAX;  // both sorts may be in one file
  auto [found, is_new] = memory_names_.try_emplace({kind, id_number});
  auto& [first_name, second_name] = found->second;
  if (is_new) {
    const std::string device = type_number == 0 ? "CPU" : "GPU " + std::to_string(id_number);
    first_name = timeline_.strings.intern((allocated ? "memory allocated, " : "memory change, ") + device);
    second_name = timeline_.strings.intern("memory reserved, " + device);
  }
  const int32_t pid = place_of(event).pid;
  const auto push = [&](StringId name, const Value& value) {
    if (const auto number = parse_number<double>(value.text)) push_counter(name, time_ns, pid, *number);
  };
  push(first_name, allocated ? *allocated : *bytes);
  if (allocated && reserved) push(second_name, *reserved);
  return true;
}

void KinetoBuilder::add_counters(const Event& event, int64_t time_ns) {
  const int32_t pid = place_of(event).pid;
  for (const EventArgument& arg : event.args) {
    const auto number = parse_number<double>(arg.value.text);
    if (!number) {
      add_fault("value of a counter that is no number", 1);
      continue;
    }
    StringId name = text(event.name);
    if (event.args.size() > 1 || event.id.type != json::Type::kNone) {
      std::string full(timeline_.strings[name]);
      if (event.id.type != json::Type::kNone) full.append(" ").append(event.id.text);
      if (event.args.size() > 1) full.append(".").append(arg.key);
      name = cache_.intern(full);
    }
    push_counter(name, time_ns, pid, *number);
  }
}

void KinetoBuilder::push_counter(StringId name, int64_t time_ns, int32_t pid, double value) {
  trace::Counters& counters = timeline_.counters;
  counters.time_ns.push_back(time_ns);
  counters.name.push_back(name);
  counters.pid.push_back(pid);
  counters.value.push_back(value);
  first_ns_ = std::min(first_ns_, time_ns);
  last_ns_ = std::max(last_ns_, time_ns);
}

void KinetoBuilder::add_flow_end(const Event& event, int64_t time_ns) {
  const Category& category = this->category(event);
  // These arrows say once more what the correlation numbers of calls and kernels say.
  if (category.launch_arrow) return;
  if (!plain_ && event.category.text == "async" && event.name.text == "launch") return;
  FlowEnd flow{.category = text(event.category),
               .name = text(event.name),
               .time_ns = time_ns,
               .place = place_of(event),
               .phase = event.phase};
  const Value& id = event.local_id.type != json::Type::kNone ? event.local_id : event.id;
  flow.id = parse_number<int64_t>(id.text).value_or(0);
  if (flow.id == 0) flow.id = static_cast<int64_t>(std::hash<std::string_view>{}(id.text));
  flow_ends_.push_back(flow);
  first_ns_ = std::min(first_ns_, time_ns);
  last_ns_ = std::max(last_ns_, time_ns);
}

void KinetoBuilder::add_metadata(const Event& event) {
  const Place place = place_of(event);
  const std::string_view what = event.name.text;
  if (what == "process_name" || what == "thread_name") {
    const Value* name = argument(event, "name");
    if (!name) return;
    std::string clean = name->type == json::Type::kEscaped ? json::unescape(name->text) : std::string(name->text);
    while (!clean.empty() && clean.back() == ' ') clean.pop_back();
    (what[0] == 'p' ? process_names_[place.pid] : thread_names_[place]).name = timeline_.strings.intern(clean);
  } else if (what == "process_sort_index" || what == "thread_sort_index") {
    const Value* index = argument(event, "sort_index");
    if (!index) return;
    (what[0] == 'p' ? process_names_[place.pid] : thread_names_[place]).sort_index =
        parse_number<int64_t>(index->text).value_or(0);
  }
}

}  // namespace strobe::importers
