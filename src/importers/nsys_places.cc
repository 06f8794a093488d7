#include "importers/nsys_places.h"

#include <limits>

namespace strobe::importers {

using trace::Lane;
using trace::StringId;

namespace {

// "cudaMemcpyAsync_v3020" -> "cudaMemcpyAsync"
std::string_view without_version(std::string_view name) {
  const size_t digits = name.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == name.size() || digits < 2) return name;
  return name.substr(digits - 1, 2) == "_v" ? name.substr(0, digits - 1) : name;
}

// Where a program lies is the business of its machine.
std::string_view without_folder(std::string_view path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

void NsysPlaces::read(NsysFile& file) {
  file.each("StringIds", {"id", "value"},
            [this](const NsysRow& row) { texts_.emplace(row.integer(0), timeline_.strings.intern(row.text(1))); });
  file.each("PROCESSES", {"globalPid", "name"}, [this](const NsysRow& row) {
    process_names_[static_cast<uint64_t>(row.integer(0)) >> 24] = without_folder(row.text(1));
  });
  if (process_names_.size() == 1) only_process_ = process(static_cast<int64_t>(process_names_.begin()->first << 24));
}

StringId NsysPlaces::text(int64_t id) {
  const auto [found, is_new] = texts_.try_emplace(id, 0);
  if (is_new) {
    found->second = timeline_.strings.intern("(text " + std::to_string(id) + ")");
    ++timeline_.losses.faults["text that the file does not have"];
  }
  return found->second;
}

StringId NsysPlaces::function(int64_t id) {
  const auto [found, is_new] = functions_.try_emplace(id, 0);
  if (is_new) found->second = timeline_.strings.intern(std::string(without_version(timeline_.strings[text(id)])));
  return found->second;
}

int32_t NsysPlaces::process(int64_t global) {
  const uint64_t key = static_cast<uint64_t>(global) >> 24;
  const auto [found, is_new] = pids_.try_emplace(key, 0);
  if (is_new) {
    auto pid = static_cast<int32_t>(key & 0xffffff);
    // Process ids of exports have 24 bits; a namesake on another machine gets one that no process has.
    for (int32_t other = std::numeric_limits<int32_t>::max(); used_pids_.count(pid) != 0; --other) pid = other;
    used_pids_.insert(pid);
    found->second = pid;
  }
  return found->second;
}

int32_t NsysPlaces::thread(int64_t global_tid) {
  const auto [found, is_new] = threads_.try_emplace(global_tid, static_cast<int32_t>(timeline_.lanes.size()));
  if (is_new)
    timeline_.lanes.push_back(
        {.kind = Lane::Kind::kThread, .pid = process(global_tid), .tid = static_cast<int32_t>(global_tid & 0xffffff)});
  return found->second;
}

int32_t NsysPlaces::stream(int32_t pid, int32_t device, int32_t context, int32_t stream) {
  const auto [found, is_new] =
      streams_.try_emplace({pid, device, context, stream}, static_cast<int32_t>(timeline_.lanes.size()));
  if (is_new) {
    // What concerns a whole context has no stream.
    const std::string name = stream < 0 ? "context " + std::to_string(context) : "stream " + std::to_string(stream);
    timeline_.lanes.push_back({Lane::Kind::kStream, pid, stream, timeline_.strings.intern(name), device, context});
  }
  return found->second;
}

void NsysPlaces::name_all(NsysFile& file) {
  const auto name = [this](int64_t global_tid, StringId text) {
    const auto found = threads_.find(global_tid);
    if (found != threads_.end()) timeline_.lanes[static_cast<size_t>(found->second)].name = text;
  };
  file.each("ThreadNames", {"nameId", "globalTid"}, [&](const NsysRow& row) {
    if (threads_.count(row.integer(1)) != 0) name(row.integer(1), text(row.integer(0)));
  });
  for (const auto& [global_tid, own] : own_names_) name(global_tid, timeline_.strings.intern(own));
  std::map<int32_t, StringId> processes;
  for (const Lane& lane : timeline_.lanes) processes.emplace(lane.pid, 0);
  for (const auto& [key, pid] : pids_) {
    const auto found = process_names_.find(key);
    if (processes.count(pid) != 0 && found != process_names_.end())
      processes[pid] = timeline_.strings.intern(found->second);
  }
  for (const auto& [pid, text] : processes) timeline_.processes.push_back({pid, text});
}

}  // namespace strobe::importers
