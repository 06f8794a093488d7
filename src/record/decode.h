#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/clock.h"
#include "record/spool_reader.h"

namespace strobe::record {

// Turns one thread's encoded records back into events, in order. Keeps what reaches across blocks: the thread's own
// names and how many ranges are open.
class Decoder {
 public:
  using Sink = std::function<void(const SpoolEvent&)>;
  Decoder(const std::vector<std::string>& names, const ClockMap& clock, std::map<std::string, uint64_t>& faults)
      : names_(names), clock_(clock), faults_(faults) {}

  void block(std::span<const uint8_t> bytes, const Sink& sink);
  // Records are missing here: names of the thread's own table may have been among them.
  void gap() {
    dynamic_.clear();
    after_event_ = false;
  }
  uint64_t dropped() const { return dropped_; }
  int64_t last_time_ns() const { return last_time_ns_; }

 private:
  std::string_view name_of(uint64_t id);
  void put_category(uint64_t id, SpoolEvent& event);
  bool count_fault(const char* kind);

  const std::vector<std::string>& names_;
  const ClockMap& clock_;
  std::map<std::string, uint64_t>& faults_;
  std::map<uint64_t, std::string> dynamic_;
  uint64_t open_ = 0;
  bool after_event_ = false;  // a payload of the last event may come
  uint64_t dropped_ = 0;
  int64_t last_time_ns_ = 0;
};

}  // namespace strobe::record
