#include "engines/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "support/test_data.h"

namespace strobe::engines {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The folders in which plugins are looked for, while the object lives. The build's own plugins stay in sight.
class PluginDir {
 public:
  explicit PluginDir(const std::filesystem::path& folder) { ::setenv("STROBE_PLUGIN_DIR", folder.c_str(), 1); }
  PluginDir(const PluginDir&) = delete;
  PluginDir& operator=(const PluginDir&) = delete;
  ~PluginDir() { ::unsetenv("STROBE_PLUGIN_DIR"); }
};

std::string failure(const std::string& spec, ErrorKind kind) {
  const auto engine = open_engine(spec);
  if (engine) return "opened";
  EXPECT_EQ(engine.error().kind(), kind) << engine.error().to_string();
  const std::string text = engine.error().to_string();
  EXPECT_THAT(text, Not(HasSubstr("\n"))) << "an error is one line";
  return text;
}

bool built(const std::string& name) {
  for (const auto& engine : list_engines()) {
    if (engine.name == name) return engine.built;
  }
  return false;
}

TEST(Loader, AnUnknownNameIsAnsweredWithTheNearest) {
  EXPECT_THAT(failure("openvina", ErrorKind::kUsage), AllOf(HasSubstr("'openvina'"), HasSubstr("openvino")));
  failure("", ErrorKind::kUsage);
  failure(":script", ErrorKind::kUsage);
}

TEST(Loader, ListsEveryEngineOfItsOwnAndHowToGetThoseThatAreNotBuilt) {
  const auto engines = list_engines();
  ASSERT_GE(engines.size(), 3U);
  EXPECT_EQ(engines[0].name, "torch");
  EXPECT_EQ(engines[1].name, "openvino");
  EXPECT_EQ(engines[2].name, "opencv");
  EXPECT_EQ(engines[3].name, "tensorrt");
  for (const auto& engine : engines) {
    EXPECT_EQ(engine.built, !engine.path.empty()) << engine.name;
    EXPECT_EQ(engine.built, engine.how_to_get.empty()) << engine.name;
  }
}

TEST(Loader, OpensWhatIsBuilt) {
  for (const auto& status : list_engines()) {
    if (!status.built) continue;
    const auto engine = open_engine(status.name);
    ASSERT_TRUE(engine) << engine.error().to_string();
    EXPECT_EQ((*engine)->name(), status.name);
    EXPECT_FALSE((*engine)->version().empty());
    const auto precisions = (*engine)->precisions();
    if (status.name == "tensorrt") {
      EXPECT_THAT(precisions, testing::IsEmpty()) << "it runs on GPUs only";
    } else {
      EXPECT_THAT(precisions, testing::Contains(Precision::kF32));
    }
  }
}

TEST(Loader, AVariantMustBeOneThatTheEngineHas) {
  if (!built("torch")) GTEST_SKIP() << "engine torch is not built";
  EXPECT_THAT(failure("torch:scirpt", ErrorKind::kUsage), AllOf(HasSubstr("'scirpt'"), HasSubstr("script")));
  failure("torch:", ErrorKind::kUsage);
  const auto plain = open_engine("torch");
  const auto script = open_engine("torch:script");
  ASSERT_TRUE(plain && script);
  EXPECT_EQ((*plain)->variants().front(), "eager");
  EXPECT_EQ((*script)->variants().front(), "script") << "the chosen one is the default";
  EXPECT_THAT((*script)->variants(), testing::UnorderedElementsAreArray((*plain)->variants()));
}

TEST(Loader, AnEngineWithoutVariantsRefusesOne) {
  if (!built("openvino")) GTEST_SKIP() << "engine openvino is not built";
  EXPECT_THAT(failure("openvino:fast", ErrorKind::kUsage), HasSubstr("openvino has no variants"));
}

TEST(Loader, APluginOfAnotherInterfaceIsRefusedBeforeItMakesAnything) {
  const PluginDir folder(STROBE_TEST_PLUGINS);
  EXPECT_THAT(failure("old_abi", ErrorKind::kEngine),
              AllOf(HasSubstr("libstrobe_engine_old_abi.so"), HasSubstr("version " + std::to_string(kEngineAbi - 1)),
                    HasSubstr("has " + std::to_string(kEngineAbi)), HasSubstr("build the plugin again")));
}

TEST(Loader, ALibraryThatIsNoPluginIsNamed) {
  const PluginDir folder(STROBE_TEST_PLUGINS);
  EXPECT_THAT(failure("no_symbol", ErrorKind::kEngine),
              AllOf(HasSubstr("libstrobe_engine_no_symbol.so"), HasSubstr("strobe_engine_abi")));
}

TEST(Loader, AnEngineThatCannotBeMadeSaysWhy) {
  const PluginDir folder(STROBE_TEST_PLUGINS);
  EXPECT_THAT(failure("throws", ErrorKind::kEngine),
              AllOf(HasSubstr("libstrobe_engine_throws.so"), HasSubstr("the framework's files are missing")));
}

TEST(Loader, ADamagedPluginIsNamed) {
  const test::ScratchFolder scratch;
  std::ofstream(scratch / "libstrobe_engine_garbage.so") << "this is no shared object";
  std::ofstream(scratch / "libstrobe_engine_empty.so");
  const auto whole = std::filesystem::path(STROBE_TEST_PLUGINS) / "libstrobe_engine_throws.so";
  std::filesystem::copy_file(whole, scratch / "libstrobe_engine_cut.so");
  std::filesystem::resize_file(scratch / "libstrobe_engine_cut.so", 1000);
  const PluginDir folder(scratch.path());
  for (const std::string name : {"garbage", "empty", "cut"}) {
    EXPECT_THAT(failure(name, ErrorKind::kEngine), HasSubstr("libstrobe_engine_" + name + ".so"));
  }
}

// Run by the test below, in a copy of this program that has no plugins beside it.
TEST(Loader, DISABLED_WithNoPluginsAtAll) {
  ASSERT_EQ(std::getenv("STROBE_PLUGIN_DIR"), nullptr);
  for (const auto& engine : list_engines()) {
    EXPECT_FALSE(engine.built);
    EXPECT_THAT(failure(engine.name, ErrorKind::kUnsupported),
                AllOf(HasSubstr(engine.name + " is not built"), HasSubstr(engine.how_to_get),
                      HasSubstr("no engine is built"), HasSubstr("install")));
  }
}

TEST(Loader, AnEngineThatIsNotBuiltSaysHowToGetIt) {
  const test::ScratchFolder scratch;
  const auto copy = scratch / "strobe_engines_test";
  std::filesystem::copy_file("/proc/self/exe", copy);
  const std::string command = copy.string() +
                              " --gtest_also_run_disabled_tests --gtest_filter=Loader.DISABLED_WithNoPluginsAtAll"
                              " --gtest_output= > " +
                              (scratch / "log").string() + " 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream log(scratch / "log");
  const std::string text((std::istreambuf_iterator<char>(log)), std::istreambuf_iterator<char>());
  EXPECT_EQ(status, 0) << text;
  EXPECT_THAT(text, HasSubstr("[  PASSED  ] 1 test"));
}

TEST(Loader, AFoundPluginIsListedBehindTheKnownOnesAndNearestNamesCountIt) {
  const PluginDir folder(STROBE_TEST_PLUGINS);
  const auto engines = list_engines();
  const auto found = std::find_if(engines.begin(), engines.end(), [](const auto& e) { return e.name == "old_abi"; });
  ASSERT_NE(found, engines.end());
  EXPECT_GE(found - engines.begin(), 3);
  EXPECT_TRUE(found->built);
  EXPECT_THAT(failure("old_api", ErrorKind::kUsage), HasSubstr("old_abi"));
}

}  // namespace
}  // namespace strobe::engines
