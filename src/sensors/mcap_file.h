// A file mapped for reading.
#pragma once

#include <filesystem>

#include "sensors/mcap_records.h"

namespace strobe::sensors {

class McapFile {
 public:
  // Errors: kNotFound, kIo (a folder, no permission), each naming the path.
  static Result<McapFile> open(const std::filesystem::path& path);
  McapFile() = default;
  McapFile(McapFile&& other) noexcept : bytes_(other.bytes_) { other.bytes_ = {}; }
  McapFile& operator=(McapFile&& other) noexcept;
  McapFile(const McapFile&) = delete;
  McapFile& operator=(const McapFile&) = delete;
  ~McapFile();

  ByteView bytes() const { return bytes_; }

 private:
  ByteView bytes_;
};

// Has the system map the pages of a part of a mapped file in one go instead of one fault after the other.
void populate(ByteView part_of_file);

}  // namespace strobe::sensors
