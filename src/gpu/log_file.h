// The log of a process's GPU collector: FOLDER/PID-NUMBER.gpu, beside the recorder's files. Blocks are appended whole,
// one write each, so that what was written outlives the process; a block that was cut short ends the file.
//
// Header: "STROBEG1", int32 pid, uint32 0. Block: uint32 magic, stored bytes, plain bytes, CRC-32 of the stored ones;
// the stored bytes are zstd where they are fewer than the plain ones. Plain: records, each varint length, then varint
// kind (its place in gpu::Record) and its fields: integers as varints (signed ones in zigzag), times as the difference
// to the last one in the block, doubles as 8 bytes, texts as varint length and bytes. A reader steps over kinds and
// fields that it does not know.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpu/activity.h"
#include "strobe/base/result.h"

namespace strobe::gpu {

class LogWriter {
 public:
  // The folder must exist. Errors: kIo.
  static Result<std::unique_ptr<LogWriter>> create(const std::filesystem::path& folder);
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
  ~LogWriter();

  // From one thread at a time. What is added is written by flush(), or when enough has come together; what could not be
  // written is lost, and counted.
  void add(const Record& record);
  // The number of a text; new ones are written first.
  TextId intern(std::string_view text);
  // Writes what was added. False: it could not be written, and is lost.
  bool flush();
  uint64_t lost() const { return lost_; }
  const std::filesystem::path& path() const { return path_; }
  // In a forked child: nothing is written any more.
  void abandon();

 private:
  LogWriter(std::filesystem::path path, int file) : path_(std::move(path)), file_(file) {}

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::filesystem::path path_;
  int file_;
  int64_t size_ = 0;  // of what is whole
  std::vector<uint8_t> plain_, stored_, one_;
  uint64_t last_time_ = 0, in_block_ = 0, lost_ = 0;
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> texts_;
};

struct GpuLog {
  int32_t pid = 0;
  std::map<std::string, uint64_t> faults;  // "damaged block in a GPU log": 1
};
// Calls each(record) for every record in the file's order. Texts of records are numbers; TextDefinition gives them
// before. Errors: kIo, kBadData (no such log); what is damaged further on is counted.
Result<GpuLog> read_log(const std::filesystem::path& file, const std::function<void(const Record&)>& each);

// Logs in a folder, sorted; none where there is no folder.
std::vector<std::filesystem::path> log_files(const std::filesystem::path& folder);

namespace detail {
// One block's records; false where they cannot be.
bool read_records(std::span<const uint8_t> plain, const std::function<void(const Record&)>& each);
}  // namespace detail

}  // namespace strobe::gpu
