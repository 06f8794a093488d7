#include "predict/caching_allocator.h"

#include <algorithm>

namespace strobe::predict {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kRounding = 512;
constexpr int64_t kLargestSmall = kMiB;
constexpr int64_t kSmallSegment = 2 * kMiB, kLargeSegment = 20 * kMiB, kOwnSegment = 10 * kMiB;

int64_t round_up(int64_t bytes, int64_t step) {
  return (bytes + step - 1) / step * step;
}

}  // namespace

CachingAllocator::Handle CachingAllocator::new_segment(int64_t bytes, bool large) {
  const int64_t segment = !large ? kSmallSegment : bytes < kOwnSegment ? kLargeSegment : round_up(bytes, 2 * kMiB);
  reserved_ += segment;
  blocks_.push_back({.bytes = segment, .large = large});
  return static_cast<Handle>(blocks_.size() - 1);
}

CachingAllocator::Handle CachingAllocator::allocate(int64_t bytes) {
  if (bytes <= 0) return kNone;
  bytes = round_up(bytes, kRounding);
  const bool large = bytes > kLargestSmall;
  FreeBlocks& free = free_[large ? 1 : 0];
  Handle handle = kNone;
  if (const auto fit = free.lower_bound({bytes, 0}); fit != free.end()) {
    handle = fit->second;
    free.erase(fit);
  } else {
    handle = new_segment(bytes, large);
  }
  const int64_t rest = blocks_[handle].bytes - bytes;
  if (large ? rest > kLargestSmall : rest >= kRounding) {
    const auto remainder = static_cast<Handle>(blocks_.size());
    const Handle next = blocks_[handle].next;
    blocks_.push_back({.bytes = rest, .previous = handle, .next = next, .large = large});
    if (next != kNone) blocks_[next].previous = remainder;
    blocks_[handle].next = remainder;
    blocks_[handle].bytes = bytes;
    free.emplace(rest, remainder);
  }
  blocks_[handle].free = false;
  live_ += blocks_[handle].bytes;
  peak_live_ = std::max(peak_live_, live_);
  return handle;
}

void CachingAllocator::absorb_next(Handle handle) {
  Block& block = blocks_[handle];
  const Block& gone = blocks_[block.next];
  block.bytes += gone.bytes;
  block.next = gone.next;
  if (block.next != kNone) blocks_[block.next].previous = handle;
}

void CachingAllocator::release(Handle handle) {
  if (handle == kNone) return;
  live_ -= blocks_[handle].bytes;
  blocks_[handle].free = true;
  FreeBlocks& free = pool(blocks_[handle]);
  if (const Handle next = blocks_[handle].next; next != kNone && blocks_[next].free) {
    free.erase({blocks_[next].bytes, next});
    absorb_next(handle);
  }
  if (const Handle previous = blocks_[handle].previous; previous != kNone && blocks_[previous].free) {
    free.erase({blocks_[previous].bytes, previous});
    absorb_next(previous);
    handle = previous;
  }
  free.emplace(blocks_[handle].bytes, handle);
}

}  // namespace strobe::predict
