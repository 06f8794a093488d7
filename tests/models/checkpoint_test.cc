#include "models/checkpoint.h"

#include <gmock/gmock.h>

#include <fstream>

#include "base/file.h"
#include "models/safetensors.h"
#include "models/seed.h"
#include "models/zoo.h"
#include "support/test_data.h"

namespace strobe::models {
namespace {

using testing::HasSubstr;

class CheckpointFile : public testing::Test {
 protected:
  CheckpointFile() {
    checkpoint_.graph = *make_person_tiny({});
    EXPECT_TRUE(seed_weights(checkpoint_.graph, 5));
    checkpoint_.optimizer = {{"step", {{1}, {7}}}, {"stem.conv.weight#mean", {{2}, {0.5F, -1}}}};
    checkpoint_.step = 7;
    EXPECT_TRUE(write_checkpoint(checkpoint_, path_));
  }
  test::ScratchFolder folder_;
  std::filesystem::path path_ = folder_ / "checkpoint.safetensors";
  Checkpoint checkpoint_;
};

TEST_F(CheckpointFile, ComesBackWhole) {
  const auto read = read_checkpoint(*make_person_tiny({}), path_);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->step, 7);
  EXPECT_TRUE(read->graph.trained);
  EXPECT_EQ(weights_of(read->graph).tensors.at("stem.conv.weight").values,
            weights_of(checkpoint_.graph).tensors.at("stem.conv.weight").values);
  ASSERT_EQ(read->optimizer.size(), 2U);
  EXPECT_EQ(read->optimizer.at("stem.conv.weight#mean").values, (std::vector<float>{0.5F, -1}));
}

TEST_F(CheckpointFile, OfAnotherNetworkIsRefused) {
  const auto read = read_checkpoint(*make_squeezenet1_1({}), path_);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().to_string(), HasSubstr("a checkpoint of person-tiny, not of squeezenet1_1"));
}

TEST_F(CheckpointFile, WeightsAloneAreNone) {
  const auto weights = folder_ / "weights.safetensors";
  ASSERT_TRUE(write_file(weights, write_safetensors(weights_of(checkpoint_.graph))));
  const auto read = read_checkpoint(checkpoint_.graph, weights);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().to_string(), HasSubstr("lacks \"step\""));
}

}  // namespace
}  // namespace strobe::models
