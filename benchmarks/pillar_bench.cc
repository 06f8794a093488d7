// Links: strobe_engines strobe_models
// The operators of LiDAR and fusion detectors beside their plain forms, in one run: real KITTI and nuScenes sweeps
// where STROBE_SHARED_DATA has them, otherwise made-up ones of the same size.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>

#include "base/file.h"
#include "engines/loader.h"
#include "models/bev_pool.h"
#include "models/centre_peaks.h"
#include "models/lidar_detector.h"
#include "models/nms3d.h"
#include "models/pillar_scatter.h"
#include "models/rotated_iou.h"

namespace {

using namespace strobe;
using namespace strobe::models;

struct Sweep {
  std::vector<float> points;
  int columns;
};

Sweep sweep_of(const std::string& detector) {
  const bool kitti = detector.find("nuscenes") == std::string::npos && detector.find("center") == std::string::npos;
  const char* data = std::getenv("STROBE_SHARED_DATA");
  const std::string file = kitti ? "/samples/kitti_000134.bin"
                                 : "/sensors/nuscenes/samples/LIDAR_TOP/"
                                   "n015-2018-07-24-11-22-45+0800__LIDAR_TOP__1532402927647951.pcd.bin";
  Sweep sweep{{}, kitti ? 4 : 5};
  if (const auto bytes = read_file(std::string(data ? data : "../shared/data") + file)) {
    sweep.points.resize(bytes->size() / sizeof(float));
    std::memcpy(sweep.points.data(), bytes->data(), sweep.points.size() * sizeof(float));
    return sweep;
  }
  std::mt19937 random(1);
  std::normal_distribution<float> spread(0, 15);
  for (int i = 0; i < (kitti ? 19'000 : 34'688); ++i) {
    sweep.points.insert(sweep.points.end(), {std::abs(spread(random)), spread(random), spread(random) / 15, 0.5F});
    if (!kitti) sweep.points.push_back(0);
  }
  return sweep;
}

const char* const kDetectors[] = {"pointpillars", "pointpillars-small", "centerpoint-pillar", "centerpoint-small"};

// Point by point, into arrays made for every sweep.
void plain_pillars(const PillarRule& rule, const Sweep& sweep, std::vector<float>& features,
                   std::vector<int32_t>& cells) {
  std::map<int64_t, size_t> pillar_of;
  std::vector<std::vector<const float*>> held;
  cells.clear();
  for (size_t at = 0; at + 3 < sweep.points.size(); at += static_cast<size_t>(sweep.columns)) {
    const float* p = sweep.points.data() + at;
    bool inside = true;
    for (int axis = 0; axis < 3; ++axis) inside = inside && p[axis] >= rule.low[axis] && p[axis] < rule.high[axis];
    if (!inside) continue;
    const auto column = static_cast<int64_t>(std::floor((p[0] - rule.low[0]) / rule.side_x));
    const auto row = static_cast<int64_t>(std::floor((p[1] - rule.low[1]) / rule.side_y));
    const auto [found, is_new] = pillar_of.try_emplace(row * rule.columns() + column, held.size());
    if (is_new) {
      if (static_cast<int64_t>(held.size()) == rule.max_pillars) {
        pillar_of.erase(found);
        continue;
      }
      held.emplace_back();
      cells.push_back(static_cast<int32_t>(found->first));
    }
    auto& own = held[found->second];
    if (static_cast<int64_t>(own.size()) < rule.max_points) own.push_back(p);
  }
  features.assign(static_cast<size_t>(kPillarFeatures * rule.max_points * rule.max_pillars), 0);
  for (size_t pillar = 0; pillar < held.size(); ++pillar) {
    float mean[3] = {0, 0, 0};
    for (const float* p : held[pillar])
      for (int axis = 0; axis < 3; ++axis) mean[axis] += p[axis] / static_cast<float>(held[pillar].size());
    const float x = rule.low[0] + (static_cast<float>(cells[pillar] % rule.columns()) + 0.5F) * rule.side_x;
    const float y = rule.low[1] + (static_cast<float>(cells[pillar] / rule.columns()) + 0.5F) * rule.side_y;
    for (size_t row = 0; row < held[pillar].size(); ++row) {
      const float* p = held[pillar][row];
      const float values[] = {p[0],           p[1],           p[2],           p[3] * rule.intensity_scale,
                              p[0] - mean[0], p[1] - mean[1], p[2] - mean[2], p[0] - x,
                              p[1] - y};
      for (size_t f = 0; f < kPillarFeatures; ++f)
        features[(f * static_cast<size_t>(rule.max_points) + row) * static_cast<size_t>(rule.max_pillars) + pillar] =
            values[f];
    }
  }
}

void voxelize(benchmark::State& state) {
  const char* name = kDetectors[state.range(0)];
  const auto detector = *LidarDetector::open(name, {});
  const Sweep sweep = sweep_of(name);
  const bool plain = state.range(1) == 0;
  auto work = detector->make_work();
  std::vector<float> features;
  std::vector<int32_t> cells;
  for (auto _ : state) {
    if (plain) {
      plain_pillars(detector->pillars(), sweep, features, cells);
    } else {
      detector->voxelize(sweep.points, sweep.columns, work);
    }
    benchmark::DoNotOptimize(features.data());
    benchmark::DoNotOptimize(work.pillars.features().data());
  }
  const auto points = static_cast<int64_t>(sweep.points.size()) / sweep.columns;
  state.SetItemsProcessed(state.iterations() * points);
  state.SetLabel(std::string(name) + (plain ? " plain" : "") + ", points " + std::to_string(points));
}
BENCHMARK(voxelize)->ArgsProduct({{0, 1, 2, 3}, {0, 1}})->Unit(benchmark::kMicrosecond);

void scatter(benchmark::State& state) {
  const char* name = kDetectors[state.range(0)];
  const auto detector = *LidarDetector::open(name, {});
  const Sweep sweep = sweep_of(name);
  const bool plain = state.range(1) == 0;
  auto work = detector->make_work();
  detector->voxelize(sweep.points, sweep.columns, work);
  const int64_t channels = detector->parts()[1]->input_shape().channels, pillars = detector->pillars().max_pillars;
  const size_t plane = work.canvas.size() / static_cast<size_t>(channels);
  const auto cells = work.pillars.cells();
  for (auto _ : state) {
    if (plain) {
      std::fill(work.canvas.begin(), work.canvas.end(), 0.0F);
      for (size_t i = 0; i < cells.size(); ++i)
        for (size_t c = 0; c < static_cast<size_t>(channels); ++c)
          work.canvas[c * plane + static_cast<size_t>(cells[i])] =
              work.pillar_features[c * static_cast<size_t>(pillars) + i];
    } else {
      detector->scatter(work);
    }
    benchmark::DoNotOptimize(work.canvas.data());
  }
  state.SetItemsProcessed(state.iterations() * work.pillars.count());
  state.SetLabel(std::string(name) + (plain ? " plain" : "") + ", pillars " + std::to_string(cells.size()));
}
BENCHMARK(scatter)->ArgsProduct({{0, 1, 2, 3}, {0, 1}})->Unit(benchmark::kMicrosecond);

// Six cameras around a vehicle, BEVFusion's frustum: 16 x 44 pixels, 59 depths of a metre, 64 channels.
std::vector<Camera> six_cameras() {
  std::vector<Camera> cameras(6);
  for (size_t i = 0; i < cameras.size(); ++i) {
    const float yaw = 1.0472F * static_cast<float>(i), c = std::cos(yaw), s = std::sin(yaw);
    cameras[i].width = 1600;
    cameras[i].height = 900;
    cameras[i].intrinsic = {1266, 0, 816, 0, 1266, 491, 0, 0, 1};
    cameras[i].to_vehicle = {s, 0, c, 1, -c, 0, s, 0, 0, -1, 0, -0.3F};
  }
  return cameras;
}

void bev_pool(benchmark::State& state) {
  const LiftRule rule{16, 44, 59, 1, 1};
  const BevGrid grid{-51.2F, -51.2F, -5, 3, 0.8F, 0.8F, 128, 128};
  const auto cameras = six_cameras();
  const BevPool pool(rule, grid, cameras);
  constexpr int64_t kChannels = 64;
  constexpr size_t kPixels = 16 * 44, kPlane = 128 * 128;
  std::vector<float> depth(6 * 59 * kPixels, 0.1F), context(6 * kChannels * kPixels, 0.5F), map(kChannels * kPlane),
      scratch;
  const bool plain = state.range(0) == 0;
  // The plain form knows the cells beforehand, too: what is compared is the sum.
  std::vector<int32_t> cell(depth.size(), -1);
  for (size_t camera = 0; camera < 6; ++camera) {
    for (size_t bin = 0; bin < 59; ++bin) {
      for (size_t pixel = 0; pixel < kPixels; ++pixel) {
        const Point3 at = unproject(
            cameras[camera], {(static_cast<float>(pixel % 44) + 0.5F) / 44 * 1600,
                              (static_cast<float>(pixel / 44) + 0.5F) / 16 * 900, 1.5F + static_cast<float>(bin)});
        const float x = std::floor((at.x + 51.2F) / 0.8F), y = std::floor((at.y + 51.2F) / 0.8F);
        if (x < 0 || y < 0 || x >= 128 || y >= 128 || at.z < -5 || at.z >= 3) continue;
        cell[(camera * 59 + bin) * kPixels + pixel] = static_cast<int32_t>(y) * 128 + static_cast<int32_t>(x);
      }
    }
  }
  for (auto _ : state) {
    if (plain) {
      std::fill(map.begin(), map.end(), 0.0F);
      for (size_t camera = 0; camera < 6; ++camera) {
        for (size_t bin = 0; bin < 59; ++bin) {
          for (size_t pixel = 0; pixel < kPixels; ++pixel) {
            const size_t at = (camera * 59 + bin) * kPixels + pixel;
            if (cell[at] < 0) continue;
            for (size_t c = 0; c < kChannels; ++c)
              map[c * kPlane + static_cast<size_t>(cell[at])] +=
                  depth[at] * context[(camera * kChannels + c) * kPixels + pixel];
          }
        }
      }
    } else {
      pool.run(depth, context, kChannels, map, scratch, static_cast<int>(state.range(0)));
    }
    benchmark::DoNotOptimize(map.data());
  }
  state.SetItemsProcessed(state.iterations() * pool.points());
  state.SetLabel((plain ? "plain" : std::to_string(state.range(0)) + " threads") + ", points " +
                 std::to_string(pool.points()));
}
BENCHMARK(bev_pool)->Arg(0)->Arg(1)->Arg(2)->Unit(benchmark::kMicrosecond)->UseRealTime();

std::vector<Box3d> crowd(size_t count) {
  std::mt19937 random(1);
  const auto uniform = [&](float low, float high) { return std::uniform_real_distribution<float>(low, high)(random); };
  std::vector<Box3d> boxes(count);
  for (Box3d& box : boxes) {
    box.x = uniform(-50, 50);
    box.y = uniform(-50, 50);
    box.length = 4;
    box.width = 2;
    box.height = 1.5F;
    box.yaw = uniform(-3, 3);
    box.score = uniform(0, 1);
  }
  return boxes;
}

template <typename Suppressed>
size_t plain_nms(const std::vector<Box3d>& boxes, Suppressed suppressed) {
  std::vector<const Box3d*> order;
  for (const Box3d& box : boxes) order.push_back(&box);
  std::stable_sort(order.begin(), order.end(), [](const Box3d* a, const Box3d* b) { return a->score > b->score; });
  std::vector<const Box3d*> kept;
  for (const Box3d* box : order)
    if (std::none_of(kept.begin(), kept.end(), [&](const Box3d* one) { return suppressed(*one, *box); }))
      kept.push_back(box);
  return kept.size();
}

// The plain IoU clips every pair of polygons: no circles first.
float every_pair_iou(const Box3d& a, const Box3d& b) {
  std::vector<Point2> polygon;
  for (const Point2& corner : bev_corners(b)) polygon.push_back(corner);
  const auto clip = bev_corners(a);
  for (size_t side = 0; side < 4 && !polygon.empty(); ++side) {
    const Point2 p = clip[side], q = clip[(side + 1) % 4];
    const auto left = [&](const Point2& c) { return (q.x - p.x) * (c.y - p.y) - (q.y - p.y) * (c.x - p.x); };
    std::vector<Point2> out;
    for (size_t i = 0; i < polygon.size(); ++i) {
      const Point2 from = polygon[i], to = polygon[(i + 1) % polygon.size()];
      const float u = left(from), v = left(to);
      if (u >= 0) out.push_back(from);
      if ((u >= 0) != (v >= 0))
        out.push_back({from.x + u / (u - v) * (to.x - from.x), from.y + u / (u - v) * (to.y - from.y)});
    }
    polygon = std::move(out);
  }
  float twice = 0;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const Point2 &u = polygon[i], &v = polygon[(i + 1) % polygon.size()];
    twice += u.x * v.y - v.x * u.y;
  }
  const float common = twice / 2;
  return common / (a.length * a.width + b.length * b.width - common);
}

