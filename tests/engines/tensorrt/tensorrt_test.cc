// The tensorrt plugin on stand-ins for TensorRT and the driver.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <thread>

#include "engines/onnx_file.h"
#include "engines/tensorrt/tensorrt_case.h"
#include "support/test_data.h"

namespace strobe::engines {
namespace {

using namespace test::tensorrt;
using test::Values;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Tensorrt, AGraphRunsInSessionsOfItsOwnStreams) {
  const std::string said = in_process({}, [] {
    LoadOptions options = on_gpu(2);
    options.priority = 1;
    options.sessions = 2;
    std::string text = with_network(small_graph(), options, [](Network& network) {
      std::string found[2];
      std::thread other([&] { found[1] = run_and_check(network); });
      found[0] = run_and_check(network);
      other.join();
      std::ostringstream ends;
      for (const auto* side : {&network.inputs(), &network.outputs()})
        for (const TensorInfo& info : *side) ends << info.name << " " << info.elements() << ", ";
      return found[0] + " " + found[1] + "; " + ends.str() + fact(network, "device") + ", " +
             fact(network, "device_name") + ", tf32 " + fact(network, "tf32") + ", " + fact(network, "build_warnings");
    });
    void* const library = ::dlopen(library_path().c_str(), RTLD_NOW | RTLD_NOLOAD);
    const auto ask = [library](const char* name) {
      return std::string(reinterpret_cast<const char* (*)()>(::dlsym(library, name))());
    };
    text += "; streams of priority " + ask("fake_cuda_priorities") + "; held: " + ask("fake_cuda_held");
    return text + ", " + std::to_string(reinterpret_cast<int (*)()>(::dlsym(library, "fake_tensorrt_objects"))()) +
           " objects";
  });
  EXPECT_EQ(said,
            "right right; input 384, drop 128, first 512, cuda:0, Stand-in, tf32 off, 1, the first: a weight is small; "
            "streams of priority -1 -1 ; held: 0 on the device, 0 pinned, 0 streams, 0 objects");
}

TEST(Tensorrt, KernelsAndTheLayersThatEndedInThem) {
  const std::string said = in_process({}, [] {
    return with_network(small_graph(), on_gpu(), [](Network& network) {
      std::ostringstream text;
      for (const Kernel& kernel : kernels_of(network)) {
        text << kernel.name << " (" << kernel.type << "):";
        for (const auto& layer : kernel.layers) text << " " << layer;
        text << "\n";
      }
      return text.str();
    });
  });
  // The swish is two nodes, "second.swish#sigmoid" and "second.swish".
  EXPECT_EQ(said,
            "first + first.bn + first.leaky (CaskConvolution): first first.bn first.leaky\n"
            "second (CaskConvolution): second\n"
            "PWN(second.swish#sigmoid) (Sigmoid): second.swish\n"
            "PWN(second.swish) (Mul): second.swish\n"
            "PWN(sum) (Add): sum\n"
            "PWN(pool) (MaxPool): pool\n");
}

TEST(Tensorrt, TimesOfLayersAreThoseOfTheLastRun) {
  const std::string said = in_process({}, [] {
    LoadOptions options = on_gpu();
    options.profile_layers = true;
    return with_network(small_graph(), options, [](Network& network) {
      const auto session = network.create_session();
      const Values input = test::random_values(network.inputs()[0].elements(), 1);
      std::string text;
      for (int i = 0; i < 2; ++i) {
        const auto outputs = test::run_on(**session, network, input);
        text += outputs ? wrong_values(network, input, *outputs) + ": " : outputs.error().to_string();
      }
      const auto times = (*session)->kernel_times();
      for (const KernelTime& time : *times)
        text += std::to_string(time.kernel) + " " + std::to_string(time.duration_ns) + ", ";
      return text + "without kernel: " + fact(network, "layer_times_without_kernel");
    });
  });
  EXPECT_EQ(said, "right: right: 0 250000, 1 500000, 2 750000, 3 1000000, 4 1250000, 5 1500000, without kernel: 1");
}

TEST(Tensorrt, ThePrecisionIsThatOfTheNetworksNumbers) {
  for (const auto& [precision, name] :
       {std::pair(Precision::kF32, "f32"), std::pair(Precision::kF16, "f16"), std::pair(Precision::kBf16, "bf16")}) {
    const std::string said = in_process({}, [&, wanted = precision] {
      LoadOptions options = on_gpu();
      options.precision = wanted;
      return with_network(small_graph(), options, [](Network& network) {
        return run_and_check(network) + ", " + fact(network, "precision") + ", " +
               kernels_of(network)[0].implementation;
      });
    });
    // Strongly typed, without TF32: from 11 on that is the only kind.
    EXPECT_EQ(said, std::string("right, ") + name + ", stand_in_" + name +
                        (STROBE_TEST_TENSORRT_MAJOR >= 11 ? "+typed0" : "+typed2"));
  }
  const auto refused = [](Precision precision, const std::vector<Setting>& settings) {
    return in_process(settings, [precision] {
      LoadOptions options = on_gpu();
      options.precision = precision;
      return load_only(small_graph(), options);
    });
  };
  EXPECT_EQ(refused(Precision::kBf16, {{"FAKE_CUDA_MAJOR", "7"}}),
            "exit 2: engine tensorrt does not run bf16 on cuda:0; it runs f32, f16");
  EXPECT_THAT(refused(Precision::kInt8, {}), HasSubstr("does not run i8 on cuda:0"));
}

TEST(Tensorrt, WhatIsNotHereIsSaidInOneLine) {
  const auto said = [](const std::vector<Setting>& settings, const std::string& device = "cuda:0") {
    return in_process(settings, [&] {
      LoadOptions options;
      options.device = device;
      return load_only(small_graph(), options);
    });
  };
  EXPECT_EQ(said({}), "loaded");
  EXPECT_THAT(said({}, "cpu"),
              AllOf(HasSubstr("exit 2: engine tensorrt runs on GPUs only"), HasSubstr("--infer-on-gpu")));
  EXPECT_EQ(said({}, "cuda:1"), "exit 2: device cuda:1: CUDA sees 1 GPU, cuda:0");
  EXPECT_THAT(said({{"FAKE_CUDA_DEVICES", "0"}}),
              HasSubstr("exit 2: device cuda:0: there is a driver, but CUDA sees no GPU"));
  EXPECT_THAT(said({{"FAKE_CUDA_INIT", "3"}}), HasSubstr("exit 2: device cuda:0: the NVIDIA driver cannot be used"));
  EXPECT_THAT(
      said({{"STROBE_CUDA_LIBRARY", "/nowhere/libcuda.so.1"}}),
      AllOf(HasSubstr("exit 2: device cuda:0: no NVIDIA driver here"), HasSubstr("/nowhere"), Not(HasSubstr("\n"))));

  const test::ScratchFolder folder;
  const std::string version = std::to_string(STROBE_TEST_TENSORRT_MAJOR);
  const std::vector<Setting> there{{"STROBE_TENSORRT_LIBRARY", folder.path().string()}};
  EXPECT_THAT(said(there), AllOf(HasSubstr("exit 2: engine tensorrt: TensorRT's library: no "),
                                 HasSubstr(folder.path().string()), HasSubstr("headers of TensorRT " + version)));
  std::filesystem::create_symlink(library_path(), folder / "libnvinfer.so.8");
  EXPECT_THAT(said(there), AllOf(HasSubstr("exit 2: engine tensorrt: only TensorRT 8 is here"),
                                 HasSubstr("install TensorRT " + version)));
  std::filesystem::create_symlink(library_path(), folder / ("libnvinfer.so." + version));
  EXPECT_THAT(said(there), AllOf(HasSubstr("exit 2: engine tensorrt: TensorRT's ONNX parser: no "),
                                 HasSubstr("libnvonnxparser.so")));
  EXPECT_THAT(said({{"FAKE_TRT_VERSION", "8601"}}),
              AllOf(HasSubstr("exit 2"), HasSubstr("is TensorRT 8.6.1, and this plugin")));
}

TEST(Tensorrt, WhatFailsIsSaidInOneLine) {
  const auto said = [](const std::vector<Setting>& settings) {
    return in_process(settings, [] { return with_network(small_graph(), on_gpu(), run_and_check); });
  };
  EXPECT_EQ(said({{"FAKE_TRT_REFUSE", "LeakyRelu"}}),
            "exit 2: sketch: TensorRT's ONNX parser, node first.leaky (LeakyRelu): In node 3 with name: and operator: "
            "(checkFallbackPluginImporter): UNSUPPORTED_NODE: Plugin not found");
  EXPECT_EQ(
      said({{"FAKE_TRT_NO_BUILD", "1"}}),
      "exit 3: sketch: TensorRT could not build it: IBuilder::buildSerializedNetwork: Error Code 10: Internal Error "
      "(Could not find any implementation for node 1_Convolution.)");
  EXPECT_THAT(said({{"FAKE_TRT_NO_CONTEXT", "1"}}), AllOf(HasSubstr("execution context"), HasSubstr("OutOfMemory")));
  EXPECT_THAT(
      said({{"FAKE_TRT_NO_RUN", "1"}}),
      HasSubstr("exit 3: TensorRT could not run: IExecutionContext::enqueueV3: Error Code 1: Cask (Cask convolution"));
  EXPECT_EQ(said({{"FAKE_CUDA_MEMORY", "1000"}}), "out of memory on cuda:0: 0.0 MB for a tensor");
  EXPECT_EQ(said({{"FAKE_CUDA_WAIT", "700"}}),
            "exit 3: waiting for the GPU: an illegal memory access was encountered (CUDA error 700)");
}

TEST(Tensorrt, OnnxFiles) {
  const test::ScratchFolder folder;
  const Values weight{0.5F, -1, 2, 0.25F, -0.75F, 1}, bias{0.1F, -0.2F, 0.3F};
  test::write_bytes(folder / "fixed.onnx", test::onnx_bytes(2, false, weight, bias));
  test::write_bytes(folder / "open.onnx", test::onnx_bytes(0, true, weight, bias));
  test::write_bytes(folder / "cut.onnx", test::onnx_bytes(2, false, weight, bias).substr(0, 60));
  test::write_bytes(folder / "empty.onnx", "");
  const auto said = [&](const std::string& name, const LoadOptions& options) {
    const std::string text = in_process({}, [&] {
      return with_network(folder / name, options, [](Network& network) {
        std::string layers;
        for (const Kernel& kernel : kernels_of(network))
          for (const std::string& layer : kernel.layers) layers += layer + " ";
        return run_and_check(network) + ": " + layers + std::to_string(network.inputs()[0].shape[0]);
      });
    });
    EXPECT_THAT(text, Not(HasSubstr("\n")));
    return text;
  };
  LoadOptions sized = on_gpu(3);
  sized.input_shape = {2, 5, 7};
  EXPECT_EQ(said("fixed.onnx", on_gpu(2)), "right: mix clip 2");
  EXPECT_EQ(said("open.onnx", sized), "right: mix clip 3");
  EXPECT_THAT(said("fixed.onnx", on_gpu(3)),
              AllOf(HasSubstr("exit 2"), HasSubstr("fixed.onnx: input picture: its batch is 2, 3 was asked for")));
  EXPECT_THAT(said("open.onnx", on_gpu(1)),
              AllOf(HasSubstr("exit 2"), HasSubstr("open.onnx"), HasSubstr("give an input shape")));
  sized.input_shape = {4, 5, 7};
  EXPECT_THAT(said("open.onnx", sized),
              AllOf(HasSubstr("exit 2"), HasSubstr("extent 1 is 2, the input shape given has 4")));
  sized.input_shape = {2, 5};
  EXPECT_THAT(said("open.onnx", sized), AllOf(HasSubstr("exit 2"), HasSubstr("3 extents")));
  for (const char* name : {"cut.onnx", "empty.onnx"})
    EXPECT_THAT(said(name, on_gpu()), AllOf(HasSubstr("exit 2"), HasSubstr(name), HasSubstr("ONNX parser")));
  EXPECT_THAT(said("none.onnx", on_gpu()), HasSubstr("exit 2"));
  LoadOptions half = on_gpu(2);
  half.precision = Precision::kF16;
  if (STROBE_TEST_TENSORRT_MAJOR >= 11)
    EXPECT_THAT(said("fixed.onnx", half), AllOf(HasSubstr("exit 2"), HasSubstr("write it in f16")));
  else
    EXPECT_EQ(said("fixed.onnx", half), "right: mix clip 2");
}

TEST(Tensorrt, EngineFilesAreRunAsTheyWereBuilt) {
  const test::ScratchFolder folder;
  const std::string version = std::to_string(STROBE_TEST_TENSORRT_VERSION);
  const std::string ends = "input\tin\t1\t2\t3\t4\t4\noutput\tout\t1\t2\t5\n", layers = "layer\ta + b\nlayer\tc\n";
  test::write_bytes(folder / "good.engine", "FAKETRT " + version + " GH100\n" + ends + layers);
  test::write_bytes(folder / "other.plan", "FAKETRT 80601 GH100\n" + ends + layers);
  test::write_bytes(folder / "gpu.plan", "FAKETRT " + version + " GA100\n" + ends + layers);
  test::write_bytes(folder / "noise.engine", "nothing of the kind\n");
  test::write_bytes(folder / "empty.engine", "");
  test::write_bytes(folder / "half.engine",
                    "FAKETRT " + version + " GH100\ninput\tin\t10\t1\t4\noutput\tout\t1\t1\t4\n");
  test::write_bytes(folder / "open.engine", "FAKETRT " + version +
                                                " GH100\ninput\tin\t1\t-1\t3\t4\t4\noutput\tout\t1\t-1\t5\n"
                                                "profile\tin\t1\t3\t4\t4\t4\t3\t4\t4\n" +
                                                layers);
  const auto said = [&](const std::string& name, const LoadOptions& options) {
    const std::string text = in_process({}, [&] {
      return with_network(folder / name, options, [](Network& network) {
        std::string line = run_and_check(network) + ":";
        for (const Kernel& kernel : kernels_of(network)) {
          line += " " + kernel.name + " =";
          for (const std::string& layer : kernel.layers) line += " " + layer;
        }
        return line + "; " + std::to_string(network.outputs()[0].elements());
      });
    });
    EXPECT_THAT(text, Not(HasSubstr("\n")));
    return text;
  };
  EXPECT_EQ(said("good.engine", on_gpu(2)), "right: a + b = a b c = c; 10");
  EXPECT_EQ(said("open.engine", on_gpu(3)), "right: a + b = a b c = c; 15");
  EXPECT_THAT(said("open.engine", on_gpu(5)),
              AllOf(HasSubstr("exit 2"), HasSubstr("built for batch 1 to 4, 5 was asked for")));
  EXPECT_THAT(said("good.engine", on_gpu(1)),
              AllOf(HasSubstr("exit 2"), HasSubstr("good.engine: input in: this engine was built for batch 2, 1 was")));
  EXPECT_THAT(said("other.plan", on_gpu(2)),
              AllOf(HasSubstr("exit 2"), HasSubstr("other.plan: TensorRT"), HasSubstr("same version"),
                    HasSubstr("Serialized Engine Version: 80601")));
  EXPECT_THAT(said("gpu.plan", on_gpu(2)), AllOf(HasSubstr("exit 2"), HasSubstr("SM mismatch: GA100")));
  EXPECT_THAT(said("noise.engine", on_gpu(2)), AllOf(HasSubstr("exit 2"), HasSubstr("Magic tag does not match")));
  EXPECT_THAT(said("empty.engine", on_gpu(2)), AllOf(HasSubstr("exit 2"), HasSubstr("is empty")));
  EXPECT_THAT(said("half.engine", on_gpu(1)), AllOf(HasSubstr("exit 2"), HasSubstr("tensor in: float32 is expected")));
  LoadOptions half = on_gpu(2);
  half.precision = Precision::kF16;
  EXPECT_THAT(said("good.engine", half), AllOf(HasSubstr("exit 2"), HasSubstr("precision that it was built with")));
}

}  // namespace
}  // namespace strobe::engines
