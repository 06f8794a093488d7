#include "models/monocular3d.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/centre_peaks.h"
#include "models/lidar_detector.h"
#include "models/lidar_networks.h"
#include "models/nms3d.h"
#include "models/resnet.h"

namespace strobe::models {
namespace {

constexpr const char* kName = "monocular3d-resnet18";
constexpr size_t kMost = 100;
constexpr float kNmsIou = 0.3F;

Result<Graph> make_network(int64_t width, int64_t height, const std::vector<std::string>& labels) {
  ModuleBuilder build(kName);
  LayerId x = build.picture({}, width, height);
  x = add_resnet18_trunk(build, x, 4);
  constexpr int64_t kUp[] = {128, 64, 64};  // channels at strides 16, 8, 4
  for (size_t i = 0; i < std::size(kUp); ++i) {
    TransposedConvolution up;
    up.out_channels = kUp[i];
    up.kernel_h = up.kernel_w = 4;
    up.stride_h = up.stride_w = 2;
    up.pad_h = up.pad_w = 1;
    const std::string name = fmt::format("neck.up{}", i + 1);
    x = build.append(name, up, {x});
    x = build.batch_norm(name + ".bn", x);
    x = build.relu(name + ".relu", x);
  }
  x = build.convolution("head.hidden", x, {.channels = 64, .kernel = 3, .pad = 1});
  x = build.batch_norm("head.hidden.bn", x);
  x = build.relu("head.hidden.relu", x);
  const int64_t maps = kMonocularRegression + static_cast<int64_t>(labels.size());
  build.convolution("head.monocular", x, {.channels = maps, .bias = true});
  STROBE_ASSIGN(Graph graph, std::move(build).finish());
  graph.labels = labels;
  return graph;
}

}  // namespace

Result<std::unique_ptr<Monocular3d>> Monocular3d::open(const std::string& name, const MonocularOptions& options) {
  if (name != kName) return not_found(fmt::format("no monocular detector '{}'; there is {}", name, kName));
  const int64_t width = options.width ? options.width : 704, height = options.height ? options.height : 256;
  for (const int64_t side : {width, height})
    if (side < 32 || side > 4096 || side % 32 != 0)
      return usage_error(
          fmt::format("{}: an input of {}x{}: expected multiples of 32 up to 4096", name, width, height));
  if (!(options.score_threshold > 0 && options.score_threshold < 1))
    return usage_error(fmt::format("a score threshold of {}: expected 0 to 1", options.score_threshold));
  std::vector<Graph> parts;
  STROBE_ASSIGN(Graph graph, make_network(width, height, nuscenes_labels()));
  parts.push_back(std::move(graph));
  STROBE_TRY(fill_parts(parts, options.weights, options.seed));
  std::unique_ptr<Monocular3d> detector(new Monocular3d());
  detector->part_ = std::make_shared<const Graph>(std::move(parts.front()));
  detector->score_threshold_ = options.score_threshold;
  return detector;
}

Monocular3d::Work Monocular3d::make_work() const {
  const Layer& output = part_->layer(part_->outputs.front());
  return {std::vector<float>(static_cast<size_t>(part_->input_shape().elements())),
          std::vector<float>(static_cast<size_t>(output.output.elements()))};
}

std::vector<Box3d> Monocular3d::decode(const Work& work, const Camera& camera) const {
  const Shape map = part_->layer(part_->outputs.front()).output;
  const Shape& input = part_->input_shape();
  const Camera seen = stretched(camera, static_cast<int>(input.width), static_cast<int>(input.height));
  const int64_t cells = map.height * map.width;
  const auto stride_x = static_cast<float>(input.width) / static_cast<float>(map.width);
  const auto stride_y = static_cast<float>(input.height) / static_cast<float>(map.height);
  constexpr float kLargestExponent = 5, kLeastDepth = 0.1F;
  std::vector<Box3d> found;
  for (const Peak& peak :
       find_peaks(work.output.data() + kMonocularRegression * cells, map.channels - kMonocularRegression, map.height,
                  map.width, logit_of(score_threshold_), kMost)) {
    const float* at = work.output.data() + peak.row * map.width + peak.column;
    const auto value = [&](int64_t channel) { return at[channel * cells]; };
    const Pixel pixel{(static_cast<float>(peak.column) + value(0)) * stride_x,
                      (static_cast<float>(peak.row) + value(1)) * stride_y,
                      std::max(kLeastDepth, kMeanDepth + kDepthDeviation * value(2))};
    const Point3 centre = unproject(seen, pixel);
    Box3d box;
    box.x = centre.x;
    box.y = centre.y;
    box.z = centre.z;
    box.length = std::exp(std::min(value(3), kLargestExponent));
    box.width = std::exp(std::min(value(4), kLargestExponent));
    box.height = std::exp(std::min(value(5), kLargestExponent));
    // As the camera sees it, the heading turns with the ray; then about the camera's y, which points down.
    const float ray = std::atan2((pixel.u - seen.intrinsic[2]) / seen.intrinsic[0], 1.0F);
    const float turned = std::atan2(value(6), value(7)) + ray;
    const float ahead_x = std::cos(turned), ahead_z = -std::sin(turned);
    const auto& m = seen.to_vehicle;
    box.yaw = std::atan2(m[4] * ahead_x + m[6] * ahead_z, m[0] * ahead_x + m[2] * ahead_z);
    box.class_id = peak.channel;
    box.score = logistic(peak.value);
    if (std::isfinite(box.x + box.y + box.z + box.yaw)) found.push_back(box);
  }
  std::vector<Box3d> boxes;
  for (const int32_t kept : rotated_nms(found, kNmsIou)) boxes.push_back(found[static_cast<size_t>(kept)]);
  return boxes;
}

}  // namespace strobe::models
