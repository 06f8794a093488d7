// Networks in files that engines read themselves: .onnx, .xml, .pt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "engines/engine_case.h"
#include "engines/loader.h"
#include "engines/onnx_file.h"
#include "support/test_data.h"

namespace strobe::engines {
namespace {

using test::Values;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Values kWeight{0.5F, -1, 2, 0.25F, -0.75F, 1};
const Values kBias{0.1F, -0.2F, 0.3F};

// What the file computes, for `items` pictures of 2 x pixels.
Values expected_of(const Values& input, size_t items, size_t pixels) {
  Values result;
  for (size_t n = 0; n < items; ++n) {
    for (size_t o = 0; o < 3; ++o) {
      for (size_t i = 0; i < pixels; ++i) {
        const float* item = input.data() + n * 2 * pixels + i;
        result.push_back(std::max(0.0F, kWeight[2 * o] * item[0] + kWeight[2 * o + 1] * item[pixels] + kBias[o]));
      }
    }
  }
  return result;
}

// Runs a line of the build's Python with `imports`; skips where it has them not.
#define STROBE_RUN_PYTHON(imports, script)                                                  \
  do {                                                                                      \
    const auto ran = run_python(imports, script);                                           \
    if (ran == "no module") GTEST_SKIP() << "the build's Python cannot import " << imports; \
    ASSERT_EQ(ran, "");                                                                     \
  } while (false)

std::string run_python(const std::string& imports, const std::string& script) {
  const test::ScratchFolder scratch;
  const auto call = [&](const std::string& body) {
    test::write_bytes(scratch / "script.py", body);
    const std::string command = std::string(STROBE_TEST_PYTHON) + " " + (scratch / "script.py").string() + " > " +
                                (scratch / "log").string() + " 2>&1";
    return std::system(command.c_str());
  };
  if (std::string(STROBE_TEST_PYTHON).empty()) return "no module";
  if (call("import " + imports + "\n") != 0) return "no module";
  if (call("import " + imports + "\n" + script) == 0) return "";
  std::ifstream log(scratch / "log");
  return {std::istreambuf_iterator<char>(log), std::istreambuf_iterator<char>()};
}

class Files : public test::EachEngine {
 protected:
  bool reads(const std::string& format) const {
    const auto formats = engine().file_formats();
    return std::find(formats.begin(), formats.end(), format) != formats.end();
  }
  std::string failure(const std::filesystem::path& path, const LoadOptions& options, ErrorKind kind) const {
    const auto network = engine().load(path, options);
    if (network) return "loaded";
    EXPECT_EQ(network.error().kind(), kind) << network.error().to_string();
    const std::string text = network.error().to_string();
    EXPECT_THAT(text, AllOf(HasSubstr(path.filename().string()), Not(HasSubstr("\n"))));
    return text;
  }
  // Loads the file and checks its ends and what it computes.
  void check(const std::filesystem::path& path, const LoadOptions& options, int64_t height = 3, int64_t width = 4) {
    const auto network = engine().load(path, options);
    ASSERT_TRUE(network) << network.error().to_string();
    ASSERT_EQ((*network)->inputs().size(), 1U);
    ASSERT_EQ((*network)->outputs().size(), 1U);
    EXPECT_THAT((*network)->inputs()[0].shape, ElementsAre(options.batch, 2, height, width));
    EXPECT_THAT((*network)->outputs()[0].shape, ElementsAre(options.batch, 3, height, width));
    EXPECT_FALSE((*network)->inputs()[0].name.empty());
    EXPECT_FALSE((*network)->outputs()[0].name.empty());
    const auto input = test::random_values((*network)->inputs()[0].elements(), 1);
    const auto outputs = test::run_once(**network, input);
    ASSERT_TRUE(outputs) << outputs.error().to_string();
    const auto expected = expected_of(input, static_cast<size_t>(options.batch), static_cast<size_t>(height * width));
    EXPECT_LE(test::difference(outputs->front(), expected), options.precision == Precision::kF32 ? 1e-6 : 4e-2);
  }
  const test::ScratchFolder scratch_;
};

TEST_P(Files, OnnxComputesWhatItSays) {
  if (!reads(".onnx")) GTEST_SKIP() << GetParam() << " does not read .onnx";
  const auto path = scratch_ / "small.onnx";
  test::write_bytes(path, test::onnx_bytes(1, false, kWeight, kBias));
  for (const int64_t batch : {1, 3}) check(path, {.batch = batch, .input_shape = {2, 3, 4}});
  const auto has = engine().precisions();
  if (std::find(has.begin(), has.end(), Precision::kBf16) != has.end()) {
    check(path, {.precision = Precision::kBf16, .input_shape = {2, 3, 4}});
  }
}

TEST_P(Files, OnnxWithAnOpenBatchTakesTheOneAskedFor) {
  if (!reads(".onnx")) GTEST_SKIP() << GetParam() << " does not read .onnx";
  const auto path = scratch_ / "open.onnx";
  test::write_bytes(path, test::onnx_bytes(0, false, kWeight, kBias));
  for (const int64_t batch : {1, 3}) check(path, {.batch = batch, .input_shape = {2, 3, 4}});
}

TEST_P(Files, OnnxWithAnOpenSizeNeedsOne) {
  if (!reads(".onnx")) GTEST_SKIP() << GetParam() << " does not read .onnx";
  const auto path = scratch_ / "open.onnx";
  test::write_bytes(path, test::onnx_bytes(0, true, kWeight, kBias));
  EXPECT_THAT(failure(path, {}, ErrorKind::kUsage), HasSubstr("shape"));
  check(path, {.batch = 2, .input_shape = {2, 5, 7}}, 5, 7);
}

TEST_P(Files, AShapeThatTheFileCannotHaveIsRefused) {
  if (!reads(".onnx")) GTEST_SKIP() << GetParam() << " does not read .onnx";
  const auto path = scratch_ / "small.onnx";
  test::write_bytes(path, test::onnx_bytes(0, true, kWeight, kBias));
  const auto channels = engine().load(path, {.input_shape = {5, 3, 4}});
  ASSERT_FALSE(channels) << "the convolution takes two channels";
  EXPECT_THAT(channels.error().to_string(), AllOf(HasSubstr("small.onnx"), Not(HasSubstr("\n"))));
  const auto extents = engine().load(path, {.input_shape = {2, 3}});
  ASSERT_FALSE(extents);
  EXPECT_THAT(extents.error().to_string(), AllOf(HasSubstr("small.onnx"), Not(HasSubstr("\n"))));
}

TEST_P(Files, Int8NeedsAQuantisedFile) {
  const auto has = engine().precisions();
  if (std::find(has.begin(), has.end(), Precision::kInt8) == has.end()) GTEST_SKIP() << GetParam() << " has no i8";
  const auto path = scratch_ / "small.onnx";
  test::write_bytes(path, test::onnx_bytes(1, false, kWeight, kBias));
  EXPECT_THAT(failure(path, {.precision = Precision::kInt8}, ErrorKind::kUnsupported), HasSubstr("quantise"));
}

TEST_P(Files, GarbageOfEveryFormatIsNamed) {
  const std::string whole = test::onnx_bytes(1, false, kWeight, kBias);
  std::string noise(4096, '\0');
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * 2654435761U >> 13);
  const std::map<std::string, std::string> contents = {
      {"empty", ""}, {"noise", noise}, {"text", "this is no network\n"}, {"cut", whole.substr(0, whole.size() / 2)}};
  for (const std::string& format : engine().file_formats()) {
    for (const auto& [name, bytes] : contents) {
      SCOPED_TRACE(name + format);
      const auto path = scratch_ / (name + format);
      test::write_bytes(path, bytes);
      failure(path, {.input_shape = {2, 3, 4}}, ErrorKind::kBadData);
    }
    failure(scratch_ / ("none" + format), {.input_shape = {2, 3, 4}}, ErrorKind::kNotFound);
    std::filesystem::create_directory(scratch_ / ("folder" + format));
    failure(scratch_ / ("folder" + format), {.input_shape = {2, 3, 4}}, ErrorKind::kBadData);
  }
  test::write_bytes(scratch_ / "model.tflite", "anything");
  EXPECT_THAT(failure(scratch_ / "model.tflite", {}, ErrorKind::kUnsupported),
              HasSubstr(engine().file_formats().front()));
}

TEST_P(Files, IrThatOpenvinoExportedRunsWithAnyBatch) {
  if (!reads(".xml")) GTEST_SKIP() << GetParam() << " does not read .xml";
  const auto onnx = scratch_ / "small.onnx";
  test::write_bytes(onnx, test::onnx_bytes(1, false, kWeight, kBias));
  const auto xml = scratch_ / "small.xml";
  STROBE_RUN_PYTHON("openvino", "model = openvino.Core().read_model('" + onnx.string() + "')\n" +
                                    "openvino.save_model(model, '" + xml.string() + "', compress_to_fp16=False)\n");
  for (const int64_t batch : {1, 4}) check(xml, {.batch = batch});
  EXPECT_THAT(failure(xml, {.input_shape = {2, 3}}, ErrorKind::kUsage), HasSubstr("extents"));
  // Its weights are a file of their own.
  std::filesystem::resize_file(scratch_ / "small.bin", 8);
  failure(xml, {}, ErrorKind::kBadData);
  std::filesystem::remove(scratch_ / "small.bin");
  failure(xml, {}, ErrorKind::kBadData);
}

TEST_P(Files, AQuantisedFileRunsInInt8) {
  const auto has = engine().precisions();
  if (!reads(".xml")) GTEST_SKIP() << GetParam() << " does not read .xml";
  if (std::find(has.begin(), has.end(), Precision::kInt8) == has.end()) GTEST_SKIP() << GetParam() << " has no i8";
  const auto xml = scratch_ / "quantised.xml";
  STROBE_RUN_PYTHON("openvino", R"(
import numpy as np
from openvino import opset13 as op
def quantised(x, low, high, levels):
    ends = [op.constant(np.float32(v)) for v in (low, high, low, high)]
    return op.fake_quantize(x, *ends, levels)
x = op.parameter([1, 2, 3, 4], np.float32, 'picture')
w = np.array([0.5, -1, 2, 0.25, -0.75, 1], np.float32).reshape(3, 2, 1, 1)
b = np.array([0.1, -0.2, 0.3], np.float32).reshape(1, 3, 1, 1)
y = op.convolution(quantised(x, -1, 127 / 128, 256), quantised(op.constant(w), -2, 2, 255), [1, 1], [0, 0], [0, 0], [1, 1],
                   name='mix')
)" + ("openvino.save_model(openvino.Model([op.relu(op.add(y, b))], [x]), '" + xml.string() +
      "', compress_to_fp16=False)\n"));
  check(xml, {.precision = Precision::kInt8});
  const auto network = engine().load(xml, {.precision = Precision::kInt8});
  ASSERT_TRUE(network);
  const auto kernels = (*network)->kernels();
  ASSERT_TRUE(kernels);
  EXPECT_TRUE(std::any_of(kernels->begin(), kernels->end(), [](const Kernel& kernel) {
    return kernel.type == "Convolution" && kernel.implementation.find("8") != std::string::npos;
  })) << "no convolution runs on integers of eight bits";
}

