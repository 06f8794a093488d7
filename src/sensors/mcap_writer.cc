#include "sensors/mcap_writer.h"

#include <algorithm>
#include <cstring>

#include "base/crc32.h"
#include "base/version.h"
#include "sensors/mcap_output.h"

namespace strobe::sensors {

class McapWriter::Work {
 public:
  Work(std::unique_ptr<McapOutput> output, McapWriteOptions options)
      : options_(std::move(options)), output_(std::move(output)), open_(output_->new_piece()) {}

  Result<void> begin() {
    std::string start(kMcapMagic, sizeof kMcapMagic);
    append_record(start, McapHeader{options_.profile, options_.library.value_or(std::string("strobe ") + version())},
                  options_.extra);
    return put_raw(start);
  }

  Result<uint16_t> add_schema(McapSchema schema) {
    for (const McapSchema& known : schemas_) {
      schema.id = known.id;
      if (known == schema) return known.id;
    }
    if (schemas_.size() == UINT16_MAX) return usage_error("more than 65535 schemas");
    schema.id = static_cast<uint16_t>(schemas_.size() + 1);
    std::string record;
    append_record(record, schema, extra_inside());
    open_->plain.append(record.data(), record.size());
    schemas_.push_back(std::move(schema));
    return schemas_.back().id;
  }

  Result<uint16_t> add_channel(McapChannel channel) {
    if (channel.schema_id > schemas_.size())
      return usage_error("channel " + channel.topic + ": there is no schema " + std::to_string(channel.schema_id));
    for (const McapChannel& known : channels_) {
      channel.id = known.id;
      if (known == channel) return known.id;
    }
    if (channels_.size() == UINT16_MAX) return usage_error("more than 65535 channels");
    channel.id = static_cast<uint16_t>(channels_.size() + 1);
    std::string record;
    append_record(record, channel, extra_inside());
    open_->plain.append(record.data(), record.size());
    channels_.push_back(std::move(channel));
    counts_.push_back(0);
    index_of_.push_back(kNoIndex);
    return channels_.back().id;
  }

  Result<void> write(const McapMessage& message) {
    if (message.channel_id == 0 || message.channel_id > channels_.size())
      return usage_error("there is no channel " + std::to_string(message.channel_id));
    const size_t channel = message.channel_id - size_t{1};
    McapPiece& piece = *open_;
    if (options_.chunks && options_.message_index) {
      if (index_of_[channel] == kNoIndex) {
        index_of_[channel] = piece.indexes.size();
        piece.indexes.push_back({message.channel_id, {}});
      }
      piece.indexes[index_of_[channel]].records.emplace_back(message.log_time, piece.plain.size());
    }
    piece.start_time = messages_in_piece_ == 0 ? message.log_time : std::min(piece.start_time, message.log_time);
    piece.end_time = messages_in_piece_ == 0 ? message.log_time : std::max(piece.end_time, message.log_time);
    ++messages_in_piece_;
    ++counts_[channel];

    const size_t at = piece.plain.size();
    piece.plain.resize(at + kMcapMessageHead + message.data.size());
    put_message_head(piece.plain.data() + at, message);
    if (!message.data.empty())
      std::memcpy(piece.plain.data() + at + kMcapMessageHead, message.data.data(), message.data.size());
    return piece.plain.size() >= options_.chunk_bytes ? close_piece() : Result<void>();
  }

  Result<void> attach(const McapAttachment& attachment) {
    std::string record;
    append_record(record, attachment, options_.extra);
    McapAttachmentIndex index;
    index.length = record.size();
    index.log_time = attachment.log_time;
    index.create_time = attachment.create_time;
    index.data_size = attachment.data.size();
    index.name = attachment.name;
    index.media_type = attachment.media_type;
    STROBE_ASSIGN(index.offset, put_between(record));
    attachments_.push_back(std::move(index));
    return {};
  }

  Result<void> add_metadata(const McapMetadata& metadata) {
    std::string record;
    append_record(record, metadata, options_.extra);
    STROBE_ASSIGN(const uint64_t offset, put_between(record));
    metadata_.push_back({offset, record.size(), metadata.name});
    return {};
  }

  Result<void> close() {
    STROBE_TRY(close_piece());
    STROBE_TRY(output_->flush());
    std::string end;
    append_record(end, McapDataEnd{output_->crc()});
    put_summary(end);
    end.append(kMcapMagic, sizeof kMcapMagic);
    STROBE_TRY(put_raw(end));
    return output_->finish();
  }

 private:
  static constexpr size_t kNoIndex = SIZE_MAX;

  // Records inside chunks are never extended.
  std::string_view extra_inside() const { return options_.chunks ? std::string_view() : options_.extra; }

  Result<void> put_raw(std::string_view bytes) {
    auto piece = output_->new_piece();
    piece->plain.append(bytes.data(), bytes.size());
    return output_->put(std::move(piece));
  }

  // The open chunk goes on behind it; its place is known once all chunks before it are written.
  Result<uint64_t> put_between(std::string_view record) {
    if (!options_.chunks) STROBE_TRY(close_piece());
    STROBE_TRY(output_->flush());
    const uint64_t offset = output_->offset();
    STROBE_TRY(put_raw(record));
    return offset;
  }

