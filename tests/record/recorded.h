// What tests of the recorder share: a recording read back into plain values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "record/spool_reader.h"

namespace strobe::record::test {

using Type = SpoolEvent::Type;

struct Event {
  Type type{};
  int64_t time_ns = 0;
  std::string name;
  int64_t frame = -1;
  uint64_t id = 0;
  int64_t integer = 0;
  double number = 0;
  std::string text;
  std::string category, domain;
  bool of_event = false, of_thread = false;
};

struct Recorded {
  SpoolSummary summary;
  struct Thread {
    int32_t pid = 0, tid = 0;
    std::string process_name;
    int64_t utc_minus_monotonic_ns = 0;
    bool ended = false;
    std::vector<Event> events;
    uint64_t count(Type type, const std::string& name = {}) const {
      uint64_t found = 0;
      for (const Event& event : events)
        if (event.type == type && (name.empty() || event.name == name)) ++found;
      return found;
    }
  };
  std::vector<Thread> threads;  // those with events
  uint64_t count(Type type, const std::string& name = {}) const {
    uint64_t found = 0;
    for (const Thread& thread : threads) found += thread.count(type, name);
    return found;
  }
};

inline Result<Recorded> read_all(const std::filesystem::path& folder) {
  Recorded all;
  const SpoolThread* last = nullptr;
  uint64_t last_tid = 0;
  auto read = read_spool(folder, [&](const SpoolThread& who, const SpoolEvent& event) {
    const uint64_t key = static_cast<uint64_t>(who.pid) << 32 | static_cast<uint32_t>(who.tid);
    if (last != &who || key != last_tid || all.threads.empty())
      all.threads.push_back(
          {who.pid, who.tid, std::string(who.process_name), who.utc_minus_monotonic_ns, who.ended, {}});
    last = &who;
    last_tid = key;
    all.threads.back().events.push_back({event.type, event.time_ns, std::string(event.name), event.frame, event.id,
                                         event.integer, event.number, std::string(event.text),
                                         std::string(event.category), std::string(event.domain), event.of_event,
                                         event.of_thread});
  });
  if (!read) return std::move(read).error();
  all.summary = *read;
  return all;
}

}  // namespace strobe::record::test
