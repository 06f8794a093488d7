#include "gpu/timeline/log_timeline.h"

namespace strobe::gpu {

using trace::Lane;

Places::Places(trace::Timeline& timeline) : timeline_(timeline) {
  for (size_t i = 0; i < timeline.lanes.size(); ++i) {
    const Lane& lane = timeline.lanes[i];
    if (lane.kind == Lane::Kind::kThread) threads_[{lane.pid, lane.tid}] = static_cast<int32_t>(i);
  }
  for (const trace::Process& process : timeline.processes) processes_.insert(process.pid);
}

void Places::process(int32_t pid) {
  if (processes_.insert(pid).second) timeline_.processes.push_back({pid, 0});
}

int32_t Places::thread(int32_t pid, int32_t tid) {
  const auto [found, is_new] = threads_.try_emplace({pid, tid}, static_cast<int32_t>(timeline_.lanes.size()));
  if (is_new) {
    timeline_.lanes.push_back({.kind = Lane::Kind::kThread, .pid = pid, .tid = tid});
    process(pid);
  }
  return found->second;
}

int32_t Places::stream(int32_t pid, uint32_t device, uint32_t context, uint32_t stream) {
  const auto [found, is_new] =
      streams_.try_emplace({pid, device, context, stream}, static_cast<int32_t>(timeline_.lanes.size()));
  if (is_new) {
    // What concerns a whole context has no stream.
    const std::string name =
        stream == kNoNumber ? "context " + std::to_string(context) : "stream " + std::to_string(stream);
    timeline_.lanes.push_back({Lane::Kind::kStream, pid, static_cast<int32_t>(stream), timeline_.strings.intern(name),
                               static_cast<int32_t>(device), static_cast<int32_t>(context)});
    process(pid);
  }
  return found->second;
}

int Places::gpu(const std::array<uint64_t, 2>& uuid, int wanted) {
  if (const auto found = gpus_.find(uuid); found != gpus_.end()) return found->second;
  std::set<int> used;
  for (const auto& [other, number] : gpus_) used.insert(number);
  int number = wanted;
  while (used.count(number) != 0) ++number;
  gpus_[uuid] = number;
  return number;
}

const std::string& LogIndex::text(TextId id) const {
  static const std::string none;
  const auto found = texts_.find(id.id);
  return found == texts_.end() ? none : found->second;
}

uint32_t LogIndex::device_of(uint32_t context) const {
  const auto found = contexts.find(context);
  return found == contexts.end() ? kNoNumber : found->second.device;
}

const GraphNode* LogIndex::capture_of(uint64_t node) const {
  for (size_t steps = 0; steps <= copied_.size(); ++steps) {  // a log may say that they go round
    const auto copy = copied_.find(node);
    if (copy == copied_.end()) {
      const auto made = made_.find(node);
      return made == made_.end() ? nullptr : &made->second;
    }
    node = copy->second.original;
  }
  return nullptr;
}

void LogIndex::add(const Record& record) {
  if (const auto* definition = std::get_if<TextDefinition>(&record)) {
    texts_[definition->id] = definition->text;
  } else if (const auto* fact = std::get_if<Fact>(&record)) {
    facts[fact->key] = fact->value;
  } else if (const auto* pair = std::get_if<ClockPair>(&record)) {
    clocks.push_back(*pair);
  } else if (const auto* function = std::get_if<FunctionName>(&record)) {
    functions[{function->is_driver, function->function}] = text(function->name);
  } else if (const auto* device = std::get_if<Device>(&record)) {
    devices[device->id] = *device;
    device_names[device->id] = text(device->name);
  } else if (const auto* context = std::get_if<Context>(&record)) {
    contexts[context->id] = *context;
  } else if (const auto* stream = std::get_if<Stream>(&record)) {
    streams[{stream->context, stream->id}] = *stream;
  } else if (const auto* event = std::get_if<EventRecorded>(&record)) {
    if (event->event_sync != 0) recorded[event->event_sync] = {event->place.stream, event->correlation};
  } else if (const auto* node = std::get_if<GraphNode>(&record)) {
    // The copy that is made when a graph is instantiated is told of twice: as a node, and as the copy.
    (node->original == 0 ? made_ : copied_)[node->node] = *node;
  } else if (const auto* name = std::get_if<ObjectName>(&record)) {
    constexpr uint32_t kOfStream = 5;
    if (name->object == kOfStream) stream_names[{name->place.context, name->place.stream}] = text(name->name);
  } else if (const auto* complete = std::get_if<Complete>(&record)) {
    complete_to = complete->up_to.ns;
  } else if (const auto* loss = std::get_if<Loss>(&record)) {
    losses[loss->kind] += loss->count;
  } else if (const auto* end = std::get_if<End>(&record)) {
    ended = true;
    flush_timed_out = end->flush_timed_out != 0;
  }
}

}  // namespace strobe::gpu
