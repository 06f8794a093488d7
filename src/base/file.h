// Files: outputs that appear only when complete, and reads that say what went wrong.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strobe/base/result.h"

namespace strobe {

// The whole file. Errors: kNotFound, kIo (a folder, no permission), each naming the path.
Result<std::string> read_file(const std::filesystem::path& path);

// Writes under a temporary name beside the target and renames it when complete: a reader never sees half a file, and an
// old one stays until the new one is whole. Errors: kIo with the path and the system's reason (no space, read-only).
Result<void> write_file(const std::filesystem::path& path, std::string_view text);

// Makes the folder (and its parents) and proves that it can be written to, so that a typo costs nothing later.
// Errors: kIo with the path and the reason.
Result<void> make_writable_folder(const std::filesystem::path& path);

// The same for the output of work that may yet be refused: the folders that were made go with it where nothing was put
// into them.
class OutputFolder {
 public:
  // Errors: those of make_writable_folder().
  static Result<OutputFolder> make(const std::filesystem::path& path);
  OutputFolder(OutputFolder&& other) noexcept : made_(std::move(other.made_)), pid_(other.pid_) { other.made_.clear(); }
  OutputFolder& operator=(OutputFolder&&) = delete;
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  ~OutputFolder();

 private:
  explicit OutputFolder(std::vector<std::filesystem::path> made);
  std::vector<std::filesystem::path> made_;  // the innermost first
  int pid_;                                  // not of processes that were forked meanwhile
};

// Outputs are renamed into place, which would replace a device, a pipe or a folder as well. Errors: kIo where there is
// something else than a file under that name; kUsage without a name.
Result<void> check_replaceable(const std::filesystem::path& path);

// Holds a folder for one writer as long as it lives; the lock goes with the process, however that ends.
class FolderLock {
 public:
  // Errors: kIo (another process holds it, or it cannot be opened). Where the file system knows no locks it holds.
  static Result<FolderLock> take(const std::filesystem::path& folder);
  FolderLock(FolderLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FolderLock& operator=(FolderLock&&) = delete;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace strobe
