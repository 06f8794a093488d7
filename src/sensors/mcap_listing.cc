#include "sensors/mcap_listing.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "sensors/mcap_blocks.h"
#include "sensors/mcap_reader.h"
#include "sensors/mcap_writer.h"

namespace strobe::sensors {

namespace {

using Json = nlohmann::ordered_json;

// What the conformance files carry at the end of padded records.
constexpr std::string_view kPadding{"\x01\xFF\xFF", 3};

// One line of the listing. Fields are given in the order of their names.
class Line {
 public:
  explicit Line(const char* type) { text_ = std::string(R"({"type": ")") + type + R"(", "fields": [)"; }

  void number(const char* name, uint64_t value) {
    begin(name);
    quoted(value);
    text_ += ']';
  }
  void text(const char* name, std::string_view value) {
    begin(name);
    escaped(value);
    text_ += ']';
  }
  void bytes(const char* name, ByteView value) {
    begin(name);
    text_ += '[';
    const char* comma = "";
    for (const uint8_t byte : value) {
      text_ += comma;
      quoted(byte);
      comma = ", ";
    }
    text_ += "]]";
  }
  void map(const char* name, const McapStringMap& map) {
    object(name, map, [&](const std::string& text) { escaped(text); });
  }
  template <typename K, typename V>
  void counts(const char* name, const std::vector<std::pair<K, V>>& map) {
    object(name, map, [&](uint64_t number) { quoted(number); });
  }
  std::string_view done() { return text_ += "]}"; }

 private:
  void begin(const char* name) {
    text_ += first_ ? "[\"" : ", [\"";
    first_ = false;
    text_ += name;
    text_ += "\", ";
  }
  void quoted(uint64_t value) {
    char digits[20];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    text_ += '"';
    text_.append(digits, end);
    text_ += '"';
  }
  void escaped(std::string_view value) { text_ += Json(value).dump(-1, ' ', false, Json::error_handler_t::replace); }
  template <typename Map, typename Put>
  void object(const char* name, const Map& map, const Put& put) {
    begin(name);
    text_ += '{';
    const char* comma = "";
    for (const auto& [key, value] : map) {
      text_ += comma;
      put(key);
      text_ += ": ";
      put(value);
      comma = ", ";
    }
    text_ += "}]";
  }

  std::string text_;
  bool first_ = true;
};

ByteView as_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The functions that follow: a record's content as a line; nothing for records that are not listed.
using Sink = std::function<void(std::string_view)>;

Result<void> list_message(ByteView content, const Sink& sink) {
  McapMessage message;
  if (!parse_message(content, message)) return bad_data("Message record: shorter than its fields");
  Line line("Message");
  line.number("channel_id", message.channel_id);
  line.bytes("data", message.data);
  line.number("log_time", message.log_time);
  line.number("publish_time", message.publish_time);
  line.number("sequence", message.sequence);
  sink(line.done());
  return {};
}

Result<void> list_definition(const McapRecord& record, const Sink& sink) {
  if (record.opcode == McapOpcode::kSchema) {
    STROBE_ASSIGN(const McapSchema schema, parse_schema(record.content));
    Line line("Schema");
    line.bytes("data", as_bytes(schema.data));
    line.text("encoding", schema.encoding);
    line.number("id", schema.id);
    line.text("name", schema.name);
    sink(line.done());
    return {};
  }
  STROBE_ASSIGN(const McapChannel channel, parse_channel(record.content));
  Line line("Channel");
  line.number("id", channel.id);
  line.text("message_encoding", channel.message_encoding);
  line.map("metadata", channel.metadata);
  line.number("schema_id", channel.schema_id);
  line.text("topic", channel.topic);
  sink(line.done());
  return {};
}

Result<void> list_attached(const McapRecord& record, const Sink& sink) {
  if (record.opcode == McapOpcode::kMetadata) {
    STROBE_ASSIGN(const McapMetadata metadata, parse_metadata(record.content));
    Line line("Metadata");
    line.map("metadata", metadata.metadata);
    line.text("name", metadata.name);
    sink(line.done());
    return {};
  }
  STROBE_ASSIGN(const McapAttachment attachment, parse_attachment(record.content));
  Line line("Attachment");
  line.number("create_time", attachment.create_time);
  line.bytes("data", attachment.data);
  line.number("log_time", attachment.log_time);
  line.text("media_type", attachment.media_type);
  line.text("name", attachment.name);
  sink(line.done());
  return {};
}

Result<void> list_index(const McapRecord& record, const Sink& sink) {
  if (record.opcode == McapOpcode::kChunkIndex) {
    STROBE_ASSIGN(const McapChunkIndex index, parse_chunk_index(record.content));
    Line line("ChunkIndex");
    line.number("chunk_length", index.chunk_length);
    line.number("chunk_start_offset", index.chunk_start_offset);
    line.number("compressed_size", index.compressed_size);
    line.text("compression", index.compression);
    line.number("message_end_time", index.message_end_time);
    line.number("message_index_length", index.message_index_length);
    line.counts("message_index_offsets", index.message_index_offsets);
    line.number("message_start_time", index.message_start_time);
    line.number("uncompressed_size", index.uncompressed_size);
    sink(line.done());
  } else if (record.opcode == McapOpcode::kAttachmentIndex) {
    STROBE_ASSIGN(const McapAttachmentIndex index, parse_attachment_index(record.content));
    Line line("AttachmentIndex");
    line.number("create_time", index.create_time);
    line.number("data_size", index.data_size);
    line.number("length", index.length);
    line.number("log_time", index.log_time);
    line.text("media_type", index.media_type);
    line.text("name", index.name);
    line.number("offset", index.offset);
    sink(line.done());
  } else {
    STROBE_ASSIGN(const McapMetadataIndex index, parse_metadata_index(record.content));
    Line line("MetadataIndex");
    line.number("length", index.length);
    line.text("name", index.name);
    line.number("offset", index.offset);
    sink(line.done());
  }
  return {};
}

Result<void> list_statistics(ByteView content, const Sink& sink) {
  STROBE_ASSIGN(const McapStatistics statistics, parse_statistics(content));
  Line line("Statistics");
  line.number("attachment_count", statistics.attachment_count);
  line.number("channel_count", statistics.channel_count);
  line.counts("channel_message_counts", statistics.channel_message_counts);
  line.number("chunk_count", statistics.chunk_count);
  line.number("message_count", statistics.message_count);
  line.number("message_end_time", statistics.message_end_time);
  line.number("message_start_time", statistics.message_start_time);
  line.number("metadata_count", statistics.metadata_count);
  line.number("schema_count", statistics.schema_count);
  sink(line.done());
  return {};
}

// Header, DataEnd, SummaryOffset, Footer.
Result<void> list_frame(const McapRecord& record, const Sink& sink) {
  if (record.opcode == McapOpcode::kHeader) {
    STROBE_ASSIGN(const McapHeader header, parse_header(record.content));
    Line line("Header");
    line.text("library", header.library);
    line.text("profile", header.profile);
    sink(line.done());
  } else if (record.opcode == McapOpcode::kDataEnd) {
    STROBE_ASSIGN(const McapDataEnd end, parse_data_end(record.content));
    Line line("DataEnd");
    line.number("data_section_crc", end.data_section_crc);
    sink(line.done());
  } else if (record.opcode == McapOpcode::kSummaryOffset) {
    STROBE_ASSIGN(const McapSummaryOffset offset, parse_summary_offset(record.content));
    Line line("SummaryOffset");
    line.number("group_length", offset.group_length);
    line.number("group_opcode", offset.group_opcode);
    line.number("group_start", offset.group_start);
    sink(line.done());
  } else {
    STROBE_ASSIGN(const McapFooter footer, parse_footer(record.content));
    Line line("Footer");
    line.number("summary_crc", footer.summary_crc);
    line.number("summary_offset_start", footer.summary_offset_start);
    line.number("summary_start", footer.summary_start);
    sink(line.done());
  }
  return {};
}

Result<void> list_record(const McapRecord& record, const Sink& sink) {
  switch (record.opcode) {
    case McapOpcode::kMessage:
      return list_message(record.content, sink);
    case McapOpcode::kSchema:
    case McapOpcode::kChannel:
      return list_definition(record, sink);
    case McapOpcode::kAttachment:
    case McapOpcode::kMetadata:
      return list_attached(record, sink);
    case McapOpcode::kChunkIndex:
    case McapOpcode::kAttachmentIndex:
    case McapOpcode::kMetadataIndex:
      return list_index(record, sink);
    case McapOpcode::kStatistics:
      return list_statistics(record.content, sink);
    case McapOpcode::kHeader:
    case McapOpcode::kDataEnd:
    case McapOpcode::kSummaryOffset:
    case McapOpcode::kFooter:
      return list_frame(record, sink);
    case McapOpcode::kChunk:
    case McapOpcode::kMessageIndex:
      break;
  }
  return {};
}

// Fields of one record of a listing.
class Listed {
 public:
  explicit Listed(const Json& fields) : fields_(fields) {}
  uint64_t number(std::string_view name) const { return std::stoull(value(name).get<std::string>()); }
  std::string text(std::string_view name) const { return value(name).get<std::string>(); }
  std::string bytes(std::string_view name) const {
    std::string bytes;
    for (const Json& byte : value(name)) bytes.push_back(static_cast<char>(std::stoul(byte.get<std::string>())));
    return bytes;
  }
  McapStringMap map(std::string_view name) const {
    McapStringMap map;
    for (const auto& [key, text] : value(name).items()) map.emplace_back(key, text.get<std::string>());
    return map;
  }

