// The cache of the tensorrt plugin: what was built is found again, and nothing that lies there can harm a run.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/file.h"
#include "base/proto.h"
#include "engines/onnx_file.h"
#include "engines/tensorrt/tensorrt_case.h"
#include "support/test_data.h"

namespace strobe::engines {
namespace {

namespace fs = std::filesystem;
using namespace test::tensorrt;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(folder, absent))
    if (entry.path().filename() != "lock") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// A folder for the cache, and a count of what was built.
struct Cached : testing::Test {
  fs::path folder() const { return scratch / "cache"; }
  size_t builds() const {
    std::error_code absent;
    const auto size = fs::file_size(scratch / "builds", absent);
    return absent ? 0 : size;
  }
  // State of the cache, values of a run, kernels, and what is said of the cache.
  std::string loaded(const ModelSource& source, const LoadOptions& options, std::vector<Setting> settings = {}) const {
    settings.insert(settings.begin(),
                    {{"STROBE_TENSORRT_CACHE", folder().string()}, {"FAKE_TRT_BUILDS", (scratch / "builds").string()}});
    return in_process(settings, [&] {
      return with_network(source, options, [](Network& network) {
        std::ostringstream text;
        text << fact(network, "engine_cache") << ", " << run_and_check(network) << ", ";
        for (const Kernel& kernel : kernels_of(network)) {
          text << kernel.name << " " << kernel.type << " " << kernel.implementation << ":";
          for (const auto& layer : kernel.layers) text << " " << layer;
          text << "; ";
        }
        for (const auto& end : network.outputs()) text << end.name << " " << end.elements() << ", ";
        text << fact(network, "build_warnings") << ", note: " << fact(network, "engine_cache_note");
        return text.str();
      });
    });
  }
  std::string state(const ModelSource& source, const LoadOptions& options, std::vector<Setting> settings = {}) const {
    const std::string all = loaded(source, options, std::move(settings));
    return all.substr(0, all.find(','));
  }
  test::ScratchFolder scratch;
};

TEST_F(Cached, AnEngineIsBuiltOnceAndIsTheSameAfterwards) {
  const auto graph = small_graph();
  const std::string built = loaded(graph, on_gpu(2)), read = loaded(graph, on_gpu(2));
  EXPECT_THAT(built, AllOf(StartsWith("miss, right, first + first.bn + first.leaky CaskConvolution stand_in_f32"),
                           HasSubstr("drop 128, first 512, 1, the first: a weight is small, note: none")));
  EXPECT_EQ(read, "hit" + built.substr(4));
  EXPECT_EQ(builds(), 1U);
  ASSERT_EQ(files_in(folder()).size(), 1U);
  struct stat facts {};
  ASSERT_EQ(::stat(folder().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700U);
  ASSERT_EQ(::stat(files_in(folder())[0].c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
}

TEST_F(Cached, TheFactsTellWhatWasBuiltAndWhatWasRead) {
  const auto told = [&] {
    return in_process({{"STROBE_TENSORRT_CACHE", folder().string()}}, [] {
      return with_network(small_graph(), on_gpu(), [](Network& network) {
        std::string text = fact(network, "engine_cache_file");
        for (const char* key : {"build_s", "built_before_in_s", "read_s"})
          text += fact(network, key) == "none" ? "" : std::string(" ") + key;
        return text;
      });
    });
  };
  const std::string first = told();
  ASSERT_EQ(files_in(folder()).size(), 1U);
  EXPECT_EQ(first, files_in(folder())[0].string() + " build_s");
  EXPECT_EQ(told(), files_in(folder())[0].string() + " built_before_in_s read_s");
}

TEST_F(Cached, AnotherNetworkPrecisionBatchGpuOrTensorrtIsAnotherEngine) {
  const auto graph = small_graph();
  LoadOptions half = on_gpu();
  half.precision = Precision::kF16;
  EXPECT_EQ(state(graph, on_gpu()), "miss");
  EXPECT_EQ(state(graph, half), "miss");
  EXPECT_EQ(state(graph, on_gpu(2)), "miss");
  EXPECT_EQ(state(graph, on_gpu(), {{"FAKE_CUDA_MULTIPROCESSORS", "66"}}), "miss");  // a part of it, by MPS or MIG
  EXPECT_EQ(state(graph, on_gpu(), {{"FAKE_CUDA_MAJOR", "10"}}), "miss");
  EXPECT_EQ(state(graph, on_gpu(), {{"FAKE_CUDA_VERSION", "12090"}}), "miss");
  const std::string version = std::to_string(STROBE_TEST_TENSORRT_VERSION + 1);
  EXPECT_EQ(state(graph, on_gpu(), {{"FAKE_TRT_VERSION", version}}), "miss");
  test::Sketch other({3, 8, 8});
  other.add("pool", models::Pool{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2});
  other.output(other.last());
  EXPECT_EQ(state(other.finish(), on_gpu()), "miss");
  EXPECT_EQ(files_in(folder()).size(), 8U);
  // How often it runs at once and whether it is profiled says nothing about the engine.
  LoadOptions profiled = on_gpu();
  profiled.profile_layers = true;
  profiled.sessions = 3;
  EXPECT_EQ(state(graph, profiled), "hit");
  EXPECT_EQ(state(graph, half), "hit");
  EXPECT_EQ(state(graph, on_gpu(2)), "hit");
}

TEST_F(Cached, OnnxFilesGoByWhatIsInThemAndInTheFilesBesideThem) {
  const test::Values weight{0.5F, -1, 2, 0.25F, -0.75F, 1}, bias{0.1F, -0.2F, 0.3F};
  test::write_bytes(scratch / "a.onnx", test::onnx_bytes(2, false, weight, bias));
  fs::copy(scratch / "a.onnx", scratch / "b.onnx");
  EXPECT_EQ(state(scratch / "a.onnx", on_gpu(2)), "miss");
  EXPECT_EQ(state(scratch / "b.onnx", on_gpu(2)), "hit");
  test::write_bytes(scratch / "b.onnx", test::onnx_bytes(2, false, {1, -1, 2, 0.25F, -0.75F, 1}, bias));
  EXPECT_EQ(state(scratch / "b.onnx", on_gpu(2)), "miss");
  test::write_bytes(scratch / "open.onnx", test::onnx_bytes(0, true, weight, bias));
  LoadOptions sized = on_gpu(2);
  sized.input_shape = {2, 5, 7};
  EXPECT_EQ(state(scratch / "open.onnx", sized), "miss");
  sized.input_shape = {2, 7, 5};
  EXPECT_EQ(state(scratch / "open.onnx", sized), "miss");
  EXPECT_EQ(state(scratch / "open.onnx", sized), "hit");

  // One more tensor, whose values lie in a file beside it.
  ProtoMessage entry, tensor, graph, more;
  entry.text(1, "location");
  entry.text(2, "weights.bin");
  tensor.message(13, entry);
  tensor.integer(14, 1);
  graph.message(5, tensor);
  more.message(7, graph);
  test::write_bytes(scratch / "apart.onnx", test::onnx_bytes(2, false, weight, bias) + std::string(more.bytes()));
  EXPECT_EQ(state(scratch / "apart.onnx", on_gpu(2)), "off");  // they are not there; what of it is the parser's affair
  test::write_bytes(scratch / "weights.bin", "one");
  EXPECT_EQ(state(scratch / "apart.onnx", on_gpu(2)), "miss");
  EXPECT_EQ(state(scratch / "apart.onnx", on_gpu(2)), "hit");
  test::write_bytes(scratch / "weights.bin", "two");
  EXPECT_EQ(state(scratch / "apart.onnx", on_gpu(2)), "miss");
}

TEST_F(Cached, WhatIsDamagedOrForeignIsBuiltAnew) {
  const auto graph = small_graph();
  EXPECT_EQ(state(graph, on_gpu()), "miss");
  ASSERT_EQ(files_in(folder()).size(), 1U);
  const fs::path file = files_in(folder())[0];
  const std::string right = *read_file(file);
  const auto after = [&](const std::string& bytes) {
    test::write_bytes(file, bytes);
    const std::string said = loaded(graph, on_gpu());
    EXPECT_THAT(said, AllOf(StartsWith("miss, right"), testing::Not(HasSubstr("\n"))));
    EXPECT_EQ(*read_file(file), right);  // and in its place again
    EXPECT_EQ(state(graph, on_gpu()), "hit");
    return said.substr(said.find("note: ") + 6);
  };
  const std::string damaged = file.string() + ": is damaged or none of Strobe's";
  EXPECT_EQ(after(""), damaged);
  EXPECT_EQ(after("FAKETRT " + std::to_string(STROBE_TEST_TENSORRT_VERSION) + " GH100\n"), damaged);
  for (const size_t length : {size_t{1}, size_t{60}, right.size() / 2, right.size() - 1})
    EXPECT_EQ(after(right.substr(0, length)), damaged) << length;
  for (size_t at = 0; at < right.size(); at += 37) {
    std::string changed = right;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    EXPECT_EQ(after(changed), damaged) << at;
  }
  EXPECT_EQ(after(right + right), damaged);
  // Whole, but of another network.
  EXPECT_EQ(state(graph, on_gpu(2)), "miss");
  const auto both = files_in(folder());
  const std::string other = *read_file(both[0] == file ? both[1] : both[0]);
  EXPECT_EQ(after(other), file.string() + ": holds another engine than its name says");
}

TEST_F(Cached, WhatTensorrtRefusesIsBuiltAnew) {
  EXPECT_EQ(state(small_graph(), on_gpu()), "miss");
  const std::string said = loaded(small_graph(), on_gpu(), {{"FAKE_TRT_GPU", "GB100"}});
  EXPECT_THAT(said, AllOf(StartsWith("miss, right"), HasSubstr(files_in(folder())[0].string()),
                          HasSubstr("Target GPU SM mismatch: GH100")));
  EXPECT_EQ(state(small_graph(), on_gpu(), {{"FAKE_TRT_GPU", "GB100"}}), "hit");
  EXPECT_EQ(builds(), 2U);
}

TEST_F(Cached, WhatOthersCouldHaveWrittenIsNotRun) {
  const auto graph = small_graph();
  EXPECT_EQ(state(graph, on_gpu()), "miss");
  const fs::path file = files_in(folder())[0];
  // A file is replaced by one of the user's own.
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  EXPECT_THAT(loaded(graph, on_gpu()), AllOf(StartsWith("miss, right"), HasSubstr(file.string()),
                                             HasSubstr("others may write to it (mode 666)")));
  EXPECT_EQ(state(graph, on_gpu()), "hit");
  fs::rename(file, scratch / "elsewhere");
  fs::create_symlink(scratch / "elsewhere", file);
  EXPECT_THAT(loaded(graph, on_gpu()), AllOf(StartsWith("miss, right"), HasSubstr("note: " + file.string())));
  EXPECT_EQ(state(graph, on_gpu()), "hit");
  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_THAT(loaded(graph, on_gpu()), AllOf(StartsWith("miss, right"), HasSubstr("is no file")));
  EXPECT_EQ(state(graph, on_gpu()), "hit");
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_THAT(loaded(graph, on_gpu()), AllOf(StartsWith("miss, right"), HasSubstr("is no file; ")));
  fs::remove(file);
  // A folder is not used at all.
  ASSERT_EQ(::chmod(folder().c_str(), 0777), 0);
  EXPECT_THAT(loaded(graph, on_gpu()),
              AllOf(StartsWith("off, right"), HasSubstr(folder().string() + ": others may write to it (mode 777)")));
  ASSERT_EQ(::chmod(folder().c_str(), 0700), 0);
  EXPECT_TRUE(files_in(folder()).empty());
  constexpr uid_t kNobody = 65534;
  if (::chown(folder().c_str(), kNobody, kNobody) != 0) GTEST_SKIP() << "only root can give a folder away";
  EXPECT_THAT(loaded(graph, on_gpu()),
              AllOf(StartsWith("off, right"), HasSubstr(folder().string() + ": belongs to another user (65534)")));
}

TEST_F(Cached, WhereNothingCanBeKeptTheRunGoesOn) {
  const auto graph = small_graph();
  test::write_bytes(scratch / "file", "");
  for (const fs::path& in_the_way : {scratch / "file", scratch / "file" / "below", fs::path("/proc/strobe/none")})
    EXPECT_THAT(loaded(graph, on_gpu(), {{"STROBE_TENSORRT_CACHE", in_the_way.string()}}),
                AllOf(StartsWith("off, right"), HasSubstr("note: " + in_the_way.string() + ": ")));
  EXPECT_THAT(loaded(graph, on_gpu(), {{"STROBE_TENSORRT_CACHE", ""}, {"XDG_CACHE_HOME", ""}, {"HOME", ""}}),
              AllOf(StartsWith("off, right"), HasSubstr("note: neither XDG_CACHE_HOME nor HOME names a folder")));
  for (const char* number : {"many", "0", "-1", "10x", "99999999999999999999"})
    EXPECT_THAT(loaded(graph, on_gpu(), {{"STROBE_TENSORRT_CACHE_MB", number}}),
                AllOf(StartsWith("off, right"), HasSubstr(std::string("STROBE_TENSORRT_CACHE_MB=") + number)));
  // A disk that is full in the middle of an engine.
  const std::string said =
      in_process({{"STROBE_TENSORRT_CACHE", folder().string()}, {"FAKE_TRT_PADDING", "100000"}}, [&] {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{50'000, 50'000};
        if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return std::string("no limit");
        return with_network(graph, on_gpu(), [](Network& network) {
          return fact(network, "engine_cache") + ", " + run_and_check(network) + ", " +
                 fact(network, "engine_cache_note");
        });
      });
  EXPECT_THAT(said, AllOf(StartsWith("miss, right, " + folder().string()), HasSubstr("File too large")));
  EXPECT_TRUE(files_in(folder()).empty());
  EXPECT_EQ(state(graph, on_gpu()), "miss");
  EXPECT_EQ(state(graph, on_gpu()), "hit");
}

TEST_F(Cached, ItsFolderIsThatOfXdgAndItCanBeSwitchedOff) {
  const auto graph = small_graph();
  EXPECT_EQ(state(graph, on_gpu(), {{"STROBE_TENSORRT_CACHE", "off"}}), "off");
  EXPECT_FALSE(fs::exists(folder()));
  const auto kept = [&](const std::string& xdg) {
    return state(graph, on_gpu(),
                 {{"STROBE_TENSORRT_CACHE", ""}, {"XDG_CACHE_HOME", xdg}, {"HOME", (scratch / "home").string()}});
  };
  EXPECT_EQ(kept((scratch / "xdg").string()), "miss");
  EXPECT_EQ(files_in(scratch / "xdg" / "strobe" / "tensorrt").size(), 1U);
  EXPECT_EQ(kept("relative"), "miss");  // which XDG says to ignore
  EXPECT_EQ(files_in(scratch / "home" / ".cache" / "strobe" / "tensorrt").size(), 1U);
  EXPECT_EQ(kept(""), "hit");
}

TEST_F(Cached, WhatWasNotUsedForLongestMakesPlace) {
  const auto graph = small_graph();
  const std::vector<Setting> small{{"FAKE_TRT_PADDING", "400000"}, {"STROBE_TENSORRT_CACHE_MB", "1"}};
  const auto age = [&](const fs::path& file, int seconds) {
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
  };
  EXPECT_EQ(state(graph, on_gpu(1), small), "miss");
  const fs::path first = files_in(folder())[0];
  EXPECT_EQ(state(graph, on_gpu(2), small), "miss");
  for (const fs::path& file : files_in(folder())) age(file, file == first ? 2000 : 1000);
  EXPECT_EQ(state(graph, on_gpu(1), small), "hit");  // so that the second is the one not used for longest
  test::write_bytes(folder() / "mine.txt", std::string(2'000'000, 'x'));  // none of the cache's
  const fs::path abandoned = folder() / "x.strobe-engine.part-1-0", fresh = folder() / "x.strobe-engine.part-2-0";
  test::write_bytes(abandoned, "left behind");
  test::write_bytes(fresh, "being written");
  age(abandoned, 2 * 24 * 3600);
  EXPECT_EQ(state(graph, on_gpu(3), small), "miss");
  EXPECT_EQ(state(graph, on_gpu(1), small), "hit");
  EXPECT_EQ(state(graph, on_gpu(3), small), "hit");
  EXPECT_EQ(files_in(folder()).size(), 4U);
  EXPECT_TRUE(fs::exists(fresh) && fs::exists(folder() / "mine.txt") && !fs::exists(abandoned));
  // One that would not go in at all throws nothing out.
  EXPECT_THAT(loaded(graph, on_gpu(4), {{"FAKE_TRT_PADDING", "1200000"}, {"STROBE_TENSORRT_CACHE_MB", "1"}}),
              AllOf(StartsWith("miss, right"), HasSubstr("the engine has 1.2 MB, and the cache may take 1")));
  EXPECT_EQ(state(graph, on_gpu(1), small), "hit");
}

TEST_F(Cached, ManyProcessesBuildOneEngine) {
  constexpr int kProcesses = 6;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string said = loaded(small_graph(), on_gpu(), {{"FAKE_TRT_BUILD_MS", "150"}});
      ::_exit(said.find(", right, ") != std::string::npos && said.find("note: none") != std::string::npos ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(builds(), 1U);
  EXPECT_EQ(files_in(folder()).size(), 1U);
}

TEST_F(Cached, ABuilderThatDiesHoldsNobodyUp) {
  const auto graph = small_graph();
  const auto load = [&] { return loaded(graph, on_gpu(), {{"FAKE_TRT_BUILD_MS", "60000"}}); };
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    load();
    ::_exit(0);
  }
  ::setpgid(child, child);
  while (builds() == 0) ::usleep(5000);
  ::kill(-child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(state(graph, on_gpu()), "miss");
  EXPECT_EQ(state(graph, on_gpu()), "hit");
}

TEST_F(Cached, WhatCannotBeBuiltLeavesNothingBehind) {
  EXPECT_THAT(loaded(small_graph(), on_gpu(), {{"FAKE_TRT_NO_BUILD", "1"}}), StartsWith("exit 3: sketch: TensorRT"));
  EXPECT_TRUE(files_in(folder()).empty());
}

}  // namespace
}  // namespace strobe::engines
