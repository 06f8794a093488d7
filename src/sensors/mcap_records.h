// The records of an MCAP file as structs, and their bytes. Source: the format's specification (version "0"): a record
// is uint8 opcode, uint64 length, content; integers are little endian; strings and maps carry a uint32 length in bytes.
// Times are nanoseconds. Parsers read what the fields need and ignore what follows: records may grow at their end.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::sensors {

using ByteView = std::span<const uint8_t>;

inline constexpr char kMcapMagic[8] = {'\x89', 'M', 'C', 'A', 'P', '0', '\r', '\n'};
// Whether the magic stands at that place.
bool has_mcap_magic(ByteView bytes, uint64_t at);
inline constexpr uint64_t kMcapRecordHead = 9;  // opcode and length

enum class McapOpcode : uint8_t {
  kHeader = 0x01,
  kFooter = 0x02,
  kSchema = 0x03,
  kChannel = 0x04,
  kMessage = 0x05,
  kChunk = 0x06,
  kMessageIndex = 0x07,
  kChunkIndex = 0x08,
  kAttachment = 0x09,
  kAttachmentIndex = 0x0A,
  kStatistics = 0x0B,
  kMetadata = 0x0C,
  kMetadataIndex = 0x0D,
  kSummaryOffset = 0x0E,
  kDataEnd = 0x0F,
};

// In the order of the file, so that a rewritten file has the same bytes.
using McapStringMap = std::vector<std::pair<std::string, std::string>>;
// The value of a key; nullptr when absent.
const std::string* find_value(const McapStringMap& map, std::string_view key);

struct McapHeader {
  std::string profile, library;
};

// Offsets and the CRC are 0 where absent.
struct McapFooter {
  uint64_t summary_start = 0, summary_offset_start = 0;
  uint32_t summary_crc = 0;
};

struct McapSchema {
  uint16_t id = 0;  // never 0
  std::string name, encoding;
  std::string data;  // text or bytes, as the encoding has it
  bool operator==(const McapSchema&) const = default;
};

struct McapChannel {
  uint16_t id = 0;
  uint16_t schema_id = 0;  // 0: no schema
  std::string topic, message_encoding;
  McapStringMap metadata;
  bool operator==(const McapChannel&) const = default;
};

// A view: `data` lies in the bytes that were parsed.
struct McapMessage {
  uint16_t channel_id = 0;
  uint32_t sequence = 0;
  uint64_t log_time = 0, publish_time = 0;
  ByteView data;
};

// A view.
struct McapChunk {
  uint64_t message_start_time = 0, message_end_time = 0, uncompressed_size = 0;
  uint32_t uncompressed_crc = 0;  // 0: not there
  std::string_view compression;   // "", "lz4", "zstd"
  ByteView records;
};

struct McapMessageIndex {
  uint16_t channel_id = 0;
  std::vector<std::pair<uint64_t, uint64_t>> records;  // log time, offset within the uncompressed chunk
};

struct McapChunkIndex {
  uint64_t message_start_time = 0, message_end_time = 0;
  uint64_t chunk_start_offset = 0, chunk_length = 0;  // of the whole Chunk record, opcode and length included
  std::vector<std::pair<uint16_t, uint64_t>> message_index_offsets;
  uint64_t message_index_length = 0;
  std::string compression;
  uint64_t compressed_size = 0, uncompressed_size = 0;
};

// A view. `crc` covers the bytes of all fields before it.
struct McapAttachment {
  uint64_t log_time = 0, create_time = 0;
  std::string_view name, media_type;
  ByteView data;
  uint32_t crc = 0;
};

struct McapAttachmentIndex {
  uint64_t offset = 0, length = 0;  // of the whole record
  uint64_t log_time = 0, create_time = 0, data_size = 0;
  std::string name, media_type;
};

struct McapStatistics {
  uint64_t message_count = 0;
  uint16_t schema_count = 0;
  uint32_t channel_count = 0, attachment_count = 0, metadata_count = 0, chunk_count = 0;
  uint64_t message_start_time = 0, message_end_time = 0;
  std::vector<std::pair<uint16_t, uint64_t>> channel_message_counts;
};

