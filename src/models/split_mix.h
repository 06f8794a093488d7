// SplitMix64 (Steele, Lea and Flood 2014): tiny, and unlike the distributions of <random> the same in every library.
#pragma once

#include <cstdint>

namespace strobe::models {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

}  // namespace strobe::models
