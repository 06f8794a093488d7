// A folder for what a command writes and does not keep.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "strobe/base/result.h"

namespace strobe::app {

// Goes with the object, and all that is in it.
class TemporaryFolder {
 public:
  // Below TMPDIR, or where the system keeps such files; its name begins with the given one. Errors: kIo naming the
  // folder.
  static Result<std::unique_ptr<TemporaryFolder>> make(const std::string& name);
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace strobe::app
