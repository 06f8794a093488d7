#include "models/bev_pool.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "base/file.h"
#include "support/test_data.h"

namespace strobe::models {
namespace {

// Looks along the vehicle's x from (0, 0, 1.5), turned about z.
Camera camera_towards(float yaw) {
  Camera camera;
  camera.width = 80;
  camera.height = 40;
  camera.intrinsic = {50, 0, 40, 0, 50, 20, 0, 0, 1};
  const float c = std::cos(yaw), s = std::sin(yaw);
  // Columns: the camera's right, down and forward in the vehicle's frame.
  camera.to_vehicle = {s, 0, c, 0, -c, 0, s, 0, 0, -1, 0, 1.5F};
  return camera;
}

TEST(Camera, ProjectsByHand) {
  const Camera camera = camera_towards(0);
  const auto pixel = project(camera, {10, -2, 2.5F});  // 2 m to the right, 1 m above the camera
  ASSERT_TRUE(pixel);
  EXPECT_NEAR(pixel->u, 50, 1e-4);
  EXPECT_NEAR(pixel->v, 15, 1e-4);
  EXPECT_NEAR(pixel->depth, 10, 1e-5);
  EXPECT_FALSE(project(camera, {-1, 0, 0}));
  const auto half = project(stretched(camera, 40, 80), {10, -2, 2.5F});
  EXPECT_NEAR(half->u, 25, 1e-4);
  EXPECT_NEAR(half->v, 30, 1e-4);
}

TEST(Camera, ThereAndBack) {
  std::mt19937 random(1);
  const auto uniform = [&](float low, float high) { return std::uniform_real_distribution<float>(low, high)(random); };
  for (int i = 0; i < 100; ++i) {
    Camera camera = camera_towards(uniform(-3, 3));
    camera.intrinsic[1] = uniform(-2, 2);
    const Pixel pixel{uniform(0, 80), uniform(0, 40), uniform(1, 60)};
    const auto again = project(camera, unproject(camera, pixel));
    ASSERT_TRUE(again);
    EXPECT_NEAR(again->u, pixel.u, 2e-3);
    EXPECT_NEAR(again->v, pixel.v, 2e-3);
    EXPECT_NEAR(again->depth, pixel.depth, 1e-3);
  }
}

// KITTI's own projection, and its labels: the corners of a box in space seen by the camera span its box in the picture,
// which people drew and which is tighter around what has no corners.
TEST(Camera, OfKittiSeesItsLabels) {
  const auto file = test::shared_data("samples/kitti_000134_calib.txt");
  STROBE_REQUIRE_DATA(file);
  const auto calibration = parse_kitti_calibration(*read_file(file));
  const auto labels = parse_kitti_labels(*read_file(test::shared_data("samples/kitti_000134_gt.txt")));
  ASSERT_TRUE(calibration && labels);
  const Camera camera = kitti_camera(*calibration, 1224, 370);
  for (const KittiLabel& label : *labels) {
    if (label.type == "DontCare" || label.truncated > 0) continue;
    const Box3d box = lidar_box(label, *calibration);
    float left = 1e9F, top = 1e9F, right = -1e9F, bottom = -1e9F;
    for (const Point2& corner : bev_corners(box)) {
      for (const float side : {-0.5F, 0.5F}) {
        const auto pixel = project(camera, {corner.x, corner.y, box.z + side * box.height});
        ASSERT_TRUE(pixel);
        left = std::min(left, pixel->u);
        right = std::max(right, pixel->u);
        top = std::min(top, pixel->v);
        bottom = std::max(bottom, pixel->v);
      }
    }
    EXPECT_NEAR(left, label.box[0], 15) << label.type;
    EXPECT_NEAR(right, label.box[2], 15) << label.type;
    EXPECT_NEAR(top, label.box[1], 15) << label.type;
    EXPECT_NEAR(bottom, label.box[3], 15) << label.type;
  }
}

struct Rig {
  LiftRule rule{5, 7, 9, 1, 2};
  BevGrid grid{-20, -16, -2, 4, 2, 1, 20, 32};
  std::vector<Camera> cameras{camera_towards(0), camera_towards(2), camera_towards(-2.2F)};
};

TEST(BevPool, AgreesWithPointsThatAreAddedOneByOne) {
  const Rig rig;
  const BevPool pool(rig.rule, rig.grid, rig.cameras);
  EXPECT_GT(pool.points(), 100);
  EXPECT_GT(pool.cells(), 30);
  std::mt19937 random(7);
  const auto filled = [&](size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
    return values;
  };
  const size_t pixels = 35;
  std::vector<float> scratch;
  for (const int64_t channels : {1, 16, 37}) {
    const auto per = static_cast<size_t>(channels);
    std::vector<float> map(per * 640);
    for (int frame = 0; frame < 2; ++frame) {  // the second into the same buffers
      const auto depth = filled(3 * 9 * pixels), context = filled(3 * per * pixels);
      std::vector<double> wanted(map.size());
      int64_t points = 0;
      for (size_t camera = 0; camera < 3; ++camera) {
        for (size_t bin = 0; bin < 9; ++bin) {
          for (size_t pixel = 0; pixel < pixels; ++pixel) {
            const Point3 point = unproject(rig.cameras[camera], {(static_cast<float>(pixel % 7) + 0.5F) / 7 * 80,
                                                                 (static_cast<float>(pixel / 7) + 0.5F) / 5 * 40,
                                                                 1 + (static_cast<float>(bin) + 0.5F) * 2});
            const float column = std::floor((point.x + 20) / 2), row = std::floor(point.y + 16);
            if (column < 0 || column >= 20 || row < 0 || row >= 32 || point.z < -2 || point.z >= 4) continue;
            ++points;
            for (size_t c = 0; c < per; ++c)
              wanted[c * 640 + static_cast<size_t>(row) * 20 + static_cast<size_t>(column)] +=
                  static_cast<double>(depth[(camera * 9 + bin) * pixels + pixel]) *
                  context[(camera * per + c) * pixels + pixel];
          }
        }
      }
      EXPECT_EQ(points, pool.points());
      pool.run(depth, context, channels, map, scratch, 2);
      double worst = 0;
      for (size_t i = 0; i < map.size(); ++i) worst = std::max(worst, std::abs(map[i] - wanted[i]));
      EXPECT_LE(worst, 1e-5);
    }
  }
}

TEST(BevPool, ByHand) {
  // One pixel, three bins straight ahead at 1.5, 2.5 and 3.5 m; cells of 2 m.
  const Camera camera = camera_towards(0);
  const BevPool pool({1, 1, 3, 1, 1}, {0, -1, 0, 3, 2, 2, 2, 1}, std::span(&camera, 1));
  EXPECT_EQ(pool.points(), 3);
  EXPECT_EQ(pool.cells(), 2);
  std::vector<float> map(4), scratch;
  pool.run(std::vector<float>{0.5F, 0.25F, 0.125F}, std::vector<float>{8, -16}, 2, map, scratch);
  EXPECT_THAT(map, testing::ElementsAre(4, 3, -8, -6));
}

}  // namespace
}  // namespace strobe::models
