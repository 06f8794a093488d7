// The built-in classifiers against torchvision's: the same weights, the same answer, on every engine.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <ostream>

#include "base/file.h"
#include "engines/engine_case.h"
#include "engines/loader.h"
#include "models/cost.h"
#include "models/model.h"
#include "models/safetensors.h"

namespace strobe::engines {
namespace {

namespace fs = std::filesystem;
using test::Values;

struct Case {
  const char* network;
  int64_t side;
};
void PrintTo(const Case& one, std::ostream* out) {
  *out << one.network << " at " << one.side;
}

class Torchvision : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("strobe-torchvision-" + std::string(GetParam().network) + "-" +
                                           std::to_string(GetParam().side) + "-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // What torchvision_reference.py prints and leaves in folder_; its exit code.
  int ask_torchvision(std::string& printed) const {
    const std::string command = std::string(STROBE_TEST_PYTHON) + " -B " + STROBE_TEST_TORCHVISION + " " +
                                GetParam().network + " " + std::to_string(GetParam().side) + " " + folder_.string();
    std::FILE* pipe = ::popen(command.c_str(), "r");
    if (!pipe) return -1;
    char part[256];
    while (std::fgets(part, sizeof part, pipe)) printed += part;
    const int status = ::pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  fs::path folder_;
};

TEST_P(Torchvision, SameParametersSameAnswers) {
  std::string printed;
  const int code = ask_torchvision(printed);
  if (code == 77) GTEST_SKIP() << printed;
  ASSERT_EQ(code, 0) << printed;

  auto opened = models::open_graph(
      GetParam().network,
      {.weights = folder_ / "weights.safetensors", .width = GetParam().side, .height = GetParam().side});
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_TRUE(opened->trained);
  EXPECT_EQ(models::graph_cost(*opened).parameters, std::stoll(printed));
  const auto graph = std::make_shared<const models::Graph>(*std::move(opened));
  const auto bytes = read_file(folder_ / "io.safetensors");
  ASSERT_TRUE(bytes);
  const auto io = models::read_safetensors(*bytes);
  ASSERT_TRUE(io) << io.error().to_string();
  const Values& input = io->tensors.at("input").values;
  const std::vector<Values> expected = {io->tensors.at("output").values};

  size_t engines = 0;
  for (const auto& spec : test::engine_specs()) {
    const auto engine = open_engine(spec);
    if (!engine) continue;
    const auto network = (*engine)->load(graph, {.batch = 2});
    ASSERT_TRUE(network) << spec << ": " << network.error().to_string();
    const auto outputs = test::run_once(**network, input);
    ASSERT_TRUE(outputs) << spec << ": " << outputs.error().to_string();
    const double found = test::difference(*outputs, expected);
    EXPECT_LE(found, 1e-3) << spec;
    std::string name = "difference_" + spec;
    for (char& c : name) c = c == ':' ? '_' : c;
    RecordProperty(name, std::to_string(found * 1e6) + "e-6");
    ++engines;
  }
  if (engines == 0) GTEST_SKIP() << "no engine is built";
}

// 160 pixels: windows that ceil mode leaves partly outside.
INSTANTIATE_TEST_SUITE_P(Classifiers, Torchvision,
                         testing::Values(Case{"resnet18", 224}, Case{"resnet18", 160}, Case{"resnet50", 224},
                                         Case{"mobilenet_v2", 224}, Case{"mnasnet1_0", 224}, Case{"squeezenet1_1", 224},
                                         Case{"squeezenet1_1", 160}, Case{"googlenet", 224}, Case{"googlenet", 160},
                                         Case{"vgg16", 224}),
                         [](const auto& which) {
                           return std::string(which.param.network) + "_" + std::to_string(which.param.side);
                         });

}  // namespace
}  // namespace strobe::engines
