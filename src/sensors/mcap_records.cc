#include "sensors/mcap_records.h"

#include <bit>
#include <cstring>

#include "base/crc32.h"

namespace strobe::sensors {

static_assert(std::endian::native == std::endian::little, "integers are copied as they lie");

namespace {

// Takes fields from the front of a record's content. The first field that does not fit is remembered; all later ones
// are empty.
class Fields {
 public:
  explicit Fields(ByteView content) : rest_(content) {}

  template <typename T>
  void number(const char* name, T& value) {
    if (!has(name, sizeof value)) return;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
  }
  // `Length` is the type of the length that stands before the bytes.
  template <typename Length>
  ByteView bytes(const char* name) {
    Length length = 0;
    number(name, length);
    if (missing_ != nullptr || !has(name, length)) return {};
    const ByteView taken = rest_.first(static_cast<size_t>(length));
    rest_ = rest_.subspan(static_cast<size_t>(length));
    return taken;
  }
  std::string_view text(const char* name) {
    const ByteView taken = bytes<uint32_t>(name);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  void map(const char* name, McapStringMap& map) {
    Fields inner(bytes<uint32_t>(name));
    while (missing_ == nullptr && !inner.rest_.empty()) {
      const std::string_view key = inner.text(name);
      const std::string_view value = inner.text(name);
      if (inner.missing_ != nullptr) missing_ = name;
      if (missing_ == nullptr) map.emplace_back(key, value);
    }
  }
  template <typename K, typename V>
  void pairs(const char* name, std::vector<std::pair<K, V>>& pairs) {
    Fields inner(bytes<uint32_t>(name));
    if (missing_ != nullptr) return;
    pairs.reserve(inner.rest_.size() / (sizeof(K) + sizeof(V)));
    while (!inner.rest_.empty()) {
      K key{};
      V value{};
      inner.number(name, key);
      inner.number(name, value);
      if (inner.missing_ != nullptr) {
        missing_ = name;
        return;
      }
      pairs.emplace_back(key, value);
    }
  }

  // The record, or what is wrong with it.
  template <typename T>
  Result<T> done(const char* kind, T&& record) {
    if (missing_ == nullptr) return std::forward<T>(record);
    return bad_data(std::string(kind) + " record: ends inside its field " + missing_);
  }

 private:
  bool has(const char* name, uint64_t count) {
    if (missing_ == nullptr && count > rest_.size()) missing_ = name;
    if (missing_ != nullptr) rest_ = {};
    return missing_ == nullptr;
  }

  ByteView rest_;
  const char* missing_ = nullptr;
};

template <typename T>
void put(std::string& out, T value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  out.append(raw, sizeof value);
}
void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<uint32_t>(text.size()));
  out.append(text);
}
void put_map(std::string& out, const McapStringMap& map) {
  uint32_t length = 0;
  for (const auto& [key, value] : map) length += static_cast<uint32_t>(8 + key.size() + value.size());
  put(out, length);
  for (const auto& [key, value] : map) {
    put_text(out, key);
    put_text(out, value);
  }
}
template <typename K, typename V>
void put_pairs(std::string& out, const std::vector<std::pair<K, V>>& pairs) {
  put(out, static_cast<uint32_t>(pairs.size() * (sizeof(K) + sizeof(V))));
  for (const auto& [key, value] : pairs) {
    put(out, key);
    put(out, value);
  }
}

// Writes opcode and length around what `fields` appends.
template <typename F>
void put_record(std::string& out, McapOpcode opcode, std::string_view extra, const F& fields) {
  put(out, opcode);
  const size_t length_at = out.size();
  put(out, uint64_t{0});
  fields();
  out.append(extra);
  const uint64_t length = out.size() - length_at - 8;
  std::memcpy(out.data() + length_at, &length, sizeof length);
}

}  // namespace

bool has_mcap_magic(ByteView bytes, uint64_t at) {
  return bytes.size() >= sizeof kMcapMagic && at <= bytes.size() - sizeof kMcapMagic &&
         std::memcmp(bytes.data() + at, kMcapMagic, sizeof kMcapMagic) == 0;
}

