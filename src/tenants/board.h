// Board: what the tenants of a cell and their supervisor tell each other, in memory that forked processes share.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "strobe/base/result.h"
#include "tenants/device_arbiter.h"
#include "tenants/shared_memory.h"

namespace strobe::tenants {

enum class Phase : uint8_t {
  kLoading,
  kReady,  // waits for the start
  kRunning,
  kDone,    // its stream is over and its queue is empty
  kFailed,  // the message says why
};

// One tenant's place. Written by the tenant, and by the supervisor once the tenant is gone.
struct TenantStatus {
  std::atomic<Phase> phase{Phase::kLoading};
  std::atomic<int32_t> pid{0};
  std::atomic<int64_t> alive_ns{0};  // when it last finished a step, or began to wait for a frame; monotonic clock
  std::atomic<bool> waiting{true};   // for a frame or the start: nothing is expected of it
  std::atomic<int64_t> sent{0}, finished{0}, dropped{0}, failed{0};  // frames
  std::array<char, 512> message{};
  std::array<char, 2048> notes{};  // one a line
};

class Board {
 public:
  // Errors: kIo.
  static Result<Board> create();
  struct Content {
    std::atomic<bool> recording{false};  // the supervisor records: tenants may start to
    std::atomic<int64_t> begin_ns{0};    // monotonic; 0: not yet
    std::atomic<bool> stop{false};       // no more frames
    std::array<TenantStatus, DeviceArbiter::kMostTenants> tenants;
  };
  Content& operator*() const { return *static_cast<Content*>(pages_.data()); }
  Content* operator->() const { return static_cast<Content*>(pages_.data()); }

 private:
  explicit Board(SharedPages pages) : pages_(std::move(pages)) {}
  SharedPages pages_;
};

// Cut to what fits.
template <size_t Size>
void write_text(std::array<char, Size>& place, std::string_view text) {
  const size_t length = std::min(text.size(), Size - 1);
  std::copy_n(text.data(), length, place.data());
  place[length] = 0;
}

int64_t monotonic_ns();
// Sleeps until then or `stop`, at which it looks every few milliseconds. Whether the time was reached: what is late is
// still done.
bool sleep_until(int64_t time_ns, const std::atomic<bool>& stop);

}  // namespace strobe::tenants
