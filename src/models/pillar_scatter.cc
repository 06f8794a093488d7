#include "models/pillar_scatter.h"

#include "models/bev_parallel.h"

namespace strobe::models {

void scatter_pillars(std::span<const float> features, int64_t max_pillars, std::span<const int32_t> cells,
                     int64_t channels, std::span<float> canvas, std::vector<int32_t>& drawn, int threads) {
  const int64_t plane = static_cast<int64_t>(canvas.size()) / channels;
  constexpr int64_t kLeastChannels = 16;
  // Channel by channel: a plane stays in the cache while its cells are written, and features are read in order.
  in_parallel(threads, channels, kLeastChannels, [&](int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; ++channel) {
      float* __restrict out = canvas.data() + channel * plane;
      const float* __restrict in = features.data() + channel * max_pillars;
      for (const int32_t cell : drawn) out[cell] = 0;
      for (size_t i = 0; i < cells.size(); ++i) out[cells[i]] = in[i];
    }
  });
  drawn.assign(cells.begin(), cells.end());
}

}  // namespace strobe::models