const std::string* find_value(const McapStringMap& map, std::string_view key) {
  for (const auto& [name, value] : map)
    if (name == key) return &value;
  return nullptr;
}

McapCursor::Step McapCursor::next(McapRecord& record) {
  if (at_ >= bytes_.size()) return Step::kEnd;
  const uint64_t left = bytes_.size() - at_;
  if (left < kMcapRecordHead) return Step::kCut;
  const uint8_t* head = bytes_.data() + at_;
  uint64_t length = 0;
  std::memcpy(&length, head + 1, sizeof length);
  if (length > left - kMcapRecordHead) return Step::kCut;
  record.opcode = static_cast<McapOpcode>(head[0]);
  record.offset = at_;
  record.content = bytes_.subspan(static_cast<size_t>(at_ + kMcapRecordHead), static_cast<size_t>(length));
  at_ += kMcapRecordHead + length;
  return Step::kRecord;
}

Result<McapHeader> parse_header(ByteView content) {
  Fields in(content);
  McapHeader out;
  out.profile = in.text("profile");
  out.library = in.text("library");
  return in.done("Header", std::move(out));
}

Result<McapFooter> parse_footer(ByteView content) {
  Fields in(content);
  McapFooter out;
  in.number("summary_start", out.summary_start);
  in.number("summary_offset_start", out.summary_offset_start);
  in.number("summary_crc", out.summary_crc);
  return in.done("Footer", std::move(out));
}

Result<McapSchema> parse_schema(ByteView content) {
  Fields in(content);
  McapSchema out;
  in.number("id", out.id);
  out.name = in.text("name");
  out.encoding = in.text("encoding");
  const ByteView data = in.bytes<uint32_t>("data");
  out.data.assign(data.begin(), data.end());
  return in.done("Schema", std::move(out));
}

Result<McapChannel> parse_channel(ByteView content) {
  Fields in(content);
  McapChannel out;
  in.number("id", out.id);
  in.number("schema_id", out.schema_id);
  out.topic = in.text("topic");
  out.message_encoding = in.text("message_encoding");
  in.map("metadata", out.metadata);
  return in.done("Channel", std::move(out));
}

bool parse_message(ByteView content, McapMessage& message) {
  if (content.size() < 22) return false;
  const uint8_t* at = content.data();
  std::memcpy(&message.channel_id, at, 2);
  std::memcpy(&message.sequence, at + 2, 4);
  std::memcpy(&message.log_time, at + 6, 8);
  std::memcpy(&message.publish_time, at + 14, 8);
  message.data = content.subspan(22);
  return true;
}

Result<McapChunk> parse_chunk(ByteView content) {
  Fields in(content);
  McapChunk out;
  in.number("message_start_time", out.message_start_time);
  in.number("message_end_time", out.message_end_time);
  in.number("uncompressed_size", out.uncompressed_size);
  in.number("uncompressed_crc", out.uncompressed_crc);
  out.compression = in.text("compression");
  out.records = in.bytes<uint64_t>("records");
  return in.done("Chunk", std::move(out));
}

Result<McapMessageIndex> parse_message_index(ByteView content) {
  Fields in(content);
  McapMessageIndex out;
  in.number("channel_id", out.channel_id);
  in.pairs("records", out.records);
  return in.done("MessageIndex", std::move(out));
}

Result<McapChunkIndex> parse_chunk_index(ByteView content) {
  Fields in(content);
  McapChunkIndex out;
  in.number("message_start_time", out.message_start_time);
  in.number("message_end_time", out.message_end_time);
  in.number("chunk_start_offset", out.chunk_start_offset);
  in.number("chunk_length", out.chunk_length);
  in.pairs("message_index_offsets", out.message_index_offsets);
  in.number("message_index_length", out.message_index_length);
  out.compression = in.text("compression");
  in.number("compressed_size", out.compressed_size);
  in.number("uncompressed_size", out.uncompressed_size);
  return in.done("ChunkIndex", std::move(out));
}

