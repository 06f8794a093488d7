// DeviceArbiter: gives the device to one tenant after another, as a policy says. It works between threads and between
// processes alike: its state lies in memory that forked processes share, and a tenant that dies, even in the middle of
// a call, blocks nobody (Linux' robust mutex; each waiter sleeps on a word of its own).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "strobe/base/result.h"
#include "tenants/policy.h"
#include "tenants/shared_memory.h"

namespace strobe::tenants {

// What decides who is next.
struct Claim {
  int64_t priority = 0;     // greater goes first
  int64_t deadline_ns = 0;  // absolute, of the frame
};

class DeviceArbiter {
 public:
  static constexpr size_t kMostTenants = 64;

  // To be made before the tenants' processes are forked. servers: how many tenants may have the device at once.
  // Errors: kUsage (more tenants than kMostTenants), kIo.
  static Result<DeviceArbiter> create(Policy policy, size_t tenants, size_t servers = 1);
  DeviceArbiter(DeviceArbiter&&) = default;
  ~DeviceArbiter() = default;

  Policy policy() const;
  bool takes_turns() const { return policy() != Policy::kConcurrent; }

  // Returns when the tenant has the device. A tenant asks from one thread at a time.
  void acquire(size_t tenant, const Claim& claim);
  void release(size_t tenant);
  // Of a holder, at a border between two layers: under kPriorityPreemptive, hands the device to a waiting tenant of
  // greater priority and returns when it is its turn again, in which it stands before others of its priority that came
  // later. Returns whether it gave way. finish: called before, if anybody is to have the device; it returns when the
  // holder's work there is done.
  bool give_way(size_t tenant, const std::function<void()>& finish = {});
  // A tenant that is gone: what it held goes on to the next one.
  void forget(size_t tenant);
  // How many wait now.
  size_t waiting() const;

 private:
  struct State;
  explicit DeviceArbiter(SharedPages pages) : pages_(std::move(pages)) {}
  State& state() const { return *static_cast<State*>(pages_.data()); }
  SharedPages pages_;
};

}  // namespace strobe::tenants
