#include "media/backend.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "support/test_data.h"

namespace strobe::media {
namespace {

TEST(Backend, SaysWhichFfmpegItIs) {
  const auto opened = backend();
  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_TRUE((*opened)->version().starts_with("FFmpeg ")) << (*opened)->version();
  EXPECT_EQ(*backend(), *opened) << "opened once";
}

// A program beside which no plugin lies: this test binary, copied elsewhere. The test above fails there, and prints
// why.
TEST(Backend, WithoutThePluginOneLineSaysWhatToInstall) {
  const test::ScratchFolder folder;
  std::filesystem::create_directory(folder / "bin");
  std::filesystem::copy_file("/proc/self/exe", folder / "bin" / "test");
  const std::string command = "env -u STROBE_PLUGIN_DIR " + (folder / "bin" / "test").string() +
                              " --gtest_filter=Backend.SaysWhichFfmpegItIs 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  char line[1024];
  while (std::fgets(line, sizeof line, pipe) != nullptr) text += line;
  ::pclose(pipe);
  EXPECT_NE(text.find("video is not built in: install libavformat-dev "), std::string::npos) << text;
  EXPECT_NE(text.find("libstrobe_media.so: no such plugin in " + (folder / "lib/strobe").string()), std::string::npos)
      << text;
}

}  // namespace
}  // namespace strobe::media
