// Every operation on every engine, against plain loops in double precision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "engines/operation_cases.h"

namespace strobe::engines {
namespace {

using test::difference;
using test::GraphPtr;
using test::OperationCase;

// Of 1 + |value|, of every engine. Measured: docs/engines.md.
constexpr double kTolerance = 5e-6;

class Operations : public test::EachEngine {
 protected:
  // Two batches one after the other through one session: nothing of the first may be left in the second.
  void check(const OperationCase& one, int64_t batch) {
    SCOPED_TRACE(one.name + ", batch " + std::to_string(batch));
    LoadOptions options;
    options.batch = batch;
    const auto network = engine().load(one.graph, options);
    ASSERT_TRUE(network) << network.error().to_string();
    ASSERT_EQ((*network)->inputs().size(), 1U);
    const auto& shape = one.graph->input_shape();
    EXPECT_THAT((*network)->inputs().front().shape,
                testing::ElementsAre(batch, shape.channels, shape.height, shape.width));
    ASSERT_EQ((*network)->outputs().size(), one.graph->outputs.size());
    for (size_t i = 0; i < one.graph->outputs.size(); ++i) {
      const auto& layer = one.graph->layer(one.graph->outputs[i]);
      EXPECT_EQ((*network)->outputs()[i].name, layer.name);
      EXPECT_THAT((*network)->outputs()[i].shape,
                  testing::ElementsAre(batch, layer.output.channels, layer.output.height, layer.output.width));
    }
    const auto session = (*network)->create_session();
    ASSERT_TRUE(session) << session.error().to_string();
    for (const uint32_t seed : {1U, 2U}) {
      const auto input = test::random_values(batch * shape.elements(), seed);
      const auto outputs = test::run_on(**session, **network, input);
      ASSERT_TRUE(outputs) << outputs.error().to_string();
      const double found = difference(*outputs, test::reference_outputs(*one.graph, input));
      EXPECT_LE(found, kTolerance) << "run " << seed;
      if (found > largest_) {
        largest_ = found;
        largest_of_ = one.name;
      }
    }
  }
  void check_all(const std::vector<OperationCase>& cases) {
    for (const auto& one : cases) {
      for (const int64_t batch : {1, 3}) check(one, batch);
    }
    std::ostringstream text;
    text << largest_ << " (" << largest_of_ << ")";
    RecordProperty("largest_difference", text.str());
  }

 private:
  double largest_ = 0;
  std::string largest_of_;
};

TEST_P(Operations, Convolutions) {
  check_all(test::convolution_cases());
}
TEST_P(Operations, TransposedConvolutions) {
  check_all(test::transposed_cases());
}
TEST_P(Operations, Activations) {
  check_all(test::activation_cases());
}
TEST_P(Operations, Pools) {
  check_all(test::pool_cases());
}
TEST_P(Operations, StructuresAndBlocks) {
  check_all(test::structure_cases());
}
STROBE_FOR_EACH_ENGINE(Operations);

TEST(OperationCases, HoldEveryOperationAndActivation) {
  std::set<size_t> operations;
  std::set<models::ActivationKind> activations;
  for (const auto& cases : {test::convolution_cases(), test::transposed_cases(), test::activation_cases(),
                            test::pool_cases(), test::structure_cases()}) {
    for (const auto& one : cases) {
      for (const auto& layer : one.graph->layers) {
        operations.insert(layer.operation.index());
        if (const auto* a = std::get_if<models::Activation>(&layer.operation)) activations.insert(a->kind);
      }
    }
  }
  EXPECT_EQ(operations.size(), std::variant_size_v<models::Operation>);
  EXPECT_EQ(activations.size(), static_cast<size_t>(models::ActivationKind::kHardSwish) + 1);
}

}  // namespace
}  // namespace strobe::engines
