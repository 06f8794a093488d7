// Memory for CUPTI's activity buffers: a bounded number of them, made ready beforehand, since they are asked for in the
// middle of a launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace strobe::gpu {

class BufferPool {
 public:
  struct Limits {
    size_t buffer_bytes = 2 << 20;
    size_t ready = 8;  // kept ready where the bound allows it
    size_t most = 96;  // in all; CUPTI holds one for every thread that calls CUDA
  };
  // Buffers come from mmap: zeroed, and touched, so that the launching thread takes no page faults.
  explicit BufferPool(Limits limits);
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  // A zeroed buffer that is ready; null: none is left (counted). Allocates nothing. From any thread.
  uint8_t* take(int64_t now_ns);
  // Beyond the bound, for a library that cannot stand a refusal: its records are to be thrown away. Null: no memory.
  uint8_t* take_scrap();
  // It was returned with so many bytes in it, and its content is done with: it is zeroed and ready again. From the
  // decoding thread. False: of no buffer of ours.
  bool give_back(uint8_t* buffer, size_t used_bytes);
  // Makes more where few are ready. From the decoding thread.
  void refill();
  bool is_scrap(const uint8_t* buffer) const;
  bool is_taken(const uint8_t* buffer) const;

  size_t buffer_bytes() const { return limits_.buffer_bytes; }
  size_t allocated() const;
  // With the library now, and the earliest time at which one of them was taken (INT64_MAX: none is).
  struct Outside {
    size_t count = 0;
    int64_t oldest_ns = INT64_MAX;
  };
  Outside outside() const;
  uint64_t refused() const;

 private:
  uint8_t* allocate() const;
  Limits limits_;
  mutable std::mutex mutex_;
  std::vector<uint8_t*> free_;
  std::vector<std::pair<uint8_t*, int64_t>> taken_;  // with when; never grows beyond what was reserved
  std::vector<const uint8_t*> scrap_;
  size_t allocated_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace strobe::gpu