Result<McapAttachment> parse_attachment(ByteView content) {
  Fields in(content);
  McapAttachment out;
  in.number("log_time", out.log_time);
  in.number("create_time", out.create_time);
  out.name = in.text("name");
  out.media_type = in.text("media_type");
  out.data = in.bytes<uint64_t>("data");
  in.number("crc", out.crc);
  return in.done("Attachment", std::move(out));
}

Result<McapAttachmentIndex> parse_attachment_index(ByteView content) {
  Fields in(content);
  McapAttachmentIndex out;
  in.number("offset", out.offset);
  in.number("length", out.length);
  in.number("log_time", out.log_time);
  in.number("create_time", out.create_time);
  in.number("data_size", out.data_size);
  out.name = in.text("name");
  out.media_type = in.text("media_type");
  return in.done("AttachmentIndex", std::move(out));
}

Result<McapStatistics> parse_statistics(ByteView content) {
  Fields in(content);
  McapStatistics out;
  in.number("message_count", out.message_count);
  in.number("schema_count", out.schema_count);
  in.number("channel_count", out.channel_count);
  in.number("attachment_count", out.attachment_count);
  in.number("metadata_count", out.metadata_count);
  in.number("chunk_count", out.chunk_count);
  in.number("message_start_time", out.message_start_time);
  in.number("message_end_time", out.message_end_time);
  in.pairs("channel_message_counts", out.channel_message_counts);
  return in.done("Statistics", std::move(out));
}

Result<McapMetadata> parse_metadata(ByteView content) {
  Fields in(content);
  McapMetadata out;
  out.name = in.text("name");
  in.map("metadata", out.metadata);
  return in.done("Metadata", std::move(out));
}

Result<McapMetadataIndex> parse_metadata_index(ByteView content) {
  Fields in(content);
  McapMetadataIndex out;
  in.number("offset", out.offset);
  in.number("length", out.length);
  out.name = in.text("name");
  return in.done("MetadataIndex", std::move(out));
}

Result<McapSummaryOffset> parse_summary_offset(ByteView content) {
  Fields in(content);
  McapSummaryOffset out;
  in.number("group_opcode", out.group_opcode);
  in.number("group_start", out.group_start);
  in.number("group_length", out.group_length);
  return in.done("SummaryOffset", std::move(out));
}

Result<McapDataEnd> parse_data_end(ByteView content) {
  Fields in(content);
  McapDataEnd out;
  in.number("data_section_crc", out.data_section_crc);
  return in.done("DataEnd", std::move(out));
}

void append_record(std::string& out, const McapHeader& header, std::string_view extra) {
  put_record(out, McapOpcode::kHeader, extra, [&] {
    put_text(out, header.profile);
    put_text(out, header.library);
  });
}

void append_record(std::string& out, const McapFooter& footer) {
  put_record(out, McapOpcode::kFooter, {}, [&] {
    put(out, footer.summary_start);
    put(out, footer.summary_offset_start);
    put(out, footer.summary_crc);
  });
}

void append_record(std::string& out, const McapSchema& schema, std::string_view extra) {
  put_record(out, McapOpcode::kSchema, extra, [&] {
    put(out, schema.id);
    put_text(out, schema.name);
    put_text(out, schema.encoding);
    put_text(out, schema.data);
  });
}

void append_record(std::string& out, const McapChannel& channel, std::string_view extra) {
  put_record(out, McapOpcode::kChannel, extra, [&] {
    put(out, channel.id);
    put(out, channel.schema_id);
    put_text(out, channel.topic);
    put_text(out, channel.message_encoding);
    put_map(out, channel.metadata);
  });
}

void put_message_head(uint8_t out[kMcapMessageHead], const McapMessage& message) {
  const uint64_t length = 22 + message.data.size();
  out[0] = static_cast<uint8_t>(McapOpcode::kMessage);
  std::memcpy(out + 1, &length, 8);
  std::memcpy(out + 9, &message.channel_id, 2);
  std::memcpy(out + 11, &message.sequence, 4);
  std::memcpy(out + 15, &message.log_time, 8);
  std::memcpy(out + 23, &message.publish_time, 8);
}

