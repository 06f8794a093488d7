#include "sensors/mcap_writer.h"

#include "base/file.h"
#include "sensors/mcap_test.h"
#include "support/test_data.h"

namespace strobe::sensors {
namespace {

using strobe::test::ScratchFolder;
using test::Sent;

constexpr McapCompression kAll[] = {McapCompression::kNone, McapCompression::kLz4, McapCompression::kZstd};

TEST(McapWriter, TheFileIsTheSameForEveryNumberOfThreads) {
  const ScratchFolder folder;
  const auto messages = test::random_messages(3000, 3);
  for (const McapCompression compression : kAll) {
    McapWriteOptions options;
    options.compression = compression;
    options.chunk_bytes = 5000;
    test::write(folder / "one", messages, options);
    const std::string one = read_file(folder / "one").value();
    for (const int threads : {2, 3, 5}) {
      options.threads = threads;
      test::write(folder / "many", messages, options);
      EXPECT_TRUE(read_file(folder / "many").value() == one) << chunk_name(compression) << " " << threads;
    }
  }
}

TEST(McapWriter, WhatIsWrittenIsReadInEveryOrder) {
  const ScratchFolder folder;
  uint32_t seed = 0;
  for (const McapCompression compression : kAll) {
    for (const uint64_t chunk_bytes : {1UL, 3000UL, 1UL << 20}) {
      ++seed;
      const auto messages = test::random_messages(1500, seed, seed % 2 == 0 ? 0 : 400'000);
      McapWriteOptions options;
      options.compression = compression;
      options.level = seed % 2 == 0 ? McapLevel::kDefault : McapLevel::kSmallest;
      options.chunk_bytes = chunk_bytes;
      test::write(folder / "bag", messages, options);
      for (const int threads : {1, 3}) {
        McapReadOptions read_options;
        read_options.threads = threads;
        const McapReader reader = McapReader::open(folder / "bag", read_options).value();
        EXPECT_TRUE(reader.contents().indexed);
        EXPECT_TRUE(reader.faults().empty());
        EXPECT_TRUE(reader.data_section_holds());
        McapQuery query;
        EXPECT_TRUE(test::read_all(reader, query) == test::by_time(messages));
        query.order = McapQuery::Order::kFile;
        EXPECT_TRUE(test::read_all(reader, query) == messages);

        query.topics = {"/topic1", "/topic2", "/none"};
        query.start = 1'200'000;
        query.end = 1'900'000;
        std::vector<Sent> wanted;
        for (const Sent& m : messages)
          if (m.topic != "/topic0" && m.log_time >= query.start && m.log_time < *query.end) wanted.push_back(m);
        ASSERT_FALSE(wanted.empty());
        EXPECT_TRUE(test::read_all(reader, query) == wanted);
        query.order = McapQuery::Order::kLogTime;
        EXPECT_TRUE(test::read_all(reader, query) == test::by_time(wanted));
      }
    }
  }
}

TEST(McapWriter, StatisticsAndIndexesSayWhatWasWritten) {
  const ScratchFolder folder;
  const auto messages = test::random_messages(200, 9);
  McapWriteOptions options;
  options.chunk_bytes = 2000;
  test::write(folder / "bag", messages, options);
  const McapReader reader = McapReader::open(folder / "bag").value();
  const McapStatistics& statistics = reader.contents().statistics.value();
  EXPECT_EQ(statistics.message_count, 200U);
  EXPECT_EQ(statistics.channel_count, 3U);
  EXPECT_EQ(statistics.schema_count, 1U);
  EXPECT_EQ(statistics.attachment_count, 1U);
  EXPECT_EQ(statistics.metadata_count, 1U);
  EXPECT_EQ(statistics.message_start_time, test::by_time(messages).front().log_time);
  EXPECT_EQ(statistics.message_end_time, test::by_time(messages).back().log_time);

  const McapAttachment attachment = reader.attachment(reader.contents().attachments.at(0)).value();
  EXPECT_EQ(attachment.name, "notes.txt");
  EXPECT_EQ(std::string(attachment.data.begin(), attachment.data.end()), "calibration");
  EXPECT_EQ(*find_value(reader.metadata(reader.contents().metadata.at(0)).value().metadata, "rain"), "10");

  // Every entry of every message index leads to a message of that time and channel.
  size_t entries = 0;
  for (const McapChunkIndex& chunk : reader.contents().chunks) {
    McapRecord record;
    McapCursor at_chunk(reader.bytes(), chunk.chunk_start_offset);
    ASSERT_EQ(at_chunk.next(record), McapCursor::Step::kRecord);
    McapBuffer plain;
    ASSERT_TRUE(
        McapCodec().decompress("zstd", parse_chunk(record.content).value().records, chunk.uncompressed_size, plain));
    for (const auto& [channel, offset] : chunk.message_index_offsets) {
      McapCursor at_index(reader.bytes(), offset);
      ASSERT_EQ(at_index.next(record), McapCursor::Step::kRecord);
      ASSERT_EQ(record.opcode, McapOpcode::kMessageIndex);
      const McapMessageIndex index = parse_message_index(record.content).value();
      for (const auto& [time, place] : index.records) {
        McapMessage message;
        McapCursor at_message(plain.view(), place);
        ASSERT_EQ(at_message.next(record), McapCursor::Step::kRecord);
        ASSERT_TRUE(parse_message(record.content, message));
        EXPECT_EQ(message.log_time, time);
        EXPECT_EQ(message.channel_id, channel);
        ++entries;
      }
    }
  }
  EXPECT_EQ(entries, 200U);
}

TEST(McapWriter, AFileHasItsNameOnlyWhenItIsComplete) {
  const ScratchFolder folder;
  {
    McapWriter writer = McapWriter::create(folder / "bag").value();
    EXPECT_FALSE(std::filesystem::exists(folder / "bag"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  McapWriter writer = McapWriter::create(folder / "bag").value();
  ASSERT_TRUE(writer.close());
  EXPECT_TRUE(McapReader::open(folder / "bag").value().contents().complete);
}

TEST(McapWriter, RefusesWhatCannotBe) {
  const ScratchFolder folder;
  EXPECT_EQ(McapWriter::create(folder / "none" / "bag").error().kind(), ErrorKind::kIo);
  EXPECT_EQ(McapWriter::create(folder.path()).error().kind(), ErrorKind::kIo);
  McapWriter writer = McapWriter::create(folder / "bag").value();
  EXPECT_EQ(writer.write({1, 0, 0, 0, {}}).error().kind(), ErrorKind::kUsage);
  EXPECT_EQ(writer.add_channel({0, 4, "/x", "cdr", {}}).error().kind(), ErrorKind::kUsage);
  // The same channel again is the same one.
  const uint16_t id = writer.add_channel({0, 0, "/x", "cdr", {}}).value();
  EXPECT_EQ(writer.add_channel({0, 0, "/x", "cdr", {}}).value(), id);
  EXPECT_NE(writer.add_channel({0, 0, "/x", "json", {}}).value(), id);
}

}  // namespace
}  // namespace strobe::sensors
