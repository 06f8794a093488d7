// Writing a .spool file: a header page that stays mapped, then blocks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "record/layout.h"
#include "strobe/base/result.h"

namespace strobe::record {

class SpoolFile {
 public:
  // Errors: kIo.
  static Result<std::unique_ptr<SpoolFile>> create(const std::filesystem::path& path);
  SpoolFile(const SpoolFile&) = delete;
  SpoolFile& operator=(const SpoolFile&) = delete;
  ~SpoolFile();

  SpoolHeader& header() { return *header_; }
  // Appends one block, in one write. `header` needs kind, serial, from and to. On an error (kIo) the file ends with the
  // last whole block, and a later call may try again.
  Result<void> append(BlockHeader header, std::span<const uint8_t> payload, bool compress);
  uint64_t bytes() const { return bytes_; }
  // Waits until the disk has what was appended before the call; from any thread. Errors: kIo.
  Result<void> sync() const;
  // In a forked child: neither file nor mapping are the parent's any more.
  void detach_from_file();

 private:
  SpoolFile(std::filesystem::path path, int file, SpoolHeader* header);

  std::filesystem::path path_;
  int file_;
  SpoolHeader* header_;
  uint64_t bytes_ = kHeaderBytes;
  std::vector<uint8_t> buffer_;
};

}  // namespace strobe::record
