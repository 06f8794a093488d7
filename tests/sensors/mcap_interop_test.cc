// PyPI's mcap and rosbags read what we write, and we read what mcap writes.
#include <cstdio>
#include <sstream>

#include "base/sha256.h"
#include "sensors/mcap_test.h"
#include "support/test_data.h"

namespace strobe::sensors {
namespace {

using strobe::test::ScratchFolder;
using test::Sent;

// What mcap_peer.py prints; a status other than 0 is a failure of the test.
std::string peer(const std::string& words) {
  const std::string script = std::string(STROBE_SENSORS_TESTS) + "/mcap_peer.py";
  const std::string command = std::string(STROBE_TEST_PYTHON) + " '" + script + "' " + words;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  for (size_t count; (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, count);
  EXPECT_EQ(::pclose(pipe), 0) << words;
  return text;
}

bool has_peer() {
  return *STROBE_TEST_PYTHON != '\0' &&
         std::system((std::string(STROBE_TEST_PYTHON) + " -c 'import mcap, rosbags' 2>/dev/null").c_str()) == 0;
}
#define STROBE_REQUIRE_PEER() \
  if (!has_peer()) GTEST_SKIP() << "STROBE_PYTHON has no mcap or no rosbags"

std::string listing(const std::vector<Sent>& messages, bool all_numbers) {
  std::ostringstream text;
  for (const Sent& m : messages) {
    text << m.topic << ' ';
    if (all_numbers) text << m.sequence << ' ';
    text << m.log_time << ' ';
    if (all_numbers) text << m.publish_time << ' ';
    text << sha256(m.data) << '\n';
  }
  return text.str();
}

TEST(McapInterop, OthersReadAndVerifyWhatWeWrite) {
  STROBE_REQUIRE_PEER();
  const ScratchFolder folder;
  uint32_t seed = 40;
  for (const McapCompression compression : {McapCompression::kNone, McapCompression::kLz4, McapCompression::kZstd}) {
    for (const bool chunks : {true, false}) {
      if (!chunks && compression != McapCompression::kNone) continue;
      auto messages = test::random_messages(400, ++seed, 0);
      McapWriteOptions options;
      options.profile = "ros2";
      options.compression = compression;
      options.chunks = chunks;
      options.chunk_bytes = 4000;
      options.threads = 3;
      const std::string file = (folder / "bag.mcap").string();
      test::write(file, messages, options);
      EXPECT_TRUE(peer("read '" + file + "'") == listing(test::by_time(messages), true))
          << chunk_name(compression) << chunks;
      if (!chunks) continue;  // rosbags reads indexed files only
      // It wants a schema for each topic; /topic2 has none.
      for (Sent& m : messages) m.topic = m.topic == "/topic2" ? "/topic1" : m.topic;
      test::write(file, messages, options);
      EXPECT_TRUE(peer("rosbags '" + file + "'") == listing(test::by_time(messages), false)) << chunk_name(compression);
    }
  }
}

TEST(McapInterop, WeReadWhatOthersWrite) {
  STROBE_REQUIRE_PEER();
  const ScratchFolder folder;
  const std::string file = (folder / "bag.mcap").string();
  for (
      const char* options :
      {R"({"compression": "ZSTD", "chunk_size": 3000})", R"({"compression": "LZ4", "chunk_size": 3000})",
       R"({"compression": "NONE", "chunk_size": 3000, "enable_data_crcs": true})",
       R"({"compression": "NONE", "use_chunking": false, "enable_data_crcs": true})",
       R"({"compression": "LZ4", "chunk_size": 1, "use_statistics": false})",
       R"({"compression": "ZSTD", "chunk_size": 900, "index_types": 1, "repeat_channels": false, "repeat_schemas": false})",
       R"({"compression": "ZSTD", "chunk_size": 900, "use_summary_offsets": false, "enable_crcs": false})"}) {
    const std::string expected = peer("write '" + file + "' '" + options + "'");
    for (const int threads : {1, 3}) {
      McapReadOptions read_options;
      read_options.threads = threads;
      const McapReader reader = McapReader::open(file, read_options).value();
      EXPECT_TRUE(reader.faults().empty()) << options << ": " << reader.faults().front();
      EXPECT_TRUE(reader.data_section_holds());
      EXPECT_EQ(reader.contents().attachments.size(), 1U);
      EXPECT_EQ(reader.contents().metadata.size(), 1U);
      EXPECT_TRUE(listing(test::read_all(reader), true) == expected) << options;
    }
  }
}

}  // namespace
}  // namespace strobe::sensors
