#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "doctor_checks.h"
#include "engines/loader.h"
#include "in_child.h"
#include "models/graph_builder.h"

namespace strobe::app {

namespace {

constexpr int kLoadTimeout_s = 120;

models::Weights tensor(std::vector<int64_t> shape, std::vector<float> values) {
  return std::make_shared<models::Tensor>(models::Tensor{std::move(shape), std::move(values)});
}

// 3x4x4 -> 1x1 convolution that gives 1 a + 2 b - 3 c + 0.5 -> ReLU.
Result<models::Graph> small_graph() {
  models::GraphBuilder builder("doctor");
  STROBE_ASSIGN(const auto input, builder.input({3, 4, 4}));
  models::Convolution convolution;
  convolution.out_channels = 1;
  convolution.weight = tensor({1, 3, 1, 1}, {1, 2, -3});
  convolution.bias = tensor({1}, {0.5F});
  STROBE_ASSIGN(const auto sum, builder.append("sum", convolution, {input}));
  STROBE_ASSIGN(const auto relu,
                builder.append("relu", models::Activation{models::ActivationKind::kRelu, 0.1F}, {sum}));
  builder.add_output(relu);
  return std::move(builder).finish();
}

Result<std::string> run_small_graph(const std::string& name) {
  STROBE_ASSIGN(const auto engine, engines::open_engine(name));
  STROBE_ASSIGN(auto graph, small_graph());
  engines::LoadOptions options;
  if (engine->precisions().empty()) options.device = "cuda:0";
  STROBE_ASSIGN(const auto network, engine->load(std::make_shared<const models::Graph>(std::move(graph)), options));
  STROBE_ASSIGN(const auto session, network->create_session());
  std::vector<float> input(48), output(16), expected(16);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i % 11) - 5;
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = std::max(0.0F, input[i] + 2 * input[16 + i] - 3 * input[32 + i] + 0.5F);
  const float* in = input.data();
  float* out = output.data();
  STROBE_TRY(session->run(std::span(&in, 1), std::span(&out, 1)));
  for (size_t i = 0; i < output.size(); ++i)
    // Half a per cent leaves room for bf16 arithmetic where a CPU has it.
    if (std::fabs(output[i] - expected[i]) > 0.005F * (1 + std::fabs(expected[i])))
      return engine_error("a small network gives " + std::to_string(output[i]) + " where " +
                          std::to_string(expected[i]) + " is right");
  return engine->version() + " runs a small network correctly";
}

Check check_engine(const engines::EngineStatus& engine) {
  Check check{"engine " + engine.name, Health::kMissing, false, "not built", engine.how_to_get};
  if (!engine.built) return check;
  // "+", "-" or "?" before the text: right, wrong, or something that it needs is not here.
  const auto answer = in_child(
      [&engine]() -> std::string {
        ::setenv("STROBE_TENSORRT_CACHE", "off", 1);  // building is a part of what is tried
        const auto result = run_small_graph(engine.name);
        if (result) return "+" + *result;
        return (result.error().kind() == ErrorKind::kUnsupported ? "?" : "-") + result.error().to_string();
      },
      kLoadTimeout_s);
  const bool works = answer && answer->front() == '+';
  const bool lacks = answer && answer->front() == '?';
  check.health = works ? Health::kWorks : lacks ? Health::kMissing : Health::kBroken;
  check.detail = answer ? answer->substr(1) : answer.error().to_string();
  if (lacks)
    check.remedy = "docs/engines.md says what it needs";
  else if (!works)
    check.remedy = "build it anew with `make`; `ldd " + engine.path + "` shows which libraries it finds";
  return check;
}

}  // namespace

std::vector<Check> check_engines() {
  std::vector<Check> checks;
  int working = 0;
  for (const auto& engine : engines::list_engines()) {
    checks.push_back(check_engine(engine));
    working += checks.back().health == Health::kWorks ? 1 : 0;
  }
  Check any{"any engine", Health::kWorks, true,
            std::to_string(working) + (working == 1 ? " engine works" : " engines work"), ""};
  if (working == 0) {
    any.health = Health::kBroken;
    any.detail = "no engine works: networks cannot be run";
    any.remedy = "run `make`, which installs LibTorch and OpenVINO and builds their plugins";
  }
  checks.push_back(any);
  return checks;
}

}  // namespace strobe::app