TEST_P(Files, AFilesKernelsBearItsOwnNames) {
  if (!reads(".onnx")) GTEST_SKIP() << GetParam() << " does not read .onnx";
  const auto path = scratch_ / "small.onnx";
  test::write_bytes(path, test::onnx_bytes(1, false, kWeight, kBias));
  const auto network = engine().load(path, {.profile_layers = true, .input_shape = {2, 3, 4}});
  ASSERT_TRUE(network) << network.error().to_string();
  const auto kernels = (*network)->kernels();
  ASSERT_TRUE(kernels);
  std::string layers;
  for (const auto& kernel : *kernels) {
    for (const auto& layer : kernel.layers) layers += layer + " ";
  }
  EXPECT_THAT(layers, HasSubstr("mix"));
  const auto session = (*network)->create_session();
  ASSERT_TRUE(session);
  ASSERT_TRUE(test::run_on(**session, **network, test::random_values(24, 1)));
  const auto times = (*session)->kernel_times();
  ASSERT_TRUE(times);
  EXPECT_FALSE(times->empty());
}

const char* const kModule = R"(
class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = torch.nn.Conv2d(2, 3, 1)
        self.mix.weight.data = torch.tensor([0.5, -1, 2, 0.25, -0.75, 1]).reshape(3, 2, 1, 1)
        self.mix.bias.data = torch.tensor([0.1, -0.2, 0.3])
    def forward(self, x):
        return torch.relu(self.mix(x))
