// A folder for what the checks of `strobe doctor` write.
#pragma once

#include <filesystem>
#include <memory>

#include "doctor_checks.h"
#include "strobe/base/result.h"

namespace strobe::app {

// Goes with the object, and all that is in it.
class TemporaryFolder {
 public:
  // Below TMPDIR, or where the system keeps such files. Errors: kIo naming the folder.
  static Result<std::unique_ptr<TemporaryFolder>> make();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// The check that could not be made since no folder could.
Check untried(const std::string& name, bool needed, const Error& error);

}  // namespace strobe::app