void append_chunk_head(std::string& out, const McapChunk& chunk) {
  put(out, McapOpcode::kChunk);
  put(out, uint64_t{8 + 8 + 8 + 4 + 4 + 8 + chunk.compression.size() + chunk.records.size()});
  put(out, chunk.message_start_time);
  put(out, chunk.message_end_time);
  put(out, chunk.uncompressed_size);
  put(out, chunk.uncompressed_crc);
  put_text(out, chunk.compression);
  put(out, uint64_t{chunk.records.size()});
}

void append_record(std::string& out, const McapMessageIndex& index, std::string_view extra) {
  put_record(out, McapOpcode::kMessageIndex, extra, [&] {
    put(out, index.channel_id);
    put_pairs(out, index.records);
  });
}

void append_record(std::string& out, const McapChunkIndex& index, std::string_view extra) {
  put_record(out, McapOpcode::kChunkIndex, extra, [&] {
    put(out, index.message_start_time);
    put(out, index.message_end_time);
    put(out, index.chunk_start_offset);
    put(out, index.chunk_length);
    put_pairs(out, index.message_index_offsets);
    put(out, index.message_index_length);
    put_text(out, index.compression);
    put(out, index.compressed_size);
    put(out, index.uncompressed_size);
  });
}

void append_record(std::string& out, const McapAttachment& attachment, std::string_view extra) {
  put_record(out, McapOpcode::kAttachment, extra, [&] {
    const size_t start = out.size();
    put(out, attachment.log_time);
    put(out, attachment.create_time);
    put_text(out, attachment.name);
    put_text(out, attachment.media_type);
    put(out, uint64_t{attachment.data.size()});
    out.append(reinterpret_cast<const char*>(attachment.data.data()), attachment.data.size());
    put(out, crc32(out.data() + start, out.size() - start));
  });
}

void append_record(std::string& out, const McapAttachmentIndex& index, std::string_view extra) {
  put_record(out, McapOpcode::kAttachmentIndex, extra, [&] {
    put(out, index.offset);
    put(out, index.length);
    put(out, index.log_time);
    put(out, index.create_time);
    put(out, index.data_size);
    put_text(out, index.name);
    put_text(out, index.media_type);
  });
}

void append_record(std::string& out, const McapStatistics& statistics, std::string_view extra) {
  put_record(out, McapOpcode::kStatistics, extra, [&] {
    put(out, statistics.message_count);
    put(out, statistics.schema_count);
    put(out, statistics.channel_count);
    put(out, statistics.attachment_count);
    put(out, statistics.metadata_count);
    put(out, statistics.chunk_count);
    put(out, statistics.message_start_time);
    put(out, statistics.message_end_time);
    put_pairs(out, statistics.channel_message_counts);
  });
}

void append_record(std::string& out, const McapMetadata& metadata, std::string_view extra) {
  put_record(out, McapOpcode::kMetadata, extra, [&] {
    put_text(out, metadata.name);
    put_map(out, metadata.metadata);
  });
}

void append_record(std::string& out, const McapMetadataIndex& index, std::string_view extra) {
  put_record(out, McapOpcode::kMetadataIndex, extra, [&] {
    put(out, index.offset);
    put(out, index.length);
    put_text(out, index.name);
  });
}

void append_record(std::string& out, const McapSummaryOffset& offset, std::string_view extra) {
  put_record(out, McapOpcode::kSummaryOffset, extra, [&] {
    put(out, offset.group_opcode);
    put(out, offset.group_start);
    put(out, offset.group_length);
  });
}

void append_record(std::string& out, const McapDataEnd& end) {
  put_record(out, McapOpcode::kDataEnd, {}, [&] { put(out, end.data_section_crc); });
}

}  // namespace strobe::sensors
