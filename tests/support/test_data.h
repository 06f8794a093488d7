// Where tests find real data and their own scratch space.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "support/places.h"

namespace strobe::test {

inline std::filesystem::path shared_data(const std::string& relative) {
  return std::filesystem::path(shared_data_folder()) / relative;
}

// A folder that goes with the object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "strobe-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace strobe::test

// Skips with a reason where real data is absent.
#define STROBE_REQUIRE_DATA(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "real data is absent: " << (path)
