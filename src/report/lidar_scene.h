// Sweeps of a LiDAR with the boxes on them, as the page shows them in space.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace strobe::report {

// In the sensor's frame, turned so that x points forward, y left, z up; metres, radians about z.
struct SceneBox {
  float x = 0, y = 0, z = 0;  // its centre
  float length = 0, width = 0, height = 0, yaw = 0;
  std::string label;
  float score = 1;
};

struct PointFrame {
  std::string token;
  std::vector<float> points;  // rows of x, y, z, intensity (0 to 1)
  size_t points_before = 0;   // of the sweep; more than there are here where it was thinned
  std::vector<SceneBox> truth;
};

// What one or several tenants were fed with. Frames in the order of time.
struct PointStream {
  std::string name;
  std::vector<PointFrame> frames;
  std::vector<std::string> notes;  // "one real frame, given again and again: a synthetic stream"
  bool has_truth = false;
};

// What one tenant of a run found in a stream: by frame of the stream.
struct LidarScene {
  std::string run, tenant, model;
  size_t stream = 0;  // into TenantsPage::streams
  std::vector<std::vector<SceneBox>> predicted;
};

// At most `most` of the rows of `columns` numbers, each as likely as any other (Knuth 3.4.2, algorithm S); the same
// rows for the same input, in their order. Of sweeps in scan order every k-th point would often be of one ring.
std::vector<float> sampled_rows(std::span<const float> values, size_t columns, size_t most, uint64_t seed);

// [{"name", "notes", "has_truth", "frames": [{"token", "n", "before", "places": base64 of int16 x, y, z in centimetres,
// clamped, "intensity": base64 of uint8, "truth": [[x, y, z, length, width, height, yaw, label, score]]}]}]
nlohmann::ordered_json streams_json(std::span<const PointStream> streams);
// [{"run", "tenant", "model", "stream", "predicted": [[box, ...], ...]}]
nlohmann::ordered_json scenes_json(std::span<const LidarScene> scenes);

}  // namespace strobe::report
