// Pictures on their way through the stand-ins for TensorRT and the driver: what is sampled there is what a session
// reads, in the order of the streams. What the sampling computes is in prep_onnx_test.cc.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/file.h"
#include "engines/tensorrt/tensorrt_case.h"
#include "support/test_data.h"

namespace strobe::engines {
namespace {

using namespace test::tensorrt;
using testing::AllOf;
using testing::HasSubstr;

// rows x bytes of grey, for an input of this size.
PictureBytes picture_of(int64_t rows, int64_t bytes, int64_t height, int64_t width, uint8_t first) {
  const auto taps = [](int64_t count) {
    const auto size = static_cast<size_t>(count);
    return SampleTaps{std::vector<int64_t>(size), std::vector<int64_t>(size), std::vector<float>(size)};
  };
  PictureSampling sampling;
  sampling.width = sampling.placed_width = width;
  sampling.height = sampling.placed_height = height;
  sampling.planes = {{rows, bytes}};
  for (auto& component : sampling.components)
    component = {.plane = 0,
                 .offset = 0,
                 .step = 1,
                 .width = bytes,
                 .height = rows,
                 .columns = taps(width),
                 .rows = taps(height)};
  constexpr int64_t kBetween = 3;  // bytes that are no picture's
  const auto memory = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>(rows * (bytes + kBetween)), 255);
  for (int64_t i = 0; i < rows * bytes; ++i)
    (*memory)[static_cast<size_t>(i / bytes * (bytes + kBetween) + i % bytes)] = static_cast<uint8_t>(first + i);
  return {.sampling = std::make_shared<const PictureSampling>(std::move(sampling)),
          .planes = {{memory->data(), bytes + kBetween}},
          .owner = memory};
}

// One input of 3 x height x width, and a pool behind a convolution.
test::GraphPtr graph_of(int64_t height, int64_t width) {
  test::Sketch sketch({3, height, width});
  models::Convolution convolution;
  convolution.out_channels = 2;
  sketch.add("conv", convolution);
  sketch.output(sketch.last());
  return sketch.finish();
}

// The stand-in samples byte i of the picture (from its beginning again) into value i, and the network doubles it.
std::string compare(const std::vector<test::Values>& outputs, const std::vector<int>& firsts, int64_t picture_bytes,
                    int64_t item) {
  if (outputs.size() != 1) return "another number of outputs";
  const auto inputs = static_cast<int64_t>(firsts.size()) * item;
  for (size_t i = 0; i < outputs[0].size(); ++i) {
    const auto at = static_cast<int64_t>(i) % inputs;
    const auto byte = static_cast<uint8_t>(firsts[static_cast<size_t>(at / item)] + at % item % picture_bytes);
    if (outputs[0][i] != 2.0F * static_cast<float>(byte))
      return "value " + std::to_string(i) + " is " + std::to_string(outputs[0][i]);
  }
  return "right";
}

Result<std::vector<test::Values>> run_prepared(Session& session, const Network& network, const DeviceInput& input) {
  std::vector<test::Values> outputs;
  std::vector<float*> at;
  for (const auto& output : network.outputs()) outputs.emplace_back(static_cast<size_t>(output.elements()));
  for (auto& output : outputs) at.push_back(output.data());
  STROBE_TRY(session.run_prepared(input, at));
  return outputs;
}

int count(const char* name) {
  void* const library = ::dlopen(library_path().c_str(), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<int (*)()>(::dlsym(library, name))();
}

TEST(TensorrtPrep, ASessionReadsWhatWasSampled) {
  const std::string said = in_process({}, [] {
    std::string text = with_network(graph_of(7, 9), on_gpu(3), [](Network& network) {  // items at no multiple of 256
      std::string found;
      auto session = network.create_session();
      auto preprocessor = network.create_preprocessor({});
      if (!session || !preprocessor) return std::string("nothing to run");
      auto first = (*preprocessor)->create_input(), second = (*preprocessor)->create_input();
      if (!first || !second) return std::string("no input");
      for (int i = 0; i < 3; ++i)
        for (const auto& [input, begin] : {std::pair{&*first, 10}, {&*second, 100}}) {
          const auto put =
              (*preprocessor)->put(picture_of(5, 8, 7, 9, static_cast<uint8_t>(begin + 50 * i)), i, **input);
          if (!put) return put.error().to_string();
        }  // the pictures may go
      for (const auto& [input, begin] : {std::pair{&*first, 10}, {&*second, 100}, {&*first, 10}}) {
        const auto outputs = run_prepared(**session, network, **input);
        if (!outputs) return outputs.error().to_string();
        found += compare(*outputs, {begin, begin + 50, begin + 100}, 40, 3 * 7 * 9) + " ";
      }
      // And from the host again.
      const test::Values values = test::random_values(network.inputs()[0].elements(), 4);
      const auto outputs = test::run_on(**session, network, values);
      found += outputs ? wrong_values(network, values, *outputs) : outputs.error().to_string();
      const auto empty = (*preprocessor)->create_input();  // zeros, which nobody waited for
      if (!empty) return std::string("no input");
      const auto zeros = run_prepared(**session, network, **empty);
      for (const float value : zeros ? (*zeros)[0] : test::Values{1}) found += value == 0 ? "" : " not zero";
      return found;
    });
    void* const library = ::dlopen(library_path().c_str(), RTLD_NOW | RTLD_NOLOAD);
    text += std::string("; held: ") + reinterpret_cast<const char* (*)()>(::dlsym(library, "fake_cuda_held"))();
    return text + ", " + std::to_string(count("fake_tensorrt_objects")) + " objects";
  });
  EXPECT_EQ(said, "right right right right; held: 0 on the device, 0 pinned, 0 streams, 0 objects");
}

TEST(TensorrtPrep, TheHostIsAFewPicturesAheadAtMost) {
  const std::string said = in_process({}, [] {
    return with_network(graph_of(16, 16), on_gpu(), [](Network& network) {
      auto preprocessor = network.create_preprocessor({});
      auto input = (*preprocessor)->create_input();
      const PictureBytes picture = picture_of(4, 8, 16, 16, 1);
      std::string waits;
      for (int i = 0; i < 6; ++i) {
        if (auto put = (*preprocessor)->put(picture, 0, **input); !put) return put.error().to_string();
        waits += std::to_string(count("fake_cuda_host_waits")) + " ";
      }
      return waits;
    });
  });
  EXPECT_EQ(said, "0 0 0 0 1 1 ");  // the first wait is for all that lay before it in the stream
}

TEST(TensorrtPrep, EachKindOfPictureIsBuiltOnceAndKept) {
  const test::ScratchFolder folder;
  const auto builds = [&] {
    return in_process(
        {{"STROBE_TENSORRT_CACHE", (folder / "cache").string()}, {"FAKE_TRT_BUILDS", (folder / "builds").string()}},
        [&] {
          return with_network(graph_of(16, 16), on_gpu(), [&](Network& network) {
            auto preprocessor = network.create_preprocessor({.smoothing_sigma = 0.8});
            auto input = (*preprocessor)->create_input();
            const PictureBytes one = picture_of(4, 8, 16, 16, 1), other = picture_of(6, 8, 16, 16, 1);
            for (const auto* picture : {&one, &other, &one, &other})
              if (auto put = (*preprocessor)->put(*picture, 0, **input); !put) return put.error().to_string();
            return read_file(folder / "builds").value_or(std::string("none"));
          });
        });
  };
  EXPECT_EQ(builds(), "bbb");  // the network, and two kinds
  EXPECT_EQ(builds(), "bbb");
}

TEST(TensorrtPrep, ManyKindsTakeTheirPlacesInTurns) {
  const std::string said = in_process({}, [] {
    std::string text = with_network(graph_of(16, 16), on_gpu(), [](Network& network) {
      auto session = network.create_session();
      auto preprocessor = network.create_preprocessor({});
      auto input = (*preprocessor)->create_input();
      for (int kind = 1; kind <= 20; ++kind) {
        const auto put = (*preprocessor)->put(picture_of(kind, 2, 16, 16, 7), 0, **input);
        if (!put) return put.error().to_string();
      }
      const auto outputs = run_prepared(**session, network, **input);
      return outputs ? compare(*outputs, {7}, 40, 3 * 16 * 16) : outputs.error().to_string();
    });
    return text + ", " + std::to_string(count("fake_tensorrt_objects")) + " objects";
  });
  EXPECT_EQ(said, "right, 0 objects");
}

TEST(TensorrtPrep, WhatDoesNotFitIsRefused) {
  const auto said = [](const std::vector<Setting>& settings, const test::GraphPtr& graph, const auto& use) {
    return in_process(settings, [&] {
      return with_network(graph, on_gpu(2), [&](Network& network) -> std::string {
        auto preprocessor = network.create_preprocessor({});
        if (!preprocessor)
          return "exit " + std::to_string(preprocessor.error().exit_code()) + ": " + preprocessor.error().to_string();
        const Result<void> done = use(network, **preprocessor);
        return done ? "done" : "exit " + std::to_string(done.error().exit_code()) + ": " + done.error().to_string();
      });
    });
  };
  const auto put = [](int64_t item, int64_t height) {
    return [=](Network&, Preprocessor& preprocessor) -> Result<void> {
      STROBE_ASSIGN(const auto input, preprocessor.create_input());
      return preprocessor.put(picture_of(4, 8, height, 16, 1), item, *input);
    };
  };
  EXPECT_EQ(said({}, graph_of(16, 16), put(1, 16)), "done");
  EXPECT_THAT(said({}, graph_of(16, 16), put(2, 16)), HasSubstr("exit 3: tensorrt: a picture for an input of another"));
  EXPECT_THAT(said({}, graph_of(16, 16), put(0, 12)), HasSubstr("placed in an input of another size"));
  EXPECT_THAT(said({{"FAKE_CUDA_MEMORY", "100"}}, graph_of(16, 16), put(0, 16)),
              HasSubstr("exit 2: out of memory on cuda:0: 0.0 MB for a network's input"));
  EXPECT_THAT(said({{"FAKE_CUDA_MEMORY", "6200"}}, graph_of(16, 16), put(0, 16)),
              HasSubstr("exit 2: out of memory on cuda:0: 0.0 MB for a picture"));
  EXPECT_THAT(said({{"FAKE_TRT_REFUSE", "Gather"}}, graph_of(16, 16), put(0, 16)),
              AllOf(HasSubstr("exit 2: preprocessing: TensorRT's ONNX parser, node"), HasSubstr("(Gather)")));
  EXPECT_THAT(said({{"FAKE_TRT_NO_CONTEXT", "1"}}, graph_of(16, 16), put(0, 16)),
              HasSubstr("exit 3: TensorRT could not make an execution context for preprocessing"));
  EXPECT_THAT(said({{"FAKE_TRT_NO_RUN", "1"}}, graph_of(16, 16), put(0, 16)),
              HasSubstr("exit 3: TensorRT could not preprocess: IExecutionContext::enqueueV3"));
  test::Sketch grey({1, 8, 8});
  grey.add("conv", models::Convolution{.out_channels = 2});
  grey.output(grey.last());
  EXPECT_THAT(said({}, grey.finish(), put(0, 16)), HasSubstr("exit 2: the network's input is not one picture"));
}

}  // namespace
}  // namespace strobe::engines
