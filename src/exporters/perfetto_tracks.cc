#include "exporters/perfetto_tracks.h"

#include "exporters/text.h"

namespace strobe::exporters {

using trace::Lane;
using trace::StringId;

namespace {

namespace descriptor {
constexpr uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8;
constexpr uint32_t kPid = 1, kProcessName = 6;  // of a process
constexpr uint32_t kTid = 2, kThreadName = 5;   // of a thread, beside its pid
}  // namespace descriptor

std::string clean(std::string_view text) {
  std::string out;
  append_utf8(out, text);
  return out;
}

}  // namespace

PerfettoTracks::PerfettoTracks(PerfettoPackets& packets, const trace::Timeline& timeline)
    : packets_(packets), timeline_(timeline) {
  for (const trace::Process& one : timeline.processes) process(one.pid);
  for (const Lane& lane : timeline.lanes)
    if (lane.kind != Lane::Kind::kThread) ++stream_counts_[{lane.pid, lane.device, lane.tid}];
  lanes_.resize(timeline.lanes.size());
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const Lane& lane = timeline.lanes[i];
    if (lane.kind == Lane::Kind::kThread) {
      describe_thread(lane, lanes_[i]);
    } else {
      describe_device(lane, lanes_[i]);
    }
  }
}

// Perfetto takes process 0 for the idle task of the kernel and hides it, and has no negative ones.
uint64_t PerfettoTracks::process(int32_t pid) {
  if (pid <= 0) return 0;
  const auto [found, is_new] = processes_.try_emplace(pid, last_ + 1);
  if (!is_new) return found->second;
  ProtoMessage process, track;
  process.integer_signed(descriptor::kPid, pid);
  for (const trace::Process& one : timeline_.processes)
    if (one.pid == pid && one.name != 0) process.text(descriptor::kProcessName, clean(timeline_.strings[one.name]));
  track.integer(descriptor::kUuid, ++last_);
  track.message(descriptor::kProcess, process);
  packets_.track(track);
  return last_;
}

uint64_t PerfettoTracks::add(uint64_t parent, std::string_view name) {
  ProtoMessage track;
  track.integer(descriptor::kUuid, ++last_);
  if (parent != 0) track.integer(descriptor::kParent, parent);
  track.text(descriptor::kName, name);
  packets_.track(track);
  return last_;
}

void PerfettoTracks::describe_thread(const Lane& lane, LaneTrack& track) {
  track.name = clean(timeline_.strings[lane.name]);
  if (track.name.empty()) track.name = "thread " + std::to_string(lane.tid);
  track.parent = process(lane.pid);
  // One that is there already would share its track, and ranges would close each other.
  const bool is_new = threads_.try_emplace({lane.pid, lane.tid}, last_ + 1).second;
  if (track.parent == 0 || lane.tid <= 0 || !is_new) {
    track.track = add(track.parent, track.name);
    return;
  }
  ProtoMessage thread, described;
  thread.integer_signed(descriptor::kPid, lane.pid);
  thread.integer_signed(descriptor::kTid, lane.tid);
  if (lane.name != 0) thread.text(descriptor::kThreadName, track.name);
  described.integer(descriptor::kUuid, ++last_);
  described.integer(descriptor::kParent, track.parent);
  described.message(descriptor::kThread, thread);
  packets_.track(described);
  track.track = last_;
}

void PerfettoTracks::describe_device(const Lane& lane, LaneTrack& track) {
  uint64_t& group = devices_[{lane.pid, lane.device}];
  if (group == 0) {
    const std::string device = lane.device == trace::kNone ? "GPU" : "GPU " + std::to_string(lane.device);
    group = add(process(lane.pid), device);
  }
  track.parent = group;
  track.name = (lane.kind == Lane::Kind::kStream ? "stream " : "copy engine ") + std::to_string(lane.tid);
  if (stream_counts_[{lane.pid, lane.device, lane.tid}] > 1)
    track.name += " of context " + (lane.context == trace::kNone ? std::string("?") : std::to_string(lane.context));
  const std::string_view own = timeline_.strings[lane.name];
  if (!own.empty() && !own.starts_with(track.name)) track.name += ": " + clean(own);
  track.track = add(group, track.name);
}

uint64_t PerfettoTracks::overlap_of_lane(int32_t lane) {
  // Tracks of one name beside each other are drawn as one; a thread's own is never one of them.
  const LaneTrack& of = lanes_[static_cast<size_t>(lane)];
  const bool is_thread = timeline_.lanes[static_cast<size_t>(lane)].kind == Lane::Kind::kThread;
  return is_thread ? add(of.track, of.name + " (overlapping)") : add(of.parent, of.name);
}

uint64_t PerfettoTracks::async_of_lane(int32_t lane, StringId name) {
  return add(process(timeline_.lanes[static_cast<size_t>(lane)].pid), clean(timeline_.strings[name]));
}

uint64_t PerfettoTracks::counter(int32_t pid, int32_t lane, StringId name) {
  uint64_t& track = counters_[{pid, lane, name}];
  if (track != 0) return track;
  const uint64_t parent = lane == trace::kNone ? process(pid) : of_lane(lane);
  ProtoMessage described;
  described.integer(descriptor::kUuid, ++last_);
  if (parent != 0) described.integer(descriptor::kParent, parent);
  described.text(descriptor::kName, clean(timeline_.strings[name]));
  described.message(descriptor::kCounter, ProtoMessage());
  packets_.track(described);
  return track = last_;
}

uint64_t PerfettoTracks::outside() {
  if (outside_ == 0) outside_ = add(0, "Strobe");
  return outside_;
}

}  // namespace strobe::exporters