void nms(benchmark::State& state) {
  const auto boxes = crowd(static_cast<size_t>(state.range(0)));
  const bool plain = state.range(1) == 0, circles = state.range(2) == 1;
  const std::vector<float> radius = {2};
  size_t kept = 0;
  for (auto _ : state) {
    if (plain && circles) {
      kept = plain_nms(boxes, [](const Box3d& a, const Box3d& b) { return std::hypot(a.x - b.x, a.y - b.y) < 2; });
    } else if (plain) {
      kept = plain_nms(boxes, [](const Box3d& a, const Box3d& b) { return every_pair_iou(a, b) > 0.1F; });
    } else {
      kept = (circles ? circle_nms(boxes, radius) : rotated_nms(boxes, 0.1F)).size();
    }
    benchmark::DoNotOptimize(kept);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetLabel(std::string(circles ? "circle" : "rotated") + (plain ? " plain" : "") + ", kept " +
                 std::to_string(kept));
}
BENCHMARK(nms)->ArgsProduct({{1000}, {0, 1}, {0, 1}})->Unit(benchmark::kMicrosecond);

void peaks(benchmark::State& state) {
  constexpr int64_t kSide = 128, kClasses = 10;
  std::mt19937 random(1);
  std::normal_distribution<float> spread(-6, 1.2F);
  std::vector<float> map(kClasses * kSide * kSide);
  for (float& value : map) value = spread(random);
  const bool plain = state.range(0) == 0;
  const float least = logit_of(0.1F);
  size_t found = 0;
  for (auto _ : state) {
    if (plain) {
      found = 0;
      for (int64_t c = 0; c < kClasses; ++c) {
        for (int64_t y = 0; y < kSide; ++y) {
          for (int64_t x = 0; x < kSide; ++x) {
            const float value = logistic(map[static_cast<size_t>((c * kSide + y) * kSide + x)]);
            bool peak = value >= 0.1F;
            for (int64_t ny = std::max<int64_t>(0, y - 1); ny <= std::min(kSide - 1, y + 1); ++ny)
              for (int64_t nx = std::max<int64_t>(0, x - 1); nx <= std::min(kSide - 1, x + 1); ++nx)
                peak = peak && logistic(map[static_cast<size_t>((c * kSide + ny) * kSide + nx)]) <= value;
            found += peak ? 1 : 0;
          }
        }
      }
    } else {
      found = find_peaks(map.data(), kClasses, kSide, kSide, least, 500).size();
    }
    benchmark::DoNotOptimize(found);
  }
  state.SetLabel((plain ? "plain, found " : "found ") + std::to_string(found));
}
BENCHMARK(peaks)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

// A whole frame, points to boxes, on one thread; the time of the operators in it as a counter.
void frame(benchmark::State& state) {
  const char* const engines_[] = {"openvino", "torch"};
  const char* engine_name = engines_[state.range(1)];
  const char* name = kDetectors[state.range(0)];
  const auto engine = engines::open_engine(engine_name);
  if (!engine) {
    state.SkipWithError("the engine is not built");
    return;
  }
  const auto detector = *LidarDetector::open(name, {});
  const Sweep sweep = sweep_of(name);
  auto work = detector->make_work();
  engines::LoadOptions options;
  options.threads_per_session = 1;
  std::vector<std::unique_ptr<engines::Network>> networks;
  std::vector<std::unique_ptr<engines::Session>> sessions;
  for (const auto& part : detector->parts()) {
    networks.push_back(*(*engine)->load(part, options));
    sessions.push_back(*networks.back()->create_session());
  }
  std::vector<float*> outputs;
  for (auto& output : work.outputs) outputs.push_back(output.data());
  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double, std::milli> own{0};
  for (auto _ : state) {
    const auto begin = Clock::now();
    detector->voxelize(sweep.points, sweep.columns, work);
    const auto voxelized = Clock::now();
    const float* features = work.pillars.features().data();
    float* pillar_features = work.pillar_features.data();
    if (!sessions[0]->run(std::span(&features, 1), std::span(&pillar_features, 1))) std::abort();
    const auto pillars = Clock::now();
    detector->scatter(work);
    const auto scattered = Clock::now();
    const float* canvas = work.canvas.data();
    if (!sessions[1]->run(std::span(&canvas, 1), outputs)) std::abort();
    const auto ran = Clock::now();
    benchmark::DoNotOptimize(detector->decode(work));
    own += (voxelized - begin) + (scattered - pillars) + (Clock::now() - ran);
  }
  state.counters["operators_ms"] = own.count() / static_cast<double>(state.iterations());
  state.SetLabel(std::string(name) + " on " + engine_name);
}
BENCHMARK(frame)->ArgsProduct({{0, 1, 2, 3}, {0, 1}})->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

}  // namespace

BENCHMARK_MAIN();
