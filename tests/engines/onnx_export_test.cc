// Networks as ONNX files: read and run by ONNX Runtime and OpenVINO, held against the reference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

#include "engines/engine_case.h"
#include "engines/fusion.h"
#include "engines/loader.h"
#include "engines/onnx_file.h"
#include "engines/operation_cases.h"
#include "models/model.h"
#include "models/onnx.h"
#include "support/test_data.h"

namespace strobe::engines {
namespace {

using models::OnnxNumber;
using test::GraphPtr;
using test::Values;
using testing::ElementsAre;
using testing::IsSubsetOf;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string bytes_of(const Values& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

Values values_of(const std::filesystem::path& path) {
  const std::string bytes = text_of(path);
  Values values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

std::vector<test::OperationCase> all_cases() {
  std::vector<test::OperationCase> all;
  for (const auto& some : {test::convolution_cases(), test::transposed_cases(), test::activation_cases(),
                           test::pool_cases(), test::structure_cases()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

Values input_of(const models::Graph& graph, int64_t batch) {
  return test::random_values(batch * graph.input_shape().elements(), 5);
}

// A folder of networks as ONNX Runtime sees them.
class Folder {
 public:
  void add(const std::string& name, const models::Graph& graph, const models::OnnxOptions& options,
           const Values& input) {
    const auto file = models::write_onnx(graph, options);
    ASSERT_TRUE(file) << name << ": " << file.error().to_string();
    test::write_bytes(folder_ / (name + ".onnx"), *file);
    test::write_bytes(folder_ / (name + ".in"), bytes_of(input));
  }
  // Empty where all is well; "no module" where there are no such packages; else what the script says.
  std::string run() const {
    if (!calls("-c 'import onnx, onnxruntime'")) return "no module";
    if (calls(std::string(STROBE_TEST_ONNX_REFERENCE) + " " + folder_.path().string())) return "";
    return text_of(folder_ / "log");
  }
  // The same by NVIDIA's parser and builder, which say how many they took.
  std::string run_tensorrt() const {
    if (!calls("-c 'import tensorrt_rtx'")) return "no module";
    calls(std::string(STROBE_TEST_TENSORRT_REFERENCE) + " " + folder_.path().string());
    return text_of(folder_ / "log");
  }
  std::vector<Values> outputs(const std::string& name) const {
    std::vector<Values> all;
    for (size_t i = 0; exists(folder_ / (name + ".out" + std::to_string(i))); ++i)
      all.push_back(values_of(folder_ / (name + ".out" + std::to_string(i))));
    return all;
  }
  std::vector<std::string> nodes(const std::string& name) const { return lines_of(folder_ / (name + ".nodes")); }
  std::vector<std::string> ends(const std::string& name) const { return lines_of(folder_ / (name + ".ends")); }

 private:
  bool calls(const std::string& words) const {
    const std::string python = STROBE_TEST_PYTHON;
    const std::string line = python + " " + words + " > " + (folder_ / "log").string() + " 2>&1";
    return !python.empty() && std::system(line.c_str()) == 0;
  }

  test::ScratchFolder folder_;
};

#define STROBE_RUN_FOLDER(folder)                                                                     \
  do {                                                                                                \
    const std::string said = (folder).run();                                                          \
    if (said == "no module") GTEST_SKIP() << "the build's Python cannot import onnx and onnxruntime"; \
    ASSERT_EQ(said, "");                                                                              \
  } while (false)

TEST(OnnxExport, OnnxRuntimeComputesWhatTheReferenceDoes) {
  Folder folder;
  const auto cases = all_cases();
  for (const auto& one : cases) {
    folder.add(one.name + ".1", *one.graph, {.batch = 1}, input_of(*one.graph, 1));
    folder.add(one.name + ".open", *one.graph, {.batch = 0}, input_of(*one.graph, 3));
  }
  STROBE_RUN_FOLDER(folder);
  double largest = 0;
  for (const auto& one : cases) {
    for (const auto& [name, batch] : {std::pair(one.name + ".1", 1), std::pair(one.name + ".open", 3)}) {
      SCOPED_TRACE(name);
      const double found =
          test::difference(folder.outputs(name), test::reference_outputs(*one.graph, input_of(*one.graph, batch)));
      EXPECT_LE(found, 5e-6);
      largest = std::max(largest, found);
    }
  }
  RecordProperty("largest_difference", std::to_string(largest * 1e6) + "e-6");
}

TEST(OnnxExport, NodesAndEndsBearTheLayersNames) {
  Folder folder;
  const auto cases = all_cases();
  for (const auto& one : cases) folder.add(one.name, *one.graph, {}, input_of(*one.graph, 1));
  STROBE_RUN_FOLDER(folder);
  for (const auto& one : cases) {
    SCOPED_TRACE(one.name);
    std::vector<std::string> layers, ends{one.graph->layers.front().name};
    for (const auto& layer : one.graph->layers)
      if (!is_identity(layer)) layers.push_back(layer.name);
    for (const models::LayerId id : one.graph->outputs)
      ends.push_back(id == 0 ? ends.front() + "#output" : one.graph->layer(id).name);
    if (std::set(ends.begin(), ends.end()).size() < ends.size()) continue;  // OutputsThatShareAValue has them
    const auto nodes = folder.nodes(one.name);
    EXPECT_THAT(layers, IsSubsetOf(nodes));
    EXPECT_EQ(folder.ends(one.name), ends);
    std::set<std::string> known(layers.begin(), layers.end());
    for (const auto& layer : one.graph->layers) known.insert(layer.name);
    for (const std::string& node : nodes)
      EXPECT_TRUE(known.contains(node.substr(0, node.rfind('#')))) << node << " is of no layer";
  }
}

// The same value as two outputs, an identity beside what it passes on, the input itself.
TEST(OnnxExport, OutputsThatShareAValue) {
  test::Sketch sketch({2, 3, 4});
  const auto relu = sketch.add("relu", models::Activation{models::ActivationKind::kRelu, 0});
  const auto drop = sketch.add("drop", models::Dropout{}, {relu});
  const auto same = sketch.add("same", models::Dropout{}, {sketch.input()});
  for (const auto id : {drop, relu, relu, same, sketch.input()}) sketch.output(id);
  const auto graph = sketch.finish();
  for (const auto number : {OnnxNumber::kF32, OnnxNumber::kF16}) {
    Folder folder;
    folder.add("shared", *graph, {}, input_of(*graph, 1));
    folder.add("shared.other", *graph, {.batch = 1, .number = number}, input_of(*graph, 1));
    STROBE_RUN_FOLDER(folder);
    EXPECT_LE(test::difference(folder.outputs("shared.other"), test::reference_outputs(*graph, input_of(*graph, 1))),
              number == OnnxNumber::kF32 ? 0 : 1e-3);
    EXPECT_THAT(folder.ends("shared.other"),
                ElementsAre("input", "drop", "relu", testing::StartsWith("relu#"), "same", "input#output"));
  }
}

TEST(OnnxExport, NarrowNumbersAreRoundedToTheNearest) {
  Folder folder;
  std::vector<test::OperationCase> cases;
  for (const auto& one : all_cases()) {
    const bool weighted = std::any_of(one.graph->layers.begin(), one.graph->layers.end(),
                                      [](const auto& layer) { return models::weight_count(layer.operation) > 0; });
    if (weighted) cases.push_back(one);
  }
  // Halves at their borders: subnormal, tied, just finite, too large; and what is none.
  test::Sketch edges({1, 1, 1});
  models::Convolution all;
  const Values hard{0,      -0.0F,      5.9604645e-8F, 2.9802322e-8F, 2.9802326e-8F, 6.0975552e-5F, 6.1035156e-5F,
                    65504,  65519.996F, 65520,         -70000,        1.00048828F,   1.00146484F,   3.4028235e38F,
                    1e-45F, -1e-8F,     0.1F,          0.33333334F,   2049,          2051};
  all.out_channels = static_cast<int64_t>(hard.size());
  all.weight = std::make_shared<const models::Tensor>(models::Tensor{{all.out_channels, 1, 1, 1}, hard});
  edges.add(all);
  cases.push_back({"edges", edges.finish()});
  for (const auto& one : cases) {
    folder.add(one.name, *one.graph, {}, input_of(*one.graph, 1));
    folder.add(one.name + ".half", *one.graph, {.batch = 1, .number = OnnxNumber::kF16}, input_of(*one.graph, 1));
    folder.add(one.name + ".bfloat", *one.graph, {.batch = 1, .number = OnnxNumber::kBf16}, input_of(*one.graph, 1));
  }
  STROBE_RUN_FOLDER(folder);
  cases.pop_back();
  for (const auto& one : cases)
    EXPECT_LE(test::difference(folder.outputs(one.name + ".half"), folder.outputs(one.name)), 0.02) << one.name;
}

// TensorRT for RTX shares its parser with TensorRT and compiles without a GPU: what the engine tensorrt will give to
// the latter is at least taken by the former (pip install tensorrt_rtx; tried with 1.7).
TEST(OnnxExport, TensorrtForRtxTakesEveryOperationInEveryNumber) {
  Folder folder;
  size_t files = 0;
  for (const auto& one : all_cases()) {
    const bool has_a_node = std::any_of(one.graph->layers.begin() + 1, one.graph->layers.end(),
                                        [](const auto& layer) { return !is_identity(layer); });
    if (!has_a_node) continue;
    for (const auto& [number, name] : {std::pair(OnnxNumber::kF32, ".f32"), std::pair(OnnxNumber::kF16, ".f16"),
                                       std::pair(OnnxNumber::kBf16, ".bf16")}) {
      folder.add(one.name + name, *one.graph, {.batch = 2, .number = number}, {});
      ++files;
    }
  }
  const std::string said = folder.run_tensorrt();
  if (said == "no module") GTEST_SKIP() << "the build's Python cannot import tensorrt_rtx";
  EXPECT_EQ(said, std::to_string(files) + " built\n");
}

TEST(OnnxExport, OnnxRuntimeRunsEveryBuiltInNetwork) {
  std::shared_ptr<Engine> engine;
  for (const auto& spec : test::engine_specs()) {
    auto opened = engine == nullptr ? open_engine(spec) : Result<std::shared_ptr<Engine>>(engine);
    if (opened) engine = *opened;
  }
  if (engine == nullptr) GTEST_SKIP() << "no engine is built";
  for (const std::string& name : models::builtin_names()) {
    SCOPED_TRACE(name);
    auto opened = models::open_graph(name, {});
    ASSERT_TRUE(opened) << opened.error().to_string();
    const auto graph = std::make_shared<const models::Graph>(*std::move(opened));
    const Values input = input_of(*graph, 1);
    Folder folder;
    folder.add(name, *graph, {.batch = 0}, input);
    STROBE_RUN_FOLDER(folder);
    const auto network = engine->load(graph, {});
    ASSERT_TRUE(network) << network.error().to_string();
    const auto ours = test::run_once(**network, input);
    ASSERT_TRUE(ours) << ours.error().to_string();
    // Of the largest value: seeded weights let some outputs nearly cancel.
    ASSERT_EQ(folder.outputs(name).size(), ours->size());
    for (size_t i = 0; i < ours->size(); ++i) {
      double scale = 0;
      for (const float value : (*ours)[i]) scale = std::max(scale, std::abs(double{value}));
      EXPECT_LE(test::difference(folder.outputs(name)[i], (*ours)[i]) / std::max(1.0, scale), 1e-4);
    }
  }
}

// OpenCV 4.6 reads files, too, but only the Clip of opset 6, pools without counted padding and outputs in an order of
// its own.
TEST(OnnxExport, OpenvinoReadsWhatWasWritten) {
  const auto engine = open_engine("openvino");
  if (!engine) GTEST_SKIP() << "engine openvino is not built";
  const test::ScratchFolder scratch;
  const auto path = scratch / "one.onnx";
  for (const auto& one : all_cases()) {
    SCOPED_TRACE(one.name);
    const auto file = models::write_onnx(*one.graph, {.batch = 0});
    ASSERT_TRUE(file);
    test::write_bytes(path, *file);
    const auto network = (*engine)->load(path, {.batch = 2});
    ASSERT_TRUE(network) << network.error().to_string();
    const Values input = input_of(*one.graph, 2);
    const auto outputs = test::run_once(**network, input);
    ASSERT_TRUE(outputs) << outputs.error().to_string();
    EXPECT_LE(test::difference(*outputs, test::reference_outputs(*one.graph, input)), 5e-6);
  }
}

}  // namespace
}  // namespace strobe::engines
