#include "engines/engine_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "engines/loader.h"
#include "models/reference_executor.h"

namespace strobe::test {

std::vector<std::string> engine_specs() {
  return {"torch:eager", "torch:script", "openvino", "opencv"};
}

void EachEngine::SetUp() {
  const std::string name = GetParam().substr(0, GetParam().find(':'));
  for (const auto& status : engines::list_engines()) {
    if (status.name == name && !status.built) GTEST_SKIP() << "engine " << name << " is not built";
  }
  auto opened = engines::open_engine(GetParam());
  ASSERT_TRUE(opened) << opened.error().to_string();
  engine_ = *std::move(opened);
}

std::string test_name(const testing::TestParamInfo<std::string>& engine) {
  std::string name = engine.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

Values random_values(int64_t count, uint32_t seed) {
  std::mt19937 bits(seed);
  Values values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(bits() >> 8) / static_cast<float>(1 << 23) - 1;
  return values;
}

void fill_weights(models::Graph& graph, uint32_t seed) {
  for (models::Layer& layer : graph.layers) {
    for (const auto& slot : models::weight_slots(layer.operation)) {
      if (!(*slot.tensor)->values.empty()) continue;
      models::Tensor tensor = **slot.tensor;
      tensor.values = random_values(models::element_count(tensor), seed++);
      const auto fan_in = static_cast<float>(models::element_count(tensor) / tensor.shape.front());
      for (float& value : tensor.values) {
        if (slot.role == "weight") value *= std::sqrt(3 / fan_in);
        if (slot.role == "scale" || slot.role == "variance") value = 1.2F + value;
      }
      *slot.tensor = std::make_shared<const models::Tensor>(std::move(tensor));
    }
  }
}

Sketch::Sketch(const models::Shape& input) : builder_("sketch") {
  if (!builder_.input(input)) throw std::logic_error("the input is refused");
}

models::LayerId Sketch::add(models::Operation operation, std::vector<models::LayerId> inputs) {
  std::string name = std::to_string(last() + 1) + "_" + std::string(models::type_name(operation));
  return add(name, std::move(operation), std::move(inputs));
}

models::LayerId Sketch::add(const std::string& name, models::Operation operation, std::vector<models::LayerId> inputs) {
  if (inputs.empty()) inputs = {last()};
  auto id = builder_.append(name, std::move(operation), std::move(inputs));
  if (!id) throw std::logic_error(id.error().to_string());
  return *id;
}

GraphPtr Sketch::finish(uint32_t seed) {
  auto graph = std::move(builder_).finish();
  if (!graph) throw std::logic_error(graph.error().to_string());
  fill_weights(*graph, seed);
  return std::make_shared<const models::Graph>(*std::move(graph));
}

Result<std::vector<Values>> run_on(engines::Session& session, const engines::Network& network,
                                   std::span<const float> input) {
  std::vector<Values> outputs;
  std::vector<float*> pointers;
  for (const auto& info : network.outputs()) {
    // Not a number where the engine writes nothing.
    outputs.emplace_back(static_cast<size_t>(info.elements()), std::numeric_limits<float>::quiet_NaN());
    pointers.push_back(outputs.back().data());
  }
  const float* in = input.data();
  STROBE_TRY(session.run(std::span(&in, 1), pointers));
  return outputs;
}

Result<std::vector<Values>> run_once(engines::Network& network, std::span<const float> input) {
  STROBE_ASSIGN(const auto session, network.create_session());
  return run_on(*session, network, input);
}

std::vector<Values> reference_outputs(const models::Graph& graph, std::span<const float> input) {
  std::vector<Values> outputs(graph.outputs.size());
  const auto item = static_cast<size_t>(graph.input_shape().elements());
  for (size_t begin = 0; begin < input.size(); begin += item) {
    const auto layers = run_reference(graph, input.subspan(begin, item));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Values& values = layers[static_cast<size_t>(graph.outputs[i])];
      outputs[i].insert(outputs[i].end(), values.begin(), values.end());
    }
  }
  return outputs;
}

double difference(const Values& actual, const Values& expected) {
  if (actual.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double one = std::abs(double{actual[i]} - expected[i]) / (1 + std::abs(double{expected[i]}));
    if (!std::isfinite(one)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, one);
  }
  return largest;
}

double difference(const std::vector<Values>& actual, const std::vector<Values>& expected) {
  if (actual.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (size_t i = 0; i < actual.size(); ++i) largest = std::max(largest, difference(actual[i], expected[i]));
  return largest;
}

}  // namespace strobe::test
