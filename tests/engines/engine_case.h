// What the tests of engines share: the engines that are built, random graphs and inputs, and the comparison of outputs.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/graph_builder.h"
#include "strobe/base/result.h"
#include "strobe/engines/engine.h"

namespace strobe::test {

using GraphPtr = std::shared_ptr<const models::Graph>;
using Values = std::vector<float>;

// Every engine with each of its variants, as open_engine() takes them.
std::vector<std::string> engine_specs();

// One test for each of engine_specs(); skips where the engine is not built.
class EachEngine : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  engines::Engine& engine() const { return *engine_; }
  bool is(const std::string& prefix) const { return GetParam().starts_with(prefix); }

 private:
  std::shared_ptr<engines::Engine> engine_;
};
std::string test_name(const testing::TestParamInfo<std::string>& engine);
#define STROBE_FOR_EACH_ENGINE(Suite) \
  INSTANTIATE_TEST_SUITE_P(Engines, Suite, testing::ValuesIn(::strobe::test::engine_specs()), ::strobe::test::test_name)

// Uniform in [-1, 1]; the same seed gives the same values everywhere.
Values random_values(int64_t count, uint32_t seed);
// Fills declared weights so that values keep their size; batch norms get real means, variances, scales and shifts.
void fill_weights(models::Graph& graph, uint32_t seed);

// A graph under construction whose every step must succeed.
class Sketch {
 public:
  explicit Sketch(const models::Shape& input);
  models::LayerId input() const { return 0; }
  models::LayerId add(models::Operation operation, std::vector<models::LayerId> inputs = {});  // none: the last layer
  models::LayerId add(const std::string& name, models::Operation operation, std::vector<models::LayerId> inputs = {});
  models::LayerId last() const { return builder_.last(); }
  void output(models::LayerId id) { builder_.add_output(id); }
  GraphPtr finish(uint32_t seed = 7);

 private:
  models::GraphBuilder builder_;
};

// Loads the graph and runs it on `input` (batch items); one vector an output.
Result<std::vector<Values>> run_once(engines::Network& network, std::span<const float> input);
Result<std::vector<Values>> run_on(engines::Session& session, const engines::Network& network,
                                   std::span<const float> input);
// The reference's outputs for all items of a batch.
std::vector<Values> reference_outputs(const models::Graph& graph, std::span<const float> input);

// The largest |actual - expected| / (1 + |expected|); infinite where one is not a number or the sizes differ.
double difference(const Values& actual, const Values& expected);
double difference(const std::vector<Values>& actual, const std::vector<Values>& expected);

}  // namespace strobe::test
