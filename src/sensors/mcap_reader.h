// Reading MCAP files: what a file holds, and its messages in file order or in order of their times. Files without an
// index, cut off or damaged are read as far as they go; what was wrong is said in faults().
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sensors/mcap_blocks.h"
#include "sensors/mcap_file.h"
#include "sensors/mcap_records.h"
#include "strobe/base/result.h"

namespace strobe::sensors {

struct McapReadOptions {
  bool verify_crc = true;      // of chunks, of the summary and of attachments
  bool fail_on_fault = false;  // a damaged chunk ends the reading with an error instead of being skipped
  int threads = 1;             // that decompress, the caller's included
};

// What a file says that it holds, or what was found in it where it does not say.
struct McapContents {
  McapHeader header;
  std::map<uint16_t, McapSchema> schemas;
  std::map<uint16_t, McapChannel> channels;
  std::optional<McapStatistics> statistics;  // the file's own record
  std::vector<McapChunkIndex> chunks;        // in the order of the file; made from the chunks where there is no index
  std::vector<McapAttachmentIndex> attachments;
  std::vector<McapMetadataIndex> metadata;
  bool indexed = false;           // read by its summary, without a look into every chunk
  bool complete = false;          // it ends as a whole file does
  uint64_t data_end = 0;          // where the data section ends: its DataEnd record, or where reading had to stop
  uint32_t data_section_crc = 0;  // 0: not there
};

struct McapQuery {
  enum class Order : uint8_t { kFile, kLogTime };
  Order order = Order::kLogTime;    // equal times: as in the file
  std::vector<std::string> topics;  // empty: all
  uint64_t start = 0;               // first log time
  std::optional<uint64_t> end;      // log times below this one
};

struct McapMessageView {
  const McapChannel* channel = nullptr;
  const McapSchema* schema = nullptr;  // nullptr: the channel has none
  uint32_t sequence = 0;
  uint64_t log_time = 0, publish_time = 0;
  ByteView data;  // valid until the next call of next(); see McapMessages::pin
};

// Sentences about what was wrong: the first ones in full, and how many more there were.
class McapFaults {
 public:
  void add(std::string fault);
  size_t count() const { return count_; }
  const std::vector<std::string>& list() const { return list_; }

 private:
  std::vector<std::string> list_;
  size_t count_ = 0;
};

class McapReader;

class McapMessages {
 public:
  McapMessages(McapMessages&&) noexcept;
  ~McapMessages();
  // False at the end. Errors: kBadData for a damaged chunk where the reader is to fail.
  Result<bool> next(McapMessageView& message);
  // Keeps the bytes of the current message valid as long as it lives (together with the reader).
  std::shared_ptr<const void> pin() const;
  // What was skipped so far, one sentence each.
  const std::vector<std::string>& faults() const;

 private:
  friend class McapReader;
  class Walk;
  explicit McapMessages(std::unique_ptr<Walk> walk);
  std::unique_ptr<Walk> walk_;
};

class McapReader {
 public:
  // Errors: kNotFound, kIo; kBadData where the file does not begin as an MCAP file does.
  static Result<McapReader> open(const std::filesystem::path& path, const McapReadOptions& options = {});
  // The bytes of a whole file, which must outlive the reader.
  static Result<McapReader> from_bytes(ByteView bytes, const McapReadOptions& options = {});

  const McapContents& contents() const { return contents_; }
  const std::vector<std::string>& faults() const { return faults_.list(); }
  ByteView bytes() const { return bytes_; }

  // The reader must outlive it. Several may be in use at once.
  McapMessages messages(const McapQuery& query = {}) const;
  // The attachment's name and bytes lie in the file. Errors: kBadData (no such record there, or its CRC is wrong).
  Result<McapAttachment> attachment(const McapAttachmentIndex& index) const;
  Result<McapMetadata> metadata(const McapMetadataIndex& index) const;
  // Whether the CRC over the whole data section holds; true where the file has none.
  bool data_section_holds() const;

 private:
  friend class McapMessages;
  McapReader() = default;
  Result<void> read_contents();
  bool read_summary();
  bool read_between_chunks();
  Result<void> scan();
  void take_schema(ByteView content, uint64_t offset);
  void take_channel(ByteView content, uint64_t offset);
  void take_loose(const McapRecord& record, bool& run_open);
  McapLoadOptions load_options() const;

  McapFile file_;
  ByteView bytes_;
  McapReadOptions options_;
  McapContents contents_;
  std::vector<McapBlock> blocks_;  // in the order of the file
  std::set<uint64_t> indexed_;     // where the attachments and metadata of the contents lie
  McapFaults faults_;
};

}  // namespace strobe::sensors
