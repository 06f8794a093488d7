#include "sensors/mcap_reader.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/crc32.h"
#include "base/file.h"
#include "sensors/mcap_info.h"
#include "sensors/mcap_test.h"
#include "support/test_data.h"

namespace strobe::sensors {
namespace {

using strobe::test::ScratchFolder;
using test::as_bytes;
using test::Sent;

// A small file as a string.
std::string made(const std::vector<Sent>& messages, McapWriteOptions options) {
  const ScratchFolder folder;
  test::write(folder / "bag", messages, options);
  return read_file(folder / "bag").value();
}

// Whether everything that can be read of the bytes is something that was written, at most once. Also looks at all else.
void expect_subset(const std::string& bytes, const std::vector<Sent>& messages, const std::string& what) {
  const auto reader = McapReader::from_bytes(as_bytes(bytes));
  if (!reader) {
    EXPECT_EQ(reader.error().kind(), ErrorKind::kBadData) << what;
    return;
  }
  for (const auto order : {McapQuery::Order::kFile, McapQuery::Order::kLogTime}) {
    McapQuery query;
    query.order = order;
    auto read = test::read_all(*reader, query);
    std::sort(read.begin(), read.end());
    ASSERT_EQ(std::adjacent_find(read.begin(), read.end()), read.end()) << what;
    for (const Sent& m : read) ASSERT_TRUE(m.sequence < messages.size() && m == messages[m.sequence]) << what;
  }
  for (const auto& index : reader->contents().attachments) (void)reader->attachment(index);
  for (const auto& index : reader->contents().metadata) (void)reader->metadata(index);
}

TEST(McapReader, ReadsFilesThatLackAnyPartOfTheirIndex) {
  const auto messages = test::random_messages(300, 5);
  for (uint32_t mask = 0; mask < 256; ++mask) {
    McapWriteOptions options;
    options.chunk_bytes = 1500;
    options.chunks = (mask & 1) != 0;
    options.message_index = (mask & 2) != 0;
    options.chunk_index = (mask & 4) != 0;
    options.statistics = (mask & 8) != 0;
    options.repeat_schemas = (mask & 16) != 0;
    options.repeat_channels = (mask & 32) != 0;
    options.summary_offsets = (mask & 64) != 0;
    options.attachment_index = options.metadata_index = (mask & 128) != 0;
    const std::string bytes = made(messages, options);
    const McapReader reader = McapReader::from_bytes(as_bytes(bytes)).value();
    EXPECT_TRUE(reader.faults().empty()) << mask << ": " << reader.faults().front();
    EXPECT_TRUE(reader.contents().complete);
    EXPECT_EQ(reader.contents().attachments.size(), 1U);
    EXPECT_EQ(reader.contents().metadata.size(), 1U);
    ASSERT_TRUE(test::read_all(reader) == test::by_time(messages)) << mask;
  }
}

TEST(McapReader, AFileThatIsCutAnywhereGivesItsWholeChunks) {
  const auto messages = test::random_messages(30, 6, 20'000, 40);
  for (const McapCompression compression : {McapCompression::kNone, McapCompression::kLz4, McapCompression::kZstd}) {
    McapWriteOptions options;
    options.compression = compression;
    options.chunk_bytes = 400;
    const std::string whole = made(messages, options);
    size_t most = 0;
    for (size_t size = 0; size < whole.size(); ++size) {
      const std::string cut = whole.substr(0, size);
      expect_subset(cut, messages, "cut at " + std::to_string(size));
      const auto reader = McapReader::from_bytes(as_bytes(cut));
      ASSERT_EQ(reader.operator bool(), size >= sizeof kMcapMagic);
      if (!reader) continue;
      EXPECT_FALSE(reader->faults().empty());
      const size_t read = test::read_all(*reader).size();
      EXPECT_GE(read, most) << "more of the file, fewer messages: " << size;
      most = read;
    }
    EXPECT_EQ(most, messages.size());
  }
}

TEST(McapReader, AnyDamagedByteLeavesASubset) {
  const auto messages = test::random_messages(25, 7, 20'000, 30);
  for (const McapCompression compression : {McapCompression::kNone, McapCompression::kLz4, McapCompression::kZstd}) {
    McapWriteOptions options;
    options.compression = compression;
    options.chunk_bytes = 400;
    std::string bytes = made(messages, options);
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (const char flip : {'\x01', '\x80', '\xFF'}) {
        bytes[i] = static_cast<char>(bytes[i] ^ flip);
        expect_subset(bytes, messages, "byte " + std::to_string(i));
        bytes[i] = static_cast<char>(bytes[i] ^ flip);
      }
    }
  }
}

TEST(McapReader, AChunkWithAWrongCrcIsReportedAndSkipped) {
  const auto messages = test::random_messages(100, 8);
  McapWriteOptions options;
  options.compression = McapCompression::kNone;
  options.chunk_bytes = 2000;
  std::string bytes = made(messages, options);
  const McapChunkIndex chunk = McapReader::from_bytes(as_bytes(bytes)).value().contents().chunks.at(1);
  const size_t place = chunk.chunk_start_offset + chunk.chunk_length - 1;  // a byte of its last payload
  bytes[place] = static_cast<char>(bytes[place] ^ 1);
  {
    const McapReader reader = McapReader::from_bytes(as_bytes(bytes)).value();
    McapMessages walk = reader.messages();
    McapMessageView message;
    size_t count = 0;
    while (walk.next(message).value()) ++count;
    EXPECT_LT(count, messages.size());
    EXPECT_GT(count, messages.size() / 2);
    ASSERT_EQ(walk.faults().size(), 1U);
    EXPECT_EQ(walk.faults()[0],
              "chunk at byte " + std::to_string(chunk.chunk_start_offset) + ": its CRC is wrong; skipped");
    EXPECT_FALSE(reader.data_section_holds());
  }
  McapReadOptions strict;
  strict.fail_on_fault = true;
  const McapReader reader = McapReader::from_bytes(as_bytes(bytes), strict).value();
  McapMessages walk = reader.messages();
  McapMessageView message;
  Result<bool> more = walk.next(message);
  while (more && *more) more = walk.next(message);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().kind(), ErrorKind::kBadData);

  McapReadOptions trusting;
  trusting.verify_crc = false;
  EXPECT_EQ(test::read_all(McapReader::from_bytes(as_bytes(bytes), trusting).value()).size(), messages.size());
}

TEST(McapReader, ASizeThatCannotBeIsRefusedBeforeAnythingIsAllocated) {
  const std::string frame("\x28\xB5\x2F\xFD\x04\x00\x01\x00\x00\x99\xE9\xD8\x51", 13);  // zstd of nothing
  for (const char* compression : {"zstd", "lz4"}) {
    for (const uint64_t size : {uint64_t{1} << 20, uint64_t{1} << 40, ~uint64_t{0}}) {
      McapBuffer out;
      const auto done = McapCodec().decompress(compression, as_bytes(frame), size, out);
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().kind(), ErrorKind::kBadData);
      EXPECT_EQ(out.capacity(), 0U);
    }
  }
}

// 200 MB of zeros in 20 kB: what is trusted is less, so that the memory grows with what turns up.
TEST(McapReader, ALargeChunkOfLittleDataIsReadAllTheSame) {
  const std::string zeros(200'000'000, '\0');
  for (const McapCompression compression : {McapCompression::kLz4, McapCompression::kZstd}) {
    McapCodec codec;
    McapBuffer packed;
    McapBuffer plain;
    ASSERT_TRUE(codec.compress(compression, McapLevel::kFastest, as_bytes(zeros), packed));
    ASSERT_TRUE(codec.decompress(chunk_name(compression), packed.view(), zeros.size(), plain));
    EXPECT_EQ(crc32(plain.data(), plain.size()), crc32(zeros.data(), zeros.size()));
    EXPECT_FALSE(codec.decompress(chunk_name(compression), packed.view(), zeros.size() - 1, plain));
    EXPECT_FALSE(codec.decompress(chunk_name(compression), packed.view(), zeros.size() + 1, plain));
    EXPECT_FALSE(
        codec.decompress(chunk_name(compression), packed.view().first(packed.size() - 1), zeros.size(), plain));
  }
}

TEST(McapReader, UnknownRecordsAreSkippedAndUndefinedChannelsReported) {
  std::string bytes(kMcapMagic, sizeof kMcapMagic);
  append_record(bytes, McapHeader{"p", "l"});
  const auto raw = [&](uint8_t opcode, const std::string& content) {
    bytes.push_back(static_cast<char>(opcode));
    const uint64_t length = content.size();
    bytes.append(reinterpret_cast<const char*>(&length), 8);
    bytes += content;
  };
  raw(0x7F, "something new");
  raw(0x80, "something private");
  append_record(bytes, McapChannel{3, 0, "/t", "cdr", {}});
  append_record(bytes, McapChannel{3, 0, "/other", "cdr", {}});
  raw(0x05, std::string("\x03\0\x09\0\0\0", 6) + std::string(16, '\1') + "abc");
  raw(0x05, std::string("\x04\0\x09\0\0\0", 6) + std::string(16, '\1') + "abc");
  raw(0x05, "short");
  append_record(bytes, McapDataEnd{});
  append_record(bytes, McapFooter{});
  bytes.append(kMcapMagic, sizeof kMcapMagic);
  const McapReader reader = McapReader::from_bytes(as_bytes(bytes)).value();
  EXPECT_EQ(reader.faults().size(), 2U);  // the channel that changed, the short message
  McapMessages walk = reader.messages();
  McapMessageView message;
  ASSERT_TRUE(walk.next(message).value());
  EXPECT_EQ(test::as_sent(message), (Sent{"/t", 9, 0x0101010101010101, 0x0101010101010101, "abc"}));
  EXPECT_FALSE(walk.next(message).value());
  ASSERT_EQ(walk.faults().size(), 1U);
  EXPECT_NE(walk.faults()[0].find("channel 4"), std::string::npos);
}

TEST(McapReader, APinKeepsAMessageOfACompressedChunk) {
  McapWriteOptions options;
  options.chunk_bytes = 1000;
  const auto messages = test::random_messages(200, 12, 0);
  const std::string bytes = made(messages, options);
  const McapReader reader = McapReader::from_bytes(as_bytes(bytes)).value();
  std::vector<std::pair<McapMessageView, std::shared_ptr<const void>>> kept;
  McapMessages walk = reader.messages();
  McapMessageView message;
  while (walk.next(message).value()) kept.emplace_back(message, walk.pin());
  ASSERT_EQ(kept.size(), messages.size());
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(test::as_sent(kept[i].first), messages[i]);
}

TEST(McapReader, WhatIsNoMcapFileIsRefused) {
  const ScratchFolder folder;
  EXPECT_EQ(McapReader::open(folder / "none").error().kind(), ErrorKind::kNotFound);
  EXPECT_EQ(McapReader::open(folder.path()).error().kind(), ErrorKind::kIo);
  std::ofstream(folder / "empty").flush();
  std::ofstream(folder / "text") << "not at all such a file, but long enough for one";
  for (const char* name : {"empty", "text"}) {
    const auto reader = McapReader::open(folder / name);
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.error().exit_code(), 2);
  }
}

