#include "gpu/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace strobe::gpu {

BufferPool::BufferPool(Limits limits) : limits_(limits) {
  free_.reserve(limits_.most);
  taken_.reserve(limits_.most);
  refill();
}

BufferPool::~BufferPool() {
  for (uint8_t* buffer : free_) ::munmap(buffer, limits_.buffer_bytes);
  // Those that the library still has stay: it may write into them.
}

uint8_t* BufferPool::allocate() const {
  void* memory =
      ::mmap(nullptr, limits_.buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<uint8_t*>(memory);
}

uint8_t* BufferPool::take(int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    ++refused_;
    return nullptr;
  }
  uint8_t* buffer = free_.back();
  free_.pop_back();
  taken_.emplace_back(buffer, now_ns);
  return buffer;
}

uint8_t* BufferPool::take_scrap() {
  uint8_t* buffer = allocate();
  if (buffer == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  scrap_.push_back(buffer);
  return buffer;
}

bool BufferPool::is_scrap(const uint8_t* buffer) const {
  const std::lock_guard lock(mutex_);
  return std::find(scrap_.begin(), scrap_.end(), buffer) != scrap_.end();
}

bool BufferPool::give_back(uint8_t* buffer, size_t used_bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (std::erase(scrap_, buffer) != 0) {
      ::munmap(buffer, limits_.buffer_bytes);
      return true;
    }
  }
  if (!is_taken(buffer)) return false;
  // The library writes from the begin; some room behind the valid part may hold a record that was begun.
  constexpr size_t kBeyond = 4096;
  std::memset(buffer, 0, std::min(limits_.buffer_bytes, used_bytes + kBeyond));
  const std::lock_guard lock(mutex_);
  std::erase_if(taken_, [buffer](const auto& one) { return one.first == buffer; });
  free_.push_back(buffer);
  return true;
}

bool BufferPool::is_taken(const uint8_t* buffer) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(taken_.begin(), taken_.end(), [buffer](const auto& one) { return one.first == buffer; });
}

void BufferPool::refill() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (free_.size() >= limits_.ready || allocated_ >= limits_.most) return;
      ++allocated_;
    }
    uint8_t* buffer = allocate();
    const std::lock_guard lock(mutex_);
    if (buffer == nullptr) {
      --allocated_;
      return;
    }
    free_.push_back(buffer);
  }
}

size_t BufferPool::allocated() const {
  const std::lock_guard lock(mutex_);
  return allocated_;
}

BufferPool::Outside BufferPool::outside() const {
  const std::lock_guard lock(mutex_);
  Outside outside{taken_.size(), INT64_MAX};
  for (const auto& [buffer, taken_ns] : taken_) outside.oldest_ns = std::min(outside.oldest_ns, taken_ns);
  return outside;
}

uint64_t BufferPool::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

}  // namespace strobe::gpu
