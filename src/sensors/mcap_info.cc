#include "sensors/mcap_info.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/sha256.h"

namespace strobe::sensors {

namespace {

std::vector<McapChunksInfo> chunks_of(const McapContents& contents) {
  std::vector<McapChunksInfo> all;
  for (const McapChunkIndex& chunk : contents.chunks) {
    const std::string name = chunk.compression.empty() ? "none" : chunk.compression;
    auto found = std::find_if(all.begin(), all.end(), [&](const auto& info) { return info.compression == name; });
    if (found == all.end()) found = all.insert(all.end(), McapChunksInfo{name});
    ++found->count;
    found->compressed_bytes += chunk.compressed_size;
    found->uncompressed_bytes += chunk.uncompressed_size;
  }
  return all;
}

void take_statistics(const McapStatistics& statistics, std::map<uint16_t, McapChannelInfo>& channels, McapInfo& info) {
  info.messages = statistics.message_count;
  if (info.messages > 0) {
    info.start = statistics.message_start_time;
    info.end = statistics.message_end_time;
  }
  for (const auto& [id, count] : statistics.channel_message_counts)
    if (const auto channel = channels.find(id); channel != channels.end()) channel->second.count = count;
}

void count_messages(const McapReader& reader, std::map<uint16_t, McapChannelInfo>& channels, McapInfo& info) {
  for (auto& [id, channel] : channels) channel.bytes = 0;
  McapQuery query;
  query.order = McapQuery::Order::kFile;
  McapMessages messages = reader.messages(query);
  McapMessageView message;
  for (auto more = messages.next(message); more && *more; more = messages.next(message)) {
    McapChannelInfo& channel = channels.at(message.channel->id);
    ++channel.count;
    *channel.bytes += message.data.size();
    channel.first = std::min(channel.first.value_or(message.log_time), message.log_time);
    channel.last = std::max(channel.last.value_or(message.log_time), message.log_time);
  }
  for (auto& [id, channel] : channels) {
    info.messages += channel.count;
    if (channel.count == 0) continue;
    info.start = std::min(info.start.value_or(*channel.first), *channel.first);
    info.end = std::max(info.end.value_or(*channel.last), *channel.last);
    if (channel.count > 1 && *channel.last > *channel.first)
      channel.rate_hz =
          static_cast<double>(channel.count - 1) * 1e9 / static_cast<double>(*channel.last - *channel.first);
  }
  for (const std::string& fault : messages.faults()) info.faults.push_back(fault);
}

void check_rest(const McapReader& reader, McapInfo& info) {
  const McapContents& contents = reader.contents();
  for (const McapAttachmentIndex& index : contents.attachments)
    if (auto attachment = reader.attachment(index); !attachment) info.faults.push_back(attachment.error().to_string());
  if (!reader.data_section_holds()) info.faults.emplace_back("the CRC of its data section is wrong");
  if (contents.statistics && contents.statistics->message_count != info.messages)
    info.faults.push_back("its statistics count " + std::to_string(contents.statistics->message_count) +
                          " messages; there are " + std::to_string(info.messages));
}

void add_digests(const McapReader& reader, std::map<uint16_t, McapChannelInfo>& channels) {
  for (auto& [id, channel] : channels) {
    McapQuery query;
    query.topics = {channel.channel.topic};
    McapMessages messages = reader.messages(query);
    McapMessageView message;
    std::string bytes;
    for (auto more = messages.next(message); more && *more; more = messages.next(message)) {
      if (message.channel->id != id) continue;
      char head[20];
      std::memcpy(head, &message.log_time, 8);
      std::memcpy(head + 8, &message.publish_time, 8);
      std::memcpy(head + 16, &message.sequence, 4);
      bytes.append(head, sizeof head);
      bytes.append(reinterpret_cast<const char*>(message.data.data()), message.data.size());
    }
    channel.sha256 = sha256(bytes);
  }
}

}  // namespace

Result<McapInfo> describe_mcap(const std::filesystem::path& path, const McapInfoOptions& options) {
  McapReadOptions read_options;
  read_options.threads = options.threads;
  STROBE_ASSIGN(const McapReader reader, McapReader::open(path, read_options));
  const McapContents& contents = reader.contents();
  McapInfo info;
  info.file_bytes = reader.bytes().size();
  info.profile = contents.header.profile;
  info.library = contents.header.library;
  info.indexed = contents.indexed;
  info.complete = contents.complete;
  info.faults = reader.faults();
  info.chunks = chunks_of(contents);
  info.attachments = contents.attachments;

  std::map<uint16_t, McapChannelInfo> channels;
  for (const auto& [id, channel] : contents.channels) {
    McapChannelInfo& entry = channels[id];
    entry.channel = channel;
    const auto schema = contents.schemas.find(channel.schema_id);
    if (schema == contents.schemas.end()) {
      if (channel.schema_id != 0)
        info.faults.push_back("channel " + std::to_string(id) + ": there is no schema " +
                              std::to_string(channel.schema_id));
      continue;
    }
    entry.schema_name = schema->second.name;
    entry.schema_encoding = schema->second.encoding;
  }
  for (const auto& [id, schema] : contents.schemas) info.schemas.push_back(schema);
  for (const McapMetadataIndex& index : contents.metadata) {
    auto metadata = reader.metadata(index);
    if (metadata)
      info.metadata.push_back(std::move(*metadata));
    else
      info.faults.push_back(metadata.error().to_string());
  }
  if (options.quick && contents.indexed) {
    take_statistics(*contents.statistics, channels, info);
  } else {
    count_messages(reader, channels, info);
    check_rest(reader, info);
  }
  if (options.digests) add_digests(reader, channels);
  for (auto& [id, channel] : channels) info.channels.push_back(std::move(channel));
  return info;
}

}  // namespace strobe::sensors
