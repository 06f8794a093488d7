#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>

#include "support/test_data.h"

namespace strobe {
namespace {

TEST(File, RoundTripsBytes) {
  const test::ScratchFolder folder;
  const std::string bytes("a\0b\r\n\xff", 6);
  ASSERT_TRUE(write_file(folder / "x.bin", bytes));
  EXPECT_EQ(*read_file(folder / "x.bin"), bytes);
}

TEST(File, MissingFileIsNotFoundAndNamed) {
  const auto text = read_file("/nowhere/at/all.txt");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind(), ErrorKind::kNotFound);
  EXPECT_THAT(text.error().to_string(), testing::HasSubstr("/nowhere/at/all.txt"));
}

TEST(File, AFailedWriteLeavesTheOldFileAndNoTemporaryOne) {
  const test::ScratchFolder folder;
  ASSERT_TRUE(write_file(folder / "x.txt", "old"));
  // A file-size limit stands for a full disk; in a child, since limits stick.
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto written = write_file(folder / "x.txt", std::string(5000, 'n'));
    ::_exit(!written && written.error().kind() == ErrorKind::kIo ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(*read_file(folder / "x.txt"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Folder, IsMadeWithItsParents) {
  const test::ScratchFolder folder;
  ASSERT_TRUE(make_writable_folder(folder.path() / "a/b/c"));
  EXPECT_TRUE(std::filesystem::is_directory(folder.path() / "a/b/c"));
}

TEST(Folder, OfAnOutputGoesAgainWhereNothingWasPutIntoIt) {
  const test::ScratchFolder folder;
  namespace fs = std::filesystem;
  for (const char* name : {"new/deep/er", "new/deep/", "./new/../other/x"}) {
    {
      const auto made = OutputFolder::make(folder / name);
      ASSERT_TRUE(made) << made.error().to_string();
      EXPECT_TRUE(fs::is_directory(folder / name));
    }
    EXPECT_FALSE(fs::exists(folder / "new/deep")) << name;
    EXPECT_FALSE(fs::exists(folder / "other")) << name;
    fs::remove(folder / "new");  // beside a path that goes through it
  }
  // What was there stays, and so does what has something in it.
  fs::create_directory(folder / "there");
  ASSERT_TRUE(OutputFolder::make(folder / "there"));
  ASSERT_TRUE(OutputFolder::make(folder / "there/new"));
  EXPECT_TRUE(fs::is_empty(folder / "there"));
  {
    const auto made = OutputFolder::make(folder / "a/b/c");
    ASSERT_TRUE(made);
    ASSERT_TRUE(write_file(folder / "a/b/file", "x"));
  }
  EXPECT_FALSE(fs::exists(folder / "a/b/c"));
  EXPECT_TRUE(fs::exists(folder / "a/b/file"));
}

TEST(Folder, OfAnOutputIsTheMakersAlone) {
  const test::ScratchFolder folder;
  const auto made = OutputFolder::make(folder / "new");
  ASSERT_TRUE(made);
  const pid_t child = ::fork();
  if (child == 0) {
    made->~OutputFolder();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "new"));
}

TEST(Folder, UnderAFileIsRefused) {
  const test::ScratchFolder folder;
  ASSERT_TRUE(write_file(folder / "file", "x"));
  const auto made = make_writable_folder(folder.path() / "file/sub");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().exit_code(), 2);
}

}  // namespace
}  // namespace strobe