class Branches(Small):
    def forward(self, x):
        y = self.mix(x)
        if bool(y.sum() > 0):
            y = y + 0
        return torch.relu(y)
class Pair(Small):
    def forward(self, x):
        y = self.mix(x)
        return {'a': y}
)";

TEST_P(Files, TorchScriptComputesWhatItSays) {
  if (!reads(".pt")) GTEST_SKIP() << GetParam() << " does not read .pt";
  const auto path = scratch_ / "small.pt";
  STROBE_RUN_PYTHON("torch",
                    kModule + ("torch.jit.script(Small()).save('" + path.string() + "')\n") +
                        ("torch.jit.script(Branches()).save('" + (scratch_ / "branches.pt").string() + "')\n") +
                        ("torch.jit.script(Pair()).save('" + (scratch_ / "pair.pt").string() + "')\n") +
                        ("torch.save({'w': torch.ones(3)}, '" + (scratch_ / "weights.pt").string() + "')\n"));
  for (const int64_t batch : {1, 3}) {
    check(path, {.batch = batch, .input_shape = {2, 3, 4}});
    check(path, {.batch = batch, .profile_layers = true, .input_shape = {2, 5, 7}}, 5, 7);
  }
  const auto has = engine().precisions();
  if (std::find(has.begin(), has.end(), Precision::kBf16) != has.end()) {
    check(path, {.precision = Precision::kBf16, .input_shape = {2, 3, 4}});
  }
  EXPECT_THAT(failure(path, {}, ErrorKind::kUsage), HasSubstr("shape"));
  failure(path, {.input_shape = {5, 3, 4}}, ErrorKind::kEngine);
  check(scratch_ / "branches.pt", {.profile_layers = true, .input_shape = {2, 3, 4}});
  EXPECT_THAT(failure(scratch_ / "pair.pt", {.input_shape = {2, 3, 4}}, ErrorKind::kUnsupported),
              HasSubstr("something else than tensors"));
  failure(scratch_ / "weights.pt", {.input_shape = {2, 3, 4}}, ErrorKind::kBadData);
}
STROBE_FOR_EACH_ENGINE(Files);

}  // namespace
}  // namespace strobe::engines