struct McapMetadata {
  std::string name;
  McapStringMap metadata;
};

struct McapMetadataIndex {
  uint64_t offset = 0, length = 0;  // of the whole record
  std::string name;
};

struct McapSummaryOffset {
  uint8_t group_opcode = 0;
  uint64_t group_start = 0, group_length = 0;
};

struct McapDataEnd {
  uint32_t data_section_crc = 0;
};

// One record where it lies.
struct McapRecord {
  McapOpcode opcode{};  // any value: unknown ones are to be skipped
  uint64_t offset = 0;  // of its opcode, in the bytes that are walked
  ByteView content;
  uint64_t end() const { return offset + kMcapRecordHead + content.size(); }
};

// Walks the records of a run of bytes.
class McapCursor {
 public:
  // Starts at byte `at`; offsets count from the start of `bytes`.
  explicit McapCursor(ByteView bytes, uint64_t at = 0) : bytes_(bytes), at_(at) {}
  enum class Step : uint8_t { kRecord, kEnd, kCut };
  // kCut: the bytes end inside a record (or its length is no length); offset() is where that record starts.
  Step next(McapRecord& record);
  uint64_t offset() const { return at_; }

 private:
  ByteView bytes_;
  uint64_t at_;
};

// Content of a record of that kind. Errors: kBadData naming the kind and the field that does not fit.
Result<McapHeader> parse_header(ByteView content);
Result<McapFooter> parse_footer(ByteView content);
Result<McapSchema> parse_schema(ByteView content);
Result<McapChannel> parse_channel(ByteView content);
Result<McapChunk> parse_chunk(ByteView content);
Result<McapMessageIndex> parse_message_index(ByteView content);
Result<McapChunkIndex> parse_chunk_index(ByteView content);
Result<McapAttachment> parse_attachment(ByteView content);
Result<McapAttachmentIndex> parse_attachment_index(ByteView content);
Result<McapStatistics> parse_statistics(ByteView content);
Result<McapMetadata> parse_metadata(ByteView content);
Result<McapMetadataIndex> parse_metadata_index(ByteView content);
Result<McapSummaryOffset> parse_summary_offset(ByteView content);
Result<McapDataEnd> parse_data_end(ByteView content);
// False when it is shorter than its fields.
bool parse_message(ByteView content, McapMessage& message);

// Appends the whole record, opcode and length included. `extra` stands at the end of the content: what a later version
// of the format might add. Message, DataEnd and Footer are never extended.
void append_record(std::string& out, const McapHeader& header, std::string_view extra = {});
void append_record(std::string& out, const McapFooter& footer);
void append_record(std::string& out, const McapSchema& schema, std::string_view extra = {});
void append_record(std::string& out, const McapChannel& channel, std::string_view extra = {});
void append_record(std::string& out, const McapMessageIndex& index, std::string_view extra = {});
void append_record(std::string& out, const McapChunkIndex& index, std::string_view extra = {});
void append_record(std::string& out, const McapAttachmentIndex& index, std::string_view extra = {});
void append_record(std::string& out, const McapStatistics& statistics, std::string_view extra = {});
void append_record(std::string& out, const McapMetadata& metadata, std::string_view extra = {});
void append_record(std::string& out, const McapMetadataIndex& index, std::string_view extra = {});
void append_record(std::string& out, const McapSummaryOffset& offset, std::string_view extra = {});
void append_record(std::string& out, const McapDataEnd& end);
// The CRC is computed; that of `attachment` is not looked at.
void append_record(std::string& out, const McapAttachment& attachment, std::string_view extra = {});
// All of the record but the payload, which follows.
inline constexpr uint64_t kMcapMessageHead = kMcapRecordHead + 22;
void put_message_head(uint8_t out[kMcapMessageHead], const McapMessage& message);
// All of the record but the compressed records, which follow.
void append_chunk_head(std::string& out, const McapChunk& chunk);

}  // namespace strobe::sensors
