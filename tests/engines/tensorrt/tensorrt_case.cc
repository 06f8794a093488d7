#include "engines/tensorrt/tensorrt_case.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "engines/loader.h"

namespace strobe::test::tensorrt {

using namespace engines;

namespace {
const std::string kStandIns = STROBE_TEST_TENSORRT;  // folder of the libraries
}  // namespace

std::string library_path() {
  return kStandIns + "/libnvinfer.so." + std::to_string(STROBE_TEST_TENSORRT_MAJOR);
}

std::string in_process(const std::vector<Setting>& settings, const std::function<std::string()>& tell) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("STROBE_CUDA_LIBRARY", library_path().c_str(), 1);
    ::setenv("STROBE_TENSORRT_LIBRARY", kStandIns.c_str(), 1);
    ::setenv("STROBE_TENSORRT_CACHE", "off", 1);
    for (const Setting& one : settings) ::setenv(one.name, one.value.c_str(), 1);
    const std::string text = tell();
    const bool written = ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    said.append(buffer, static_cast<size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? said : "the process ended with status " + std::to_string(status) + "; it said: " + said;
}

LoadOptions on_gpu(int64_t batch) {
  LoadOptions options;
  options.device = "cuda:0";
  options.batch = batch;
  return options;
}

std::string with_network(const ModelSource& source, const LoadOptions& options,
                         const std::function<std::string(Network&)>& use) {
  auto engine = open_engine("tensorrt");
  if (!engine) return "no engine: " + engine.error().to_string();
  auto network = (*engine)->load(source, options);
  if (!network) return "exit " + std::to_string(network.error().exit_code()) + ": " + network.error().to_string();
  return use(**network);
}
std::string load_only(const ModelSource& source, const LoadOptions& options) {
  return with_network(source, options, [](Network&) { return std::string("loaded"); });
}

std::string wrong_values(const Network& network, const Values& input, const std::vector<Values>& outputs) {
  if (outputs.size() != network.outputs().size()) return "another number of outputs";
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k].size() != static_cast<size_t>(network.outputs()[k].elements())) return "another size";
    for (size_t i = 0; i < outputs[k].size(); ++i)
      if (outputs[k][i] != 2 * input[i % input.size()] + static_cast<float>(k))
        return "output " + std::to_string(k) + " at " + std::to_string(i) + " is " + std::to_string(outputs[k][i]);
  }
  return "right";
}
std::string run_and_check(Network& network) {
  auto session = network.create_session();
  if (!session) return session.error().to_string();
  std::string all;
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    const Values input = test::random_values(network.inputs()[0].elements(), seed);
    const auto outputs = test::run_on(**session, network, input);
    if (!outputs) return "exit " + std::to_string(outputs.error().exit_code()) + ": " + outputs.error().to_string();
    const std::string found = wrong_values(network, input, *outputs);
    if (found != "right") return found;
  }
  return "right";
}

std::vector<Kernel> kernels_of(Network& network) {
  return network.kernels().value_or(std::vector<Kernel>{});
}

std::string fact(const Network& network, const std::string& key) {
  for (const auto& [name, value] : network.facts())
    if (name == key) return value;
  return "none";
}

GraphPtr small_graph() {
  Sketch sketch({3, 8, 8});
  models::Convolution convolution;
  convolution.out_channels = 4;
  convolution.kernel_h = convolution.kernel_w = 3;
  convolution.pad_h = convolution.pad_w = 1;
  const auto first = sketch.add("first", convolution);
  sketch.add("first.bn", models::BatchNorm{});
  const auto left = sketch.add("first.leaky", models::Activation{models::ActivationKind::kLeaky, 0.1F});
  sketch.add("second", convolution);
  const auto right = sketch.add("second.swish", models::Activation{models::ActivationKind::kSwish, 0});
  sketch.add("sum", models::Add{}, {left, right});
  sketch.add("pool", models::Pool{
                         .kind = models::Pool::Kind::kMax, .kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2});
  sketch.add("drop", models::Dropout{});
  sketch.output(sketch.last());
  sketch.output(first);
  return sketch.finish();
}

}  // namespace strobe::test::tensorrt
