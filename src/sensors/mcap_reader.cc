#include "sensors/mcap_reader.h"

#include <algorithm>
#include <set>

#include "base/crc32.h"

namespace strobe::sensors {

namespace {

constexpr uint64_t kMagicBytes = sizeof kMcapMagic;
constexpr uint64_t kFooterBytes = kMcapRecordHead + 20;
// A run of messages outside chunks is split so that messages far apart in time are not sorted as one.
constexpr uint64_t kLooseRunBytes = uint64_t{4} << 20;

std::string at_byte(uint64_t offset) {
  return " at byte " + std::to_string(offset);
}

McapAttachmentIndex index_of(const McapAttachment& attachment, const McapRecord& record) {
  return {record.offset,
          record.end() - record.offset,
          attachment.log_time,
          attachment.create_time,
          attachment.data.size(),
          std::string(attachment.name),
          std::string(attachment.media_type)};
}

}  // namespace

void McapFaults::add(std::string fault) {
  constexpr size_t kTold = 20;
  if (count_++ < kTold) {
    list_.push_back(std::move(fault));
    return;
  }
  list_.resize(kTold);
  list_.push_back("and " + std::to_string(count_ - kTold) + " more");
}

Result<McapReader> McapReader::open(const std::filesystem::path& path, const McapReadOptions& options) {
  STROBE_ASSIGN(McapFile file, McapFile::open(path));
  McapReader reader;
  reader.file_ = std::move(file);
  reader.bytes_ = reader.file_.bytes();
  reader.options_ = options;
  if (auto read = reader.read_contents(); !read) return std::move(read).error().at(path.string());
  return reader;
}

Result<McapReader> McapReader::from_bytes(ByteView bytes, const McapReadOptions& options) {
  McapReader reader;
  reader.bytes_ = bytes;
  reader.options_ = options;
  STROBE_TRY(reader.read_contents());
  return reader;
}

McapLoadOptions McapReader::load_options() const {
  McapLoadOptions options;
  options.verify_crc = options_.verify_crc;
  options.threads = options_.threads;
  options.mapped = !file_.bytes().empty();
  return options;
}

Result<void> McapReader::read_contents() {
  if (!has_mcap_magic(bytes_, 0))
    return bad_data("not an MCAP file: expected it to begin with 89 4D 43 41 50 30 0D 0A");
  McapRecord first;
  McapCursor cursor(bytes_, kMagicBytes);
  if (cursor.next(first) == McapCursor::Step::kRecord && first.opcode == McapOpcode::kHeader) {
    if (auto header = parse_header(first.content))
      contents_.header = std::move(*header);
    else
      faults_.add(header.error().to_string());
  } else {
    faults_.add("there is no Header record at its start");
  }
  contents_.indexed = read_summary() && read_between_chunks();
  if (contents_.indexed) return {};
  return scan();
}

void McapReader::take_schema(ByteView content, uint64_t offset) {
  auto schema = parse_schema(content);
  if (!schema || schema->id == 0) {
    faults_.add((schema ? "Schema record: has the id 0" : schema.error().to_string()) + at_byte(offset));
    return;
  }
  const auto [place, is_new] = contents_.schemas.try_emplace(schema->id, *schema);
  if (!is_new && place->second != *schema)
    faults_.add("schema " + std::to_string(schema->id) + at_byte(offset) +
                " differs from its first definition, which holds");
}

void McapReader::take_channel(ByteView content, uint64_t offset) {
  auto channel = parse_channel(content);
  if (!channel) {
    faults_.add(channel.error().to_string() + at_byte(offset));
    return;
  }
  const auto [place, is_new] = contents_.channels.try_emplace(channel->id, *channel);
  if (!is_new && place->second != *channel)
    faults_.add("channel " + std::to_string(channel->id) + at_byte(offset) +
                " differs from its first definition, which holds");
}

// Everything that the summary says; false where there is none, or none to be trusted.
bool McapReader::read_summary() {
  const uint64_t size = bytes_.size();
  McapRecord record;
  bool ends_well = size >= 2 * kMagicBytes + kFooterBytes && has_mcap_magic(bytes_, size - kMagicBytes);
  if (ends_well) {
    McapCursor cursor(bytes_, size - kMagicBytes - kFooterBytes);
    ends_well = cursor.next(record) == McapCursor::Step::kRecord && record.opcode == McapOpcode::kFooter &&
                record.end() == size - kMagicBytes;
  }
  if (!ends_well) {
    faults_.add("cut off: there is no Footer at its end");
    return false;
  }
  contents_.complete = true;
  const uint64_t footer_at = record.offset;
  const McapFooter footer = parse_footer(record.content).value();
  if (footer.summary_start == 0 && footer.summary_offset_start == 0) return false;
  const uint64_t end = footer.summary_offset_start != 0 ? footer.summary_offset_start : footer_at;
  const uint64_t start = footer.summary_start != 0 ? footer.summary_start : end;
  if (start < kMagicBytes || start > end || end > footer_at) {
    faults_.add("the Footer points to a summary that cannot be");
    return false;
  }
  // The CRC covers the Footer up to itself.
  if (options_.verify_crc && footer.summary_crc != 0 &&
      crc32(bytes_.data() + start, static_cast<size_t>(footer_at + kFooterBytes - 4 - start)) != footer.summary_crc) {
    faults_.add("the CRC of its summary is wrong");
    return false;
  }

  const size_t faults_before = faults_.count();
  const auto keep = [&](auto parsed, auto& list) {
    if (parsed)
      list.push_back(std::move(*parsed));
    else
      faults_.add("summary: " + parsed.error().to_string());
  };
  McapCursor cursor(bytes_.first(static_cast<size_t>(end)), start);
  McapCursor::Step step;
  while ((step = cursor.next(record)) == McapCursor::Step::kRecord) {
    switch (record.opcode) {
      case McapOpcode::kSchema:
        take_schema(record.content, record.offset);
        break;
      case McapOpcode::kChannel:
        take_channel(record.content, record.offset);
        break;
      case McapOpcode::kChunkIndex:
        keep(parse_chunk_index(record.content), contents_.chunks);
        break;
      case McapOpcode::kAttachmentIndex:
        keep(parse_attachment_index(record.content), contents_.attachments);
        break;
      case McapOpcode::kMetadataIndex:
        keep(parse_metadata_index(record.content), contents_.metadata);
        break;
      case McapOpcode::kStatistics: {
        if (auto statistics = parse_statistics(record.content))
          contents_.statistics = std::move(*statistics);
        else
          faults_.add("summary: " + statistics.error().to_string());
        break;
      }
      default:
        break;
    }
  }
  if (step == McapCursor::Step::kCut) faults_.add("summary: cut off" + at_byte(cursor.offset()));
  for (const McapAttachmentIndex& index : contents_.attachments) indexed_.insert(index.offset);
  for (const McapMetadataIndex& index : contents_.metadata) indexed_.insert(index.offset);
  if (faults_.count() != faults_before) return false;
  contents_.data_end = start;
  // An index that leaves nothing out says so: then nothing must be looked for. Some writers count only what they wrote
  // of the channels that they knew.
  const auto& said = contents_.statistics;
  return said && said->chunk_count == contents_.chunks.size() && said->channel_count <= contents_.channels.size() &&
         said->schema_count <= contents_.schemas.size();
}

// A record that is no chunk, between chunks. `run_open`: whether the last block is a run that this one may join.
void McapReader::take_loose(const McapRecord& record, bool& run_open) {
  switch (record.opcode) {
    case McapOpcode::kSchema:
      take_schema(record.content, record.offset);
      break;
    case McapOpcode::kChannel:
      take_channel(record.content, record.offset);
      break;
    case McapOpcode::kMessage: {
      McapMessage message;
      if (!parse_message(record.content, message)) {
        faults_.add("Message record" + at_byte(record.offset) + ": shorter than its fields");
        return;
      }
      if (run_open && record.end() - blocks_.back().offset <= kLooseRunBytes) {
        McapBlock& run = blocks_.back();
        run.length = record.end() - run.offset;
        run.start_time = std::min(run.start_time, message.log_time);
        run.end_time = std::max(run.end_time, message.log_time);
      } else {
        McapBlock run;
        run.offset = record.offset;
        run.length = record.end() - record.offset;
        run.start_time = run.end_time = message.log_time;
        blocks_.push_back(std::move(run));
      }
      run_open = true;
      break;
    }
    case McapOpcode::kAttachment:
      run_open = false;
      if (auto attachment = parse_attachment(record.content)) {
        if (indexed_.insert(record.offset).second) contents_.attachments.push_back(index_of(*attachment, record));
      } else {
        faults_.add(attachment.error().to_string() + at_byte(record.offset));
      }
      break;
    case McapOpcode::kMetadata:
      run_open = false;
      if (auto metadata = parse_metadata(record.content)) {
        if (indexed_.insert(record.offset).second)
          contents_.metadata.push_back({record.offset, record.end() - record.offset, metadata->name});
      } else {
        faults_.add(metadata.error().to_string() + at_byte(record.offset));
      }
      break;
    case McapOpcode::kDataEnd:
      if (auto end = parse_data_end(record.content)) contents_.data_section_crc = end->data_section_crc;
      break;
    default:
      break;
  }
}

// What stands between the chunks of the index: attachments, metadata, messages outside chunks. False where the index
// and the file do not fit.
bool McapReader::read_between_chunks() {
  auto& chunks = contents_.chunks;
  std::sort(chunks.begin(), chunks.end(),
            [](const auto& a, const auto& b) { return a.chunk_start_offset < b.chunk_start_offset; });
  const uint64_t end = contents_.data_end;
  const auto doubt = [&](const std::string& why) {
    faults_.add("the index is wrong: " + why);
    blocks_.clear();
    return false;
  };
  uint64_t at = kMagicBytes;
  for (size_t i = 0; i <= chunks.size(); ++i) {
    const uint64_t gap_end = i < chunks.size() ? chunks[i].chunk_start_offset : end;
    if (gap_end < at || gap_end > end) return doubt("chunks overlap, or lie outside of the data section");
    McapCursor cursor(bytes_.first(static_cast<size_t>(gap_end)), at);
    McapRecord record;
    McapCursor::Step step;
    bool run_open = false;
    while ((step = cursor.next(record)) == McapCursor::Step::kRecord) {
      if (record.opcode == McapOpcode::kChunk) return doubt("a chunk is missing" + at_byte(record.offset));
      take_loose(record, run_open);
      if (record.opcode == McapOpcode::kDataEnd) {
        contents_.data_end = record.offset;
        break;
      }
    }
    if (step == McapCursor::Step::kCut) return doubt("no record begins" + at_byte(cursor.offset()));
    if (i == chunks.size()) break;

    const McapChunkIndex& chunk = chunks[i];
    if (chunk.chunk_length > end - gap_end || chunk.message_index_length > end - gap_end - chunk.chunk_length)
      return doubt("a chunk reaches beyond the data section");
    McapBlock block;
    block.offset = chunk.chunk_start_offset;
    block.length = chunk.chunk_length;
    block.start_time = chunk.message_start_time;
    block.end_time = chunk.message_end_time;
    block.chunk = true;
    block.knows_channels = chunk.message_index_length > 0;
    for (const auto& [channel, offset] : chunk.message_index_offsets) block.channels.push_back(channel);
    blocks_.push_back(std::move(block));
    at = gap_end + chunk.chunk_length + chunk.message_index_length;
  }
  return true;
}

// From the first record on, with a look into every chunk.
Result<void> McapReader::scan() {
  blocks_.clear();
  contents_.chunks.clear();
  McapCursor cursor(bytes_, kMagicBytes);
  McapRecord record;
  McapCursor::Step step;
  bool run_open = false;
  bool ended = false;
  while (!ended && (step = cursor.next(record)) == McapCursor::Step::kRecord) {
    if (record.opcode == McapOpcode::kChunk) {
      McapBlock block;
      block.offset = record.offset;
      block.length = record.end() - record.offset;
      block.chunk = true;
      blocks_.push_back(std::move(block));
      run_open = false;
    } else {
      take_loose(record, run_open);
      ended = record.opcode == McapOpcode::kDataEnd || record.opcode == McapOpcode::kFooter;
    }
    contents_.data_end = ended ? record.offset : record.end();
  }
  if (!ended)
    faults_.add("cut off" + at_byte(cursor.offset()) +
                (step == McapCursor::Step::kCut ? " inside a record; what stands before it is read"
                                                : "; there is no DataEnd record"));

  std::vector<const McapBlock*> in_chunks;
  for (const McapBlock& block : blocks_)
    if (block.chunk) in_chunks.push_back(&block);
  std::set<uint64_t> bad;
  {
    McapBlockLoader loader(bytes_, in_chunks, load_options());
    for (size_t i = 0; i < loader.size(); ++i) {
      auto& block = const_cast<McapBlock&>(loader.block(i));
      McapLoaded loaded = loader.take();
      if (loaded.fault) {
        if (options_.fail_on_fault) return std::move(*loaded.fault);
        faults_.add(loaded.fault->to_string() + "; skipped");
        bad.insert(block.offset);
        continue;
      }
      McapChunkIndex index;
      index.message_start_time = UINT64_MAX;
      std::set<uint16_t> channels;
      McapCursor inner(loaded.records);
      while ((step = inner.next(record)) == McapCursor::Step::kRecord) {
        McapMessage message;
        if (record.opcode == McapOpcode::kSchema) take_schema(record.content, block.offset);
        if (record.opcode == McapOpcode::kChannel) take_channel(record.content, block.offset);
        if (record.opcode != McapOpcode::kMessage || !parse_message(record.content, message)) continue;
        index.message_start_time = std::min(index.message_start_time, message.log_time);
        index.message_end_time = std::max(index.message_end_time, message.log_time);
        channels.insert(message.channel_id);
      }
      if (channels.empty()) index.message_start_time = 0;
      McapCursor outer(bytes_, block.offset);
      outer.next(record);
      const McapChunk chunk = parse_chunk(record.content).value();
      index.chunk_start_offset = block.offset;
      index.chunk_length = block.length;
      index.compression = chunk.compression;
      index.compressed_size = chunk.records.size();
      index.uncompressed_size = chunk.uncompressed_size;
      block.start_time = index.message_start_time;
      block.end_time = index.message_end_time;
      block.knows_channels = true;
      block.channels.assign(channels.begin(), channels.end());
      contents_.chunks.push_back(std::move(index));
    }
  }
  std::erase_if(blocks_, [&](const McapBlock& block) { return bad.contains(block.offset); });
  return {};
}

Result<McapAttachment> McapReader::attachment(const McapAttachmentIndex& index) const {
  McapRecord record;
  McapCursor cursor(bytes_, index.offset);
  if (cursor.next(record) != McapCursor::Step::kRecord || record.opcode != McapOpcode::kAttachment)
    return bad_data("there is no attachment" + at_byte(index.offset));
  STROBE_ASSIGN(McapAttachment attachment, parse_attachment(record.content));
  const auto covered = static_cast<size_t>(attachment.data.data() + attachment.data.size() - record.content.data());
  if (options_.verify_crc && attachment.crc != 0 && crc32(record.content.data(), covered) != attachment.crc)
    return bad_data("attachment" + at_byte(index.offset) + ": its CRC is wrong");
  return attachment;
}

Result<McapMetadata> McapReader::metadata(const McapMetadataIndex& index) const {
  McapRecord record;
  McapCursor cursor(bytes_, index.offset);
  if (cursor.next(record) != McapCursor::Step::kRecord || record.opcode != McapOpcode::kMetadata)
    return bad_data("there is no metadata" + at_byte(index.offset));
  return parse_metadata(record.content);
}

bool McapReader::data_section_holds() const {
  return contents_.data_section_crc == 0 ||
         crc32(bytes_.data(), static_cast<size_t>(contents_.data_end)) == contents_.data_section_crc;
}

}  // namespace strobe::sensors