  Result<void> close_piece() {
    if (open_->plain.size() == 0) return {};
    McapPiece& piece = *open_;
    piece.chunk = options_.chunks;
    if (messages_in_piece_ > 0) {
      start_time_ = messages_ == 0 ? piece.start_time : std::min(start_time_, piece.start_time);
      end_time_ = messages_ == 0 ? piece.end_time : std::max(end_time_, piece.end_time);
    }
    messages_ += messages_in_piece_;
    messages_in_piece_ = 0;
    for (const McapMessageIndex& index : piece.indexes) index_of_[index.channel_id - size_t{1}] = kNoIndex;
    auto done = output_->put(std::move(open_));
    open_ = output_->new_piece();
    return done;
  }

  // Appends summary, summary offsets and Footer to the DataEnd record that `end` holds.
  void put_summary(std::string& end) {
    const size_t start = end.size();
    const uint64_t base = output_->offset();  // of the first byte of `end` in the file
    std::vector<McapSummaryOffset> groups;
    const auto group = [&](bool wanted, McapOpcode opcode, const auto& records) {
      if (!wanted || records.empty()) return;
      const size_t before = end.size();
      for (const auto& record : records) append_record(end, record, options_.extra);
      groups.push_back({static_cast<uint8_t>(opcode), base + before, end.size() - before});
    };
    group(options_.repeat_schemas, McapOpcode::kSchema, schemas_);
    group(options_.repeat_channels, McapOpcode::kChannel, channels_);
    group(options_.statistics, McapOpcode::kStatistics, std::vector{statistics()});
    group(options_.metadata_index, McapOpcode::kMetadataIndex, metadata_);
    group(options_.attachment_index, McapOpcode::kAttachmentIndex, attachments_);
    group(options_.chunk_index, McapOpcode::kChunkIndex, output_->chunk_indexes());

    McapFooter footer;
    if (!groups.empty()) footer.summary_start = base + start;
    if (!groups.empty() && options_.summary_offsets) {
      footer.summary_offset_start = base + end.size();
      for (const McapSummaryOffset& offset : groups) append_record(end, offset, options_.extra);
    }
    std::string record;
    append_record(record, footer);
    footer.summary_crc = crc32(record.data(), record.size() - 4, crc32(end.data() + start, end.size() - start));
    append_record(end, footer);
  }

  McapStatistics statistics() const {
    McapStatistics statistics;
    statistics.message_count = messages_;
    statistics.schema_count = static_cast<uint16_t>(schemas_.size());
    statistics.channel_count = static_cast<uint32_t>(channels_.size());
    statistics.attachment_count = static_cast<uint32_t>(attachments_.size());
    statistics.metadata_count = static_cast<uint32_t>(metadata_.size());
    statistics.chunk_count = static_cast<uint32_t>(output_->chunk_indexes().size());
    statistics.message_start_time = start_time_;
    statistics.message_end_time = end_time_;
    for (size_t i = 0; i < counts_.size(); ++i)
      if (counts_[i] > 0) statistics.channel_message_counts.emplace_back(channels_[i].id, counts_[i]);
    return statistics;
  }

  McapWriteOptions options_;
  std::unique_ptr<McapOutput> output_;
  std::unique_ptr<McapPiece> open_;  // that is being filled
  uint64_t messages_in_piece_ = 0;
  std::vector<McapSchema> schemas_;    // id - 1 is the place
  std::vector<McapChannel> channels_;  // likewise
  std::vector<uint64_t> counts_;       // messages, by channel
  std::vector<size_t> index_of_;       // place among the open chunk's indexes, by channel
  std::vector<McapAttachmentIndex> attachments_;
  std::vector<McapMetadataIndex> metadata_;
  uint64_t messages_ = 0, start_time_ = 0, end_time_ = 0;
};

McapWriter::McapWriter(std::unique_ptr<Work> work) : work_(std::move(work)) {}
McapWriter::McapWriter(McapWriter&&) noexcept = default;
McapWriter::~McapWriter() = default;

Result<McapWriter> McapWriter::create(const std::filesystem::path& path, const McapWriteOptions& options) {
  McapOutputOptions output_options;
  output_options.compression = options.compression;
  output_options.level = options.level;
  output_options.message_index = options.message_index;
  output_options.threads = options.threads;
  output_options.extra = options.extra;
  STROBE_ASSIGN(auto output, McapOutput::create(path, output_options));
  McapWriter writer(std::make_unique<Work>(std::move(output), options));
  STROBE_TRY(writer.work_->begin());
  return writer;
}

Result<uint16_t> McapWriter::add_schema(McapSchema schema) {
  return work_->add_schema(std::move(schema));
}
Result<uint16_t> McapWriter::add_channel(McapChannel channel) {
  return work_->add_channel(std::move(channel));
}
Result<void> McapWriter::write(const McapMessage& message) {
  return work_->write(message);
}
Result<void> McapWriter::attach(const McapAttachment& attachment) {
  return work_->attach(attachment);
}
Result<void> McapWriter::add_metadata(const McapMetadata& metadata) {
  return work_->add_metadata(metadata);
}
Result<void> McapWriter::close() {
  return work_->close();
}

}  // namespace strobe::sensors
