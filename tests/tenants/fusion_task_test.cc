// A fusion model's frames may differ in where their cameras stand, not in how many there are.
#include "tenants/fusion_task.h"

#include <gmock/gmock.h>

#include "engines/loader.h"
#include "support/test_data.h"
#include "tenants/frame_stream.h"

namespace strobe::tenants {
namespace {

TEST(FusionTask, FollowsItsCamerasAndRefusesAnotherNumberOfThem) {
  const auto root = test::shared_data("sensors/nuscenes");
  STROBE_REQUIRE_DATA(root);
  TenantSpec tenant;
  tenant.model = "bevfusion-small";
  tenant.engine = "openvino";
  if (const auto there = engines::check_engine(tenant.engine); !there) GTEST_SKIP() << there.error().to_string();
  SourceSpec source;
  source.kind = SourceSpec::Kind::kNuscenes;
  source.path = root.string();
  const auto stream = open_stream(source, {.pictures = true, .points = true}, 1);
  ASSERT_TRUE(stream) << stream.error().to_string();
  const SensorFrame frame = (*stream)->frame(0);
  ASSERT_EQ(frame.pictures.size(), 6U);
  const auto task = open_fusion_task(tenant, frame);
  ASSERT_TRUE(task) << task.error().to_string();
  const auto goes = [&](const SensorFrame& one) -> std::string {
    if (auto decoded = (*task)->decode(std::span(&one, 1)); !decoded) return decoded.error().to_string();
    auto prepared = (*task)->prepare();
    return prepared ? "" : prepared.error().to_string();
  };
  EXPECT_EQ(goes(frame), "");

  SensorFrame other = frame;
  other.pictures.push_back(frame.pictures.front());
  EXPECT_THAT(goes(other), testing::HasSubstr("7 pictures, the model was laid out for 6"));
  other.pictures.resize(5);
  EXPECT_THAT(goes(other), testing::HasSubstr("5 pictures, the model was laid out for 6"));

  // Each picture brings its camera, which is looked at anew.
  const auto with = [&frame](const auto& change) {
    SensorFrame changed = frame;
    auto picture = std::make_shared<EncodedPicture>(*frame.pictures[2]);
    change(picture->camera);
    changed.pictures[2] = std::move(picture);
    return changed;
  };
  EXPECT_EQ(goes(with([](auto& camera) { camera->to_vehicle[3] += 1; })), "");
  EXPECT_THAT(goes(with([](auto& camera) { camera->intrinsic[0] = 0; })), testing::HasSubstr("camera 2: "));
  EXPECT_THAT(goes(with([](auto& camera) { camera.reset(); })), testing::HasSubstr("the camera is not known"));
  EXPECT_EQ(goes(frame), "");
}

}  // namespace
}  // namespace strobe::tenants
