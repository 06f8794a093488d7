// How the pixels of a picture become the input of a network, as numbers: what somebody who samples it elsewhere than on
// the CPU needs to know (an engine, on its device).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace strobe {

// Where each network row (or column) takes its two samples: (1 - weight) * [first] + weight * [second].
struct SampleTaps {
  std::vector<int64_t> first, second;
  std::vector<float> weight;
  bool operator==(const SampleTaps&) const = default;
};

struct PictureSampling {
  static constexpr size_t kChannels = 3;
  struct Plane {
    int64_t rows = 0, bytes = 0;  // bytes: of a row
    bool operator==(const Plane&) const = default;
  };
  // One colour component: its samples are the bytes offset, offset + step, ... of each row of a plane.
  struct Component {
    int plane = 0;
    int64_t offset = 0, step = 1;
    int64_t width = 0, height = 0;  // samples
    SampleTaps columns, rows;
    bool operator==(const Component&) const = default;
  };

  int64_t width = 0, height = 0;                                   // of the network's input
  int64_t left = 0, top = 0, placed_width = 0, placed_height = 0;  // of the picture in it
  std::vector<Plane> planes;
  std::array<Component, kChannels> components;
  // Channel c of the input is clamp(sum over k of mix[c][k] * component k + offset[c], 0, 255) * gain[c] + bias[c];
  // beside the picture 127.5 * gain[c] + bias[c].
  std::array<std::array<float, kChannels>, kChannels> mix = {};
  std::array<float, kChannels> offset = {}, gain = {}, bias = {};
  bool operator==(const PictureSampling&) const = default;
};

// A picture's memory, and how it is sampled.
struct PictureBytes {
  struct Plane {
    const uint8_t* data = nullptr;
    ptrdiff_t stride = 0;  // from row to row
  };
  std::shared_ptr<const PictureSampling> sampling;  // pictures alike have the same object
  std::vector<Plane> planes;
  std::shared_ptr<const void> owner;  // keeps the memory
};

}  // namespace strobe