 private:
  const Json& value(std::string_view name) const {
    for (const Json& field : fields_)
      if (field.at(0).get_ref<const std::string&>() == name) return field.at(1);
    throw std::runtime_error("a record has no field " + std::string(name));
  }
  const Json& fields_;
};

McapWriteOptions options_of(const std::set<std::string>& features) {
  McapWriteOptions options;
  options.compression = McapCompression::kNone;
  options.chunks = features.contains("ch");
  options.message_index = features.contains("mx");
  options.statistics = features.contains("st");
  options.repeat_schemas = features.contains("rsh");
  options.repeat_channels = features.contains("rch");
  options.attachment_index = features.contains("ax");
  options.metadata_index = features.contains("mdx");
  options.chunk_index = features.contains("chx");
  options.summary_offsets = features.contains("sum");
  if (features.contains("pad")) options.extra = kPadding;
  return options;
}

Result<void> write_record(McapWriter& writer, const std::string& type, const Listed& in) {
  const auto same_id = [&](Result<uint16_t> id) -> Result<void> {
    if (!id) return std::move(id).error();
    if (*id == in.number("id")) return {};
    return bad_data(type + " " + in.text("id") + ": expected ids that count from 1");
  };
  if (type == "Schema") return same_id(writer.add_schema({0, in.text("name"), in.text("encoding"), in.bytes("data")}));
  if (type == "Channel")
    return same_id(writer.add_channel({0, static_cast<uint16_t>(in.number("schema_id")), in.text("topic"),
                                       in.text("message_encoding"), in.map("metadata")}));
  if (type == "Message") {
    const std::string data = in.bytes("data");
    return writer.write({static_cast<uint16_t>(in.number("channel_id")), static_cast<uint32_t>(in.number("sequence")),
                         in.number("log_time"), in.number("publish_time"), as_bytes(data)});
  }
  if (type == "Attachment") {
    const std::string name = in.text("name");
    const std::string media_type = in.text("media_type");
    const std::string data = in.bytes("data");
    return writer.attach({in.number("log_time"), in.number("create_time"), name, media_type, as_bytes(data), 0});
  }
  if (type == "Metadata") return writer.add_metadata({in.text("name"), in.map("metadata")});
  return bad_data("a record of type " + type + " cannot stand before DataEnd");
}

}  // namespace

Result<std::vector<std::string>> list_records(ByteView file, const Sink& sink) {
  if (!has_mcap_magic(file, 0)) return bad_data("not an MCAP file: expected it to begin with 89 4D 43 41 50 30 0D 0A");
  McapFaults faults;
  const auto list = [&](const McapRecord& record, uint64_t offset) {
    if (auto listed = list_record(record, sink); !listed)
      faults.add(listed.error().to_string() + " at byte " + std::to_string(offset));
  };
  McapCursor cursor(file, sizeof kMcapMagic);
  McapRecord record;
  McapCursor::Step step;
  while ((step = cursor.next(record)) == McapCursor::Step::kRecord) {
    if (record.opcode == McapOpcode::kChunk) {
      McapBlock block;
      block.offset = record.offset;
      block.length = record.end() - record.offset;
      block.chunk = true;
      McapBlockLoader loader(file, {&block}, {});
      McapLoaded loaded = loader.take();
      if (loaded.fault) {
        faults.add(loaded.fault->to_string() + "; skipped");
        continue;
      }
      McapCursor inner(loaded.records);
      while ((step = inner.next(record)) == McapCursor::Step::kRecord) list(record, block.offset);
      if (step == McapCursor::Step::kCut)
        faults.add("chunk at byte " + std::to_string(block.offset) + ": its records are cut off");
      continue;
    }
    list(record, record.offset);
    if (record.opcode == McapOpcode::kFooter) return faults.list();
  }
  faults.add("cut off at byte " + std::to_string(cursor.offset()) + ": there is no Footer");
  return faults.list();
}

Result<void> write_listing(std::string_view json, const std::filesystem::path& file) {
  try {
    const Json listing = Json::parse(json);
    McapWriteOptions options = options_of(listing.at("meta").at("variant").at("features").get<std::set<std::string>>());
    const Json& records = listing.at("records");
    if (records.empty() || records.at(0).at("type") != "Header") return bad_data("expected a Header record first");
    options.profile = Listed(records.at(0).at("fields")).text("profile");
    options.library = Listed(records.at(0).at("fields")).text("library");
    STROBE_ASSIGN(McapWriter writer, McapWriter::create(file, options));
    for (size_t i = 1; i < records.size() && records[i].at("type") != "DataEnd"; ++i)
      STROBE_TRY(write_record(writer, records[i].at("type").get<std::string>(), Listed(records[i].at("fields"))));
    return writer.close();
  } catch (const std::exception& fault) {  // of the JSON library, or of a number that is none
    return bad_data(std::string("a listing of MCAP records is expected: ") + fault.what());
  }
}

}  // namespace strobe::sensors
