// A model of PyTorch's caching allocator on CUDA, as its notes describe it: sizes are rounded up to 512 bytes; requests
// of up to 1 MiB come from segments of 2 MiB, those below 10 MiB from segments of 20 MiB, larger ones from segments of
// their own in steps of 2 MiB; a request takes the smallest free block that holds it and gives back what is left of it
// (at all in small segments, above 1 MiB in large ones); neighbours that are free become one block, but only within
// their segment. What it holds of the device is therefore more than what lives, by an amount that depends on the order
// of the requests alone, and so on the network.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace strobe::predict {

class CachingAllocator {
 public:
  using Handle = int32_t;
  static constexpr Handle kNone = -1;

  Handle allocate(int64_t bytes);  // kNone for nothing
  void release(Handle handle);     // of kNone: nothing happens

  int64_t live() const { return live_; }
  int64_t peak_live() const { return peak_live_; }
  int64_t reserved() const { return reserved_; }  // never falls: nothing is given back to the device

 private:
  struct Block {
    int64_t bytes = 0;
    Handle previous = kNone, next = kNone;  // within the segment
    bool free = true;
    bool large = false;
  };
  using FreeBlocks = std::set<std::pair<int64_t, Handle>>;  // by size, then by age

  Handle new_segment(int64_t bytes, bool large);
  FreeBlocks& pool(const Block& block) { return free_[block.large ? 1 : 0]; }
  void absorb_next(Handle handle);

  std::vector<Block> blocks_;
  FreeBlocks free_[2];
  int64_t live_ = 0, peak_live_ = 0, reserved_ = 0;
};

}  // namespace strobe::predict
