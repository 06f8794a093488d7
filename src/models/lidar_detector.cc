#include "models/lidar_detector.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "models/lidar_networks.h"
#include "models/pillar_scatter.h"

namespace strobe::models {
namespace {

// A detector as its paper or configuration describes it.
struct Variant {
  std::string name;
  PillarRule pillars;
  int64_t channels;  // of a pillar
  std::vector<BevBlock> blocks;
  std::vector<std::string> labels;
  std::vector<AnchorSize> anchors = {};  // empty: a centre head
  int64_t code = 7;
  std::vector<CentreTask> tasks = {};
  int64_t head_channels = 64;
  AnchorDecoding anchor_decoding = {};
  CentreDecoding centre_decoding = {};
};

PillarRule rule(std::array<float, 3> low, std::array<float, 3> high, float side, int64_t points, int64_t pillars,
                float intensity_scale) {
  PillarRule r;
  std::copy(low.begin(), low.end(), r.low);
  std::copy(high.begin(), high.end(), r.high);
  r.side_x = r.side_y = side;
  r.max_points = points;
  r.max_pillars = pillars;
  r.intensity_scale = intensity_scale;
  return r;
}

// Lang et al. 2019, section 3.2.
std::vector<AnchorSize> kitti_anchors() {
  return {{0.8F, 0.6F, 1.73F, -0.6F, 0, 0.5F, 0.35F},
          {1.76F, 0.6F, 1.73F, -0.6F, 1, 0.5F, 0.35F},
          {3.9F, 1.6F, 1.56F, -1.0F, 2, 0.6F, 0.45F}};
}
std::vector<std::string> kitti_labels() {
  return {"Pedestrian", "Cyclist", "Car"};
}

// Mean sizes of nuScenes's boxes; z of their centres in the frame of its LiDAR, 1.8 m above the ground.
std::vector<AnchorSize> nuscenes_anchors() {
  return {{4.61F, 1.95F, 1.72F, -0.94F, 0, 0.6F, 0.45F}, {6.74F, 2.46F, 2.73F, -0.38F, 1, 0.55F, 0.4F},
          {12.01F, 2.87F, 3.82F, 0.22F, 4, 0.5F, 0.35F}, {1.68F, 0.60F, 1.27F, -1.04F, 7, 0.5F, 0.35F},
          {0.73F, 0.66F, 1.76F, -0.74F, 8, 0.5F, 0.35F}, {0.40F, 0.40F, 1.06F, -1.28F, 9, 0.5F, 0.35F},
          {0.49F, 2.49F, 0.98F, -1.27F, 5, 0.5F, 0.35F}};
}

std::vector<Variant> variants() {
  const AnchorDecoding nuscenes_boxes{.score_threshold = 0.05F, .nms_iou = 0.2F, .most_before_nms = 1000, .most = 500};
  std::vector<Variant> all;
  all.push_back({.name = "pointpillars",
                 .pillars = rule({0, -39.68F, -3}, {69.12F, 39.68F, 1}, 0.16F, 32, 12'000, 1),
                 .channels = 64,
                 .blocks = {{3, 64, 2, 1, 128}, {5, 128, 2, 2, 128}, {5, 256, 2, 4, 128}},
                 .labels = kitti_labels(),
                 .anchors = kitti_anchors()});
  // A tenth of the cells and a ninetieth of the operations: for cores without an accelerator.
  all.push_back({.name = "pointpillars-small",
                 .pillars = rule({0, -25.6F, -3}, {40.96F, 25.6F, 1}, 0.32F, 16, 4096, 1),
                 .channels = 32,
                 .blocks = {{1, 32, 2, 1, 32}, {2, 64, 2, 2, 32}, {2, 96, 2, 4, 32}},
                 .labels = kitti_labels(),
                 .anchors = kitti_anchors()});
  all.push_back({.name = "pointpillars-nuscenes",
                 .pillars = rule({-50, -50, -5}, {50, 50, 3}, 0.25F, 20, 30'000, 1.0F / 255),
                 .channels = 64,
                 .blocks = {{3, 64, 2, 1, 128}, {5, 128, 2, 2, 128}, {5, 256, 2, 4, 128}},
                 .labels = nuscenes_labels(),
                 .anchors = nuscenes_anchors(),
                 .code = 9,
                 .anchor_decoding = nuscenes_boxes});
  all.push_back({.name = "centerpoint-pillar",
                 .pillars = rule({-51.2F, -51.2F, -5}, {51.2F, 51.2F, 3}, 0.2F, 20, 30'000, 1.0F / 255),
                 .channels = 64,
                 .blocks = {{3, 64, 2, 0, 128}, {5, 128, 2, 1, 128}, {5, 256, 2, 2, 128}},
                 .labels = nuscenes_labels(),
                 .tasks = nuscenes_tasks()});
  all.push_back({.name = "centerpoint-small",
                 .pillars = rule({-51.2F, -51.2F, -5}, {51.2F, 51.2F, 3}, 0.4F, 10, 8192, 1.0F / 255),
                 .channels = 32,
                 .blocks = {{1, 32, 2, 0, 32}, {2, 64, 2, 1, 32}, {2, 96, 2, 2, 32}},
                 .labels = nuscenes_labels(),
                 .tasks = nuscenes_tasks(),
                 .head_channels = 32});
  return all;
}

Result<Variant> find(const std::string& name) {
  for (Variant& variant : variants())
    if (variant.name == name) return std::move(variant);
  return not_found(fmt::format("no LiDAR detector '{}'; there are {}", name, fmt::join(lidar_detector_names(), ", ")));
}

Result<void> check(const LidarOptions& options) {
  if (options.max_pillars < 0 || options.max_pillars > 65'536)
    return usage_error(fmt::format("{} pillars: expected 1 to 65536, or 0 for the network's own", options.max_pillars));
  if (!(options.score_threshold >= 0 && options.score_threshold < 1))
    return usage_error(fmt::format("a score threshold of {}: expected 0 to 1", options.score_threshold));
  if (!(options.nms_iou >= 0 && options.nms_iou <= 1))
    return usage_error(fmt::format("an overlap of {}: expected 0 to 1", options.nms_iou));
  return {};
}

}  // namespace

Result<std::unique_ptr<LidarDetector>> LidarDetector::open(const std::string& name, const LidarOptions& options) {
  STROBE_TRY(check(options));
  STROBE_ASSIGN(Variant variant, find(name));
  std::unique_ptr<LidarDetector> detector(new LidarDetector());
  detector->name_ = name;
  detector->labels_ = variant.labels;
  detector->threads_ = options.threads;
  if (options.max_pillars > 0) variant.pillars.max_pillars = options.max_pillars;
  const PillarRule& pillars = detector->rule_ = variant.pillars;

  std::vector<Graph> parts;
  STROBE_ASSIGN(Graph pillar_net, make_pillar_net(name, pillars, variant.channels));
  parts.push_back(std::move(pillar_net));
  ModuleBuilder build(name + ".bev");
  const LayerId canvas = build.input({variant.channels, pillars.rows(), pillars.columns()});
  const LayerId x = add_bev_network(build, canvas, variant.blocks);
  const auto classes = static_cast<int64_t>(variant.labels.size());
  const bool by_anchors = !variant.anchors.empty();
  if (by_anchors) {
    add_anchor_head(build, x, 2 * static_cast<int64_t>(variant.anchors.size()), classes, variant.code);
  } else {
    add_centre_head(build, x, variant.head_channels, variant.tasks);
  }
  STROBE_ASSIGN(Graph bev, std::move(build).finish());
  bev.labels = variant.labels;
  parts.push_back(std::move(bev));
  STROBE_TRY(fill_parts(parts, options.weights, options.seed));

  const Shape map = parts[1].layer(parts[1].outputs.front()).output;
  const float cell_x = (pillars.high[0] - pillars.low[0]) / static_cast<float>(map.width);
  const float cell_y = (pillars.high[1] - pillars.low[1]) / static_cast<float>(map.height);
  if (by_anchors) {
    detector->anchors_ = AnchorRule{pillars.low[0], pillars.low[1],  cell_x,  cell_y,      map.width,
                                    map.height,     variant.anchors, classes, variant.code};
    detector->anchor_decoding_ = variant.anchor_decoding;
    if (options.score_threshold > 0) detector->anchor_decoding_.score_threshold = options.score_threshold;
    if (options.nms_iou > 0) detector->anchor_decoding_.nms_iou = options.nms_iou;
  } else {
    detector->centres_ = CentreRule{pillars.low[0], pillars.low[1], cell_x,        cell_y,
                                    map.width,      map.height,     variant.tasks, nuscenes_radius()};
    detector->centre_decoding_ = variant.centre_decoding;
    if (options.score_threshold > 0) detector->centre_decoding_.score_threshold = options.score_threshold;
  }
  for (Graph& part : parts) detector->parts_.push_back(std::make_shared<const Graph>(std::move(part)));
  return detector;
}

LidarDetector::Work LidarDetector::make_work() const {
  Work work{Pillars(rule_), {}, {}, {}, {}, {}};
  const Graph &pillar_net = *parts_[0], &bev = *parts_[1];
  work.pillar_features.resize(static_cast<size_t>(pillar_net.layer(pillar_net.outputs.front()).output.elements()));
  work.canvas.resize(static_cast<size_t>(bev.input_shape().elements()));
  for (const LayerId id : bev.outputs) work.outputs.emplace_back(static_cast<size_t>(bev.layer(id).output.elements()));
  return work;
}

void LidarDetector::voxelize(std::span<const float> points, int columns, Work& work) const {
  work.pillars.fill(points, columns, threads_);
}

void LidarDetector::scatter(Work& work) const {
  scatter_pillars(work.pillar_features, rule_.max_pillars, work.pillars.cells(), parts_[1]->input_shape().channels,
                  work.canvas, work.drawn, threads_);
}

std::vector<Box3d> LidarDetector::decode(Work& work) const {
  if (anchors_) {
    const AnchorMaps maps{work.outputs[0].data(), work.outputs[1].data(), work.outputs[2].data()};
    return decode_anchors(*anchors_, maps, anchor_decoding_, work.candidates);
  }
  std::vector<const float*> heads;
  for (const auto& output : work.outputs) heads.push_back(output.data());
  return decode_centres(*centres_, heads, centre_decoding_);
}

std::vector<std::string> lidar_detector_names() {
  std::vector<std::string> names;
  for (const Variant& variant : variants()) names.push_back(variant.name);
  return names;
}

std::vector<std::string> nuscenes_labels() {
  return {"car",        "truck",   "construction_vehicle", "bus",         "trailer", "barrier",
          "motorcycle", "bicycle", "pedestrian",           "traffic_cone"};
}
std::vector<CentreTask> nuscenes_tasks() {
  return {{{0}}, {{1, 2}}, {{3, 4}}, {{5}}, {{6, 7}}, {{8, 9}}};
}
std::vector<float> nuscenes_radius() {
  // Square roots: CenterPoint compares squares of distances with 4, 12, 10, 1, 0.85 and 0.175.
  const float squares[] = {4, 12, 12, 10, 10, 1, 0.85F, 0.85F, 0.175F, 0.175F};
  std::vector<float> radius;
  for (const float square : squares) radius.push_back(std::sqrt(square));
  return radius;
}

}  // namespace strobe::models
