// Writing MCAP files: chunks compressed on several threads, an index, statistics, and CRCs over everything. The file is
// the same whatever the number of threads, and stands under its name when it is complete.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "sensors/mcap_codec.h"
#include "sensors/mcap_records.h"
#include "strobe/base/result.h"

namespace strobe::sensors {

struct McapWriteOptions {
  std::string profile;                 // "ros2" for bags
  std::optional<std::string> library;  // default: strobe and its version
  McapCompression compression = McapCompression::kZstd;
  McapLevel level = McapLevel::kFastest;
  uint64_t chunk_bytes = uint64_t{1} << 20;  // a chunk is closed when its records have reached this size
  int threads = 1;                           // that compress, the caller's included
  // Parts of a file that may be left out. Readers need the chunk index (and what is repeated in the summary) to read
  // anything but the whole file.
  bool chunks = true;
  bool message_index = true;
  bool chunk_index = true;
  bool attachment_index = true;
  bool metadata_index = true;
  bool statistics = true;
  bool repeat_schemas = true, repeat_channels = true;
  bool summary_offsets = true;
  // Put at the end of each record outside chunks that may be extended: what readers must skip.
  std::string extra;
};

class McapWriter {
 public:
  // Errors: kIo (cannot be written there).
  static Result<McapWriter> create(const std::filesystem::path& path, const McapWriteOptions& options = {});
  McapWriter(McapWriter&&) noexcept;
  // Without close() nothing is left of the file.
  ~McapWriter();

  // The id of the schema or channel, whose own `id` is not looked at; one that is known already keeps its id.
  // Errors: kUsage (more than 65535, or no such schema), kIo.
  Result<uint16_t> add_schema(McapSchema schema);
  Result<uint16_t> add_channel(McapChannel channel);
  // Errors: kUsage (no such channel), kIo: also of what was written before, as that happens later.
  Result<void> write(const McapMessage& message);
  Result<void> attach(const McapAttachment& attachment);
  Result<void> add_metadata(const McapMetadata& metadata);
  // Ends the file and gives it its name.
  Result<void> close();

 private:
  class Work;
  explicit McapWriter(std::unique_ptr<Work> work);
  std::unique_ptr<Work> work_;
};

}  // namespace strobe::sensors
