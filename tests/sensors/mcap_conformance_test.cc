// The format's own conformance pairs: every listing equals ours, and every file is written byte for byte.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "sensors/mcap_file.h"
#include "sensors/mcap_listing.h"
#include "support/test_data.h"

namespace strobe::sensors {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::vector<fs::path> pairs() {
  std::vector<fs::path> found;
  const fs::path root = test::shared_data("sensors/mcap/conformance");
  if (!fs::exists(root)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.path().extension() == ".json") found.push_back(entry.path());
  return found;
}

json listed(const fs::path& path) {
  const McapFile file = McapFile::open(path).value();
  json records = json::array();
  const auto faults =
      list_records(file.bytes(), [&](std::string_view line) { records.push_back(json::parse(line)); }).value();
  EXPECT_TRUE(faults.empty()) << path << ": " << faults.front();
  return records;
}

TEST(McapConformance, EveryPairIsListedAsExpected) {
  const auto all = pairs();
  STROBE_REQUIRE_DATA(test::shared_data("sensors/mcap/conformance"));
  ASSERT_GE(all.size(), 208U);
  for (const fs::path& path : all) {
    const json expected = json::parse(read_file(path).value());
    EXPECT_EQ(listed(fs::path(path).replace_extension(".mcap")), expected.at("records")) << path;
  }
}

TEST(McapConformance, EveryFileIsWrittenByteForByte) {
  const auto all = pairs();
  STROBE_REQUIRE_DATA(test::shared_data("sensors/mcap/conformance"));
  const test::ScratchFolder folder;
  for (const fs::path& path : all) {
    const auto done = write_listing(read_file(path).value(), folder / "out.mcap");
    ASSERT_TRUE(done) << path << ": " << done.error().to_string();
    EXPECT_TRUE(read_file(folder / "out.mcap").value() == read_file(fs::path(path).replace_extension(".mcap")).value())
        << path;
  }
}

// The pairs that are not at hand: every combination of features of a listing that may be combined.
TEST(McapConformance, EveryCombinationOfFeaturesComesBack) {
  STROBE_REQUIRE_DATA(test::shared_data("sensors/mcap/conformance"));
  const test::ScratchFolder folder;
  const std::vector<std::string> features = {"ch", "mx", "st", "rsh", "rch", "ax", "mdx", "chx", "sum", "pad"};
  for (const std::string name :
       {"OneAttachment/OneAttachment-st", "OneMetadata/OneMetadata-st", "OneMessage/OneMessage-st"}) {
    json listing = json::parse(read_file(test::shared_data("sensors/mcap/conformance/" + name + ".json")).value());
    for (uint32_t mask = 0; mask < 1U << features.size(); ++mask) {
      json& chosen = listing["meta"]["variant"]["features"] = json::array();
      for (size_t i = 0; i < features.size(); ++i)
        if ((mask >> i & 1) != 0) chosen.push_back(features[i]);
      ASSERT_TRUE(write_listing(listing.dump(), folder / "out.mcap"));
      const json records = listed(folder / "out.mcap");
      size_t i = 0;
      for (; listing["records"][i]["type"] != "DataEnd"; ++i)
        ASSERT_EQ(records[i], listing["records"][i]) << name << " " << chosen;
      ASSERT_EQ(records[i]["type"], "DataEnd") << name << " " << chosen;
    }
  }
}

TEST(McapConformance, AListingThatIsNoneIsRefused) {
  const test::ScratchFolder folder;
  for (const char* text :
       {"", "[]", "{}", R"({"records": [], "meta": {"variant": {"features": []}}})",
        R"({"records": [{"type": "Header", "fields": []}], "meta": {"variant": {"features": []}}})"}) {
    const auto done = write_listing(text, folder / "out.mcap");
    ASSERT_FALSE(done) << text;
    EXPECT_EQ(done.error().exit_code(), 2);
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace strobe::sensors