// Real bags, against digests that PyPI's mcap made of them.
TEST(McapReader, RealBagsHaveTheDigestsThatAnotherReaderFound) {
  for (const auto& [list, folder] : {std::pair{"sensors/mcap/bags/digests.jsonl", "sensors/mcap/bags/"},
                                     std::pair{"sensors/mcap/nuscenes_sample_digests.jsonl", "sensors/mcap/"}}) {
    const auto path = strobe::test::shared_data(list);
    STROBE_REQUIRE_DATA(path);
    std::ifstream lines(path);
    size_t files = 0;
    for (std::string line; std::getline(lines, line); ++files) {
      const auto expected = nlohmann::json::parse(line);
      const std::string name = expected["file"];
      McapInfoOptions options;
      options.digests = true;
      options.threads = 2;
      const McapInfo info = describe_mcap(strobe::test::shared_data(folder + name), options).value();
      EXPECT_TRUE(info.faults.empty()) << name << ": " << info.faults.front();
      EXPECT_EQ(info.profile, expected["profile"].get<std::string>());
      EXPECT_EQ(info.library, expected["library"].get<std::string>());
      EXPECT_EQ(info.messages, expected["messages"]);
      size_t topics = 0;
      for (const McapChannelInfo& channel : info.channels) {
        if (channel.count == 0) continue;
        ++topics;
        const auto& topic = expected["topics"].at(channel.channel.topic);
        EXPECT_EQ(channel.schema_name, topic["type"].get<std::string>());
        EXPECT_EQ(channel.schema_encoding, topic["schema_encoding"].get<std::string>());
        EXPECT_EQ(channel.channel.message_encoding, topic["message_encoding"].get<std::string>());
        EXPECT_EQ(channel.count, topic["count"]);
        EXPECT_EQ(channel.bytes.value(), topic["bytes"]);
        EXPECT_EQ(channel.first.value(), topic["first"]);
        EXPECT_EQ(channel.last.value(), topic["last"]);
        EXPECT_EQ(channel.sha256, topic["sha256"].get<std::string>()) << name << " " << channel.channel.topic;
      }
      EXPECT_EQ(topics, expected["topics"].size()) << name;
    }
    EXPECT_GE(files, 3U);
  }
}

}  // namespace
}  // namespace strobe::sensors
