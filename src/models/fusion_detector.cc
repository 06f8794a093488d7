#include "models/fusion_detector.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/lidar_detector.h"
#include "models/lidar_networks.h"
#include "models/pillar_scatter.h"
#include "models/resnet.h"

namespace strobe::models {
namespace {

constexpr const char* kName = "bevfusion-small";
constexpr int64_t kWidth = 352, kHeight = 128;             // of a picture
constexpr int64_t kBins = 32, kContext = 32, kLidar = 32;  // channels
constexpr int64_t kCells = 128;
constexpr float kReach = 51.2F, kLow = -5, kHigh = 3;

// A picture's features at stride 16, and with them a distribution over depths: two outputs.
Result<Graph> camera_network() {
  ModuleBuilder build(std::string(kName) + ".camera");
  LayerId x = add_resnet18_trunk(build, build.picture({}, kWidth, kHeight), 3);
  x = build.convolution("lift", x, {.channels = kBins + kContext, .bias = true});
  const LayerId depth = build.append("lift.depth", Slice{0, kBins}, {x});
  build.add_output(build.append("lift.depth.softmax", Softmax{}, {depth}));
  build.add_output(build.append("lift.context", Slice{kBins, kBins + kContext}, {x}));
  return std::move(build).finish();
}

Result<Graph> fuser_network() {
  ModuleBuilder build(std::string(kName) + ".fuser");
  LayerId x = build.input({kContext + kLidar, kCells, kCells});
  x = build.convolution("fuser.convolution", x, {.channels = 64, .kernel = 3, .pad = 1});
  x = build.batch_norm("fuser.bn", x);
  x = build.relu("fuser.relu", x);
  x = add_bev_network(build, x, {{1, 64, 2, 1, 32}, {2, 96, 2, 2, 32}});
  add_centre_head(build, x, 32, nuscenes_tasks());
  STROBE_ASSIGN(Graph graph, std::move(build).finish());
  graph.labels = nuscenes_labels();
  return graph;
}

PillarRule pillar_rule(int64_t max_pillars) {
  PillarRule rule;
  rule.low[0] = rule.low[1] = -kReach;
  rule.high[0] = rule.high[1] = kReach;
  rule.low[2] = kLow;
  rule.high[2] = kHigh;
  rule.side_x = rule.side_y = 2 * kReach / kCells;
  rule.max_points = 16;
  rule.max_pillars = max_pillars > 0 ? max_pillars : 6144;
  rule.intensity_scale = 1.0F / 255;
  return rule;
}

Result<void> check_cameras(std::span<const Camera> cameras) {
  if (cameras.empty() || cameras.size() > 6)
    return usage_error(fmt::format("{} cameras: {} takes 1 to 6", cameras.size(), kName));
  for (size_t i = 0; i < cameras.size(); ++i) {
    const Camera& camera = cameras[i];
    const auto& k = camera.intrinsic;
    if (camera.width <= 0 || camera.height <= 0 || !(k[0] > 0 && k[4] > 0 && std::isfinite(k[0] + k[4])))
      return usage_error(fmt::format("camera {}: a picture of {}x{} with focal lengths {}, {}", i, camera.width,
                                     camera.height, k[0], k[4]));
  }
  return {};
}

Result<void> check(const FusionOptions& options) {
  STROBE_TRY(check_cameras(options.cameras));
  if (options.max_pillars < 0 || options.max_pillars > 65'536)
    return usage_error(fmt::format("{} pillars: expected 1 to 65536, or 0 for the network's own", options.max_pillars));
  if (!(options.score_threshold > 0 && options.score_threshold < 1))
    return usage_error(fmt::format("a score threshold of {}: expected 0 to 1", options.score_threshold));
  return {};
}

int64_t output_size(const Graph& graph, size_t output) {
  return graph.layer(graph.outputs[output]).output.elements();
}

}  // namespace

Result<std::unique_ptr<FusionDetector>> FusionDetector::open(const std::string& name, const FusionOptions& options) {
  if (name != kName) return not_found(fmt::format("no fusion detector '{}'; there is {}", name, kName));
  STROBE_TRY(check(options));
  std::unique_ptr<FusionDetector> detector(new FusionDetector());
  detector->name_ = name;
  detector->cameras_ = static_cast<int64_t>(options.cameras.size());
  detector->camera_channels_ = kContext;
  detector->lidar_channels_ = kLidar;
  detector->threads_ = options.threads;
  detector->rule_ = pillar_rule(options.max_pillars);

  std::vector<Graph> parts;
  STROBE_ASSIGN(Graph camera, camera_network());
  STROBE_ASSIGN(Graph pillar_net, make_pillar_net(name, detector->rule_, kLidar));
  STROBE_ASSIGN(Graph fuser, fuser_network());
  parts.push_back(std::move(camera));
  parts.push_back(std::move(pillar_net));
  parts.push_back(std::move(fuser));
  STROBE_TRY(fill_parts(parts, options.weights, options.seed));
  for (Graph& part : parts) detector->parts_.push_back(std::make_shared<const Graph>(std::move(part)));

  const Graph &lift = *detector->parts_[0], &head = *detector->parts_[2];
  const Shape features = lift.layer(lift.outputs[0]).output, map = head.layer(head.outputs[0]).output;
  const float cell = 2 * kReach / kCells;
  detector->lift_ = {features.height, features.width, kBins, 1, 1.5F};
  detector->grid_ = {-kReach, -kReach, kLow, kHigh, cell, cell, kCells, kCells};
  detector->laid_out_ = options.cameras;
  detector->pool_.emplace(detector->lift_, detector->grid_, options.cameras);
  const float map_cell = 2 * kReach / static_cast<float>(map.width);
  detector->centres_ = {-kReach,   -kReach,    map_cell,         map_cell,
                        map.width, map.height, nuscenes_tasks(), nuscenes_radius()};
  detector->decoding_.score_threshold = options.score_threshold;
  return detector;
}

FusionDetector::Work FusionDetector::make_work() const {
  const auto floats = [](int64_t count) { return std::vector<float>(static_cast<size_t>(count)); };
  Work work{floats(cameras_ * parts_[0]->input_shape().elements()),
            floats(cameras_ * output_size(*parts_[0], 0)),
            floats(cameras_ * output_size(*parts_[0], 1)),
            Pillars(rule_),
            floats(output_size(*parts_[1], 0)),
            floats(parts_[2]->input_shape().elements()),
            {},
            {},
            {},
            {},
            {}};
  for (size_t i = 0; i < parts_[2]->outputs.size(); ++i) work.outputs.push_back(floats(output_size(*parts_[2], i)));
  return work;
}

Result<void> FusionDetector::lay_out(std::span<const Camera> cameras, Work& work) const {
  if (static_cast<int64_t>(cameras.size()) != cameras_)
    return usage_error(fmt::format("{} cameras: {} was opened for {}", cameras.size(), name_, cameras_));
  if (std::ranges::equal(cameras, work.pool ? work.cameras : laid_out_)) return {};
  STROBE_TRY(check_cameras(cameras));
  work.cameras.assign(cameras.begin(), cameras.end());
  work.pool.emplace(lift_, grid_, cameras);
  // Cells that no ray reaches any more are not written again.
  std::fill_n(work.map.begin(), camera_channels_ * kCells * kCells, 0.0F);
  return {};
}

void FusionDetector::voxelize(std::span<const float> points, int columns, Work& work) const {
  work.pillars.fill(points, columns, threads_);
}

void FusionDetector::fuse(Work& work) const {
  const std::span<float> map(work.map);
  const auto split = static_cast<size_t>(camera_channels_ * kCells * kCells);
  const BevPool& pool = work.pool ? *work.pool : *pool_;
  pool.run(work.depth, work.context, camera_channels_, map.first(split), work.scratch, threads_);
  scatter_pillars(work.pillar_features, rule_.max_pillars, work.pillars.cells(), lidar_channels_, map.subspan(split),
                  work.drawn, threads_);
}

std::vector<Box3d> FusionDetector::decode(const Work& work) const {
  std::vector<const float*> heads;
  for (const auto& output : work.outputs) heads.push_back(output.data());
  return decode_centres(centres_, heads, decoding_);
}

}  // namespace strobe::models
