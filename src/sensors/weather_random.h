// Random numbers for weather: Philox4x32-10, a counter-based generator (Salmon, Moraes, Dror & Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). A number is a function of (seed, frame, point, index), so that a result does
// not depend on how points are spread over threads.
#pragma once

#include <array>
#include <cstdint>

namespace strobe::sensors {

using PhiloxBlock = std::array<uint32_t, 4>;

inline PhiloxBlock philox(PhiloxBlock counter, uint64_t key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  auto key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0], product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

// Uniform numbers in (0, 1) of one point of one frame, one after the other.
class DropRandom {
 public:
  DropRandom(uint64_t seed, uint64_t frame, uint32_t point)
      : seed_(seed), counter_{0, point, static_cast<uint32_t>(frame), static_cast<uint32_t>(frame >> 32)} {}

  double next() {
    if (half_ == 0) {
      block_ = philox(counter_, seed_);
      ++counter_[0];
    }
    const uint64_t bits = uint64_t{block_[half_]} << 32 | block_[half_ + 1];
    half_ ^= 2;
    return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
  }

 private:
  uint64_t seed_;
  PhiloxBlock counter_, block_{};
  unsigned half_ = 0;
};

// The four words whose Box-Muller pairs are the range noise of points 4 * group .. 4 * group + 3. The first counter
// word is one that DropRandom does not reach.
inline PhiloxBlock noise_words(uint64_t seed, uint64_t frame, uint32_t group) {
  return philox({0xFFFFFFFFu, group, static_cast<uint32_t>(frame), static_cast<uint32_t>(frame >> 32)}, seed);
}

}  // namespace strobe::sensors
