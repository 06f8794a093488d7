#include "sensors/nuscenes_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "support/test_data.h"

namespace strobe::sensors {
namespace {

using testing::HasSubstr;

// A text with the readable bytes behind it that a cursor wants.
struct Text {
  explicit Text(std::string text) : size(text.size()), padded(std::move(text) + std::string(16, '\0')) {}
  JsonCursor cursor() { return {std::string_view(padded).substr(0, size), unescaped}; }
  size_t size;
  std::string padded;
  std::deque<std::string> unescaped;
};

double number(const std::string& text) {
  Text t(text);
  JsonCursor in = t.cursor();
  const double v = in.number();
  in.finish();
  EXPECT_TRUE(in.ok()) << text;
  return v;
}

std::string fault_of_number(const std::string& text) {
  Text t(text);
  JsonCursor in = t.cursor();
  in.number();
  in.finish();
  return in.ok() ? "" : in.status().error().message();
}

TEST(NuScenesJson, Numbers) {
  EXPECT_EQ(number("0"), 0);
  EXPECT_EQ(number("-12.5e-3"), -0.0125);
  EXPECT_EQ(number(" 1532402927647951 "), 1532402927647951.0);
  EXPECT_EQ(number("0.1"), 0.1);
  EXPECT_TRUE(std::isnan(number("NaN")));
  EXPECT_EQ(number("-Infinity"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(number("1e999"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(number("1e-999"), 0);
  for (const char* bad : {"", "nan", "inf", "-", "1x", "\"1\"", "null", "+1", "[1]"})
    EXPECT_THAT(fault_of_number(bad), HasSubstr("a number")) << bad;
}

TEST(NuScenesJson, Strings) {
  Text t(R"(["plain","a\"b\\c\/\n","é \u00e9 \ud83d\ude00 \ud83d","" , "sixteen bytes and more without an escape"])");
  JsonCursor in = t.cursor();
  std::vector<std::string> all;
  in.begin_array();
  while (in.next_element()) all.emplace_back(in.string());
  in.finish();
  EXPECT_TRUE(in.ok());
  EXPECT_THAT(all, testing::ElementsAre("plain", "a\"b\\c/\n", "é é 😀 \xEF\xBF\xBD", "",
                                        "sixteen bytes and more without an escape"));
}

TEST(NuScenesJson, SkipsWhatIsNotAskedFor) {
  Text t(R"({"a": {"b": [1, {"c": "]}"}, [], {}], "d": null}, "x": 7, "e": -1.5e3, "f": true})");
  JsonCursor in = t.cursor();
  std::string_view key;
  int64_t x = 0;
  in.begin_object();
  while (in.next_member(key)) {
    if (key == "x") {
      x = in.integer();
    } else {
      in.skip();
    }
  }
  in.finish();
  EXPECT_TRUE(in.ok()) << in.status().error().message();
  EXPECT_EQ(x, 7);
}

TEST(NuScenesJson, FaultsSayTheLine) {
  const auto fault = [](const std::string& text) {
    Text t(text);
    JsonCursor in = t.cursor();
    in.begin_array();
    while (in.next_element()) in.skip();
    in.finish();
    return in.ok() ? std::string() : in.status().error().message();
  };
  EXPECT_THAT(fault("[1,\n2"), HasSubstr("line 2: the text ends"));
  EXPECT_THAT(fault("[1 2]"), HasSubstr("',' or ']'"));
  EXPECT_THAT(fault("[{\"a\" 1}]"), HasSubstr("':'"));
  EXPECT_THAT(fault("[1] 2"), HasSubstr("the end of the text"));
  EXPECT_THAT(fault("[\"abc"), HasSubstr("end of a string"));
  EXPECT_THAT(fault("[\"\\q\"]"), HasSubstr("an escape"));
  EXPECT_THAT(fault("[1,]"), HasSubstr("a value"));
  EXPECT_THAT(fault(std::string(100, '[')), HasSubstr("nested"));
}

TEST(NuScenesJson, FilesOfWholePagesCanBeReadBehindTheirEnd) {
  test::ScratchFolder folder;
  std::ofstream(folder / "page") << std::string(4095, ' ') + "7";
  auto file = MappedText::open(folder / "page");
  ASSERT_TRUE(file);
  std::deque<std::string> unescaped;
  JsonCursor in(file->text(), unescaped);
  EXPECT_EQ(in.number(), 7);
  EXPECT_EQ(file->text().data()[4096], 0);
  EXPECT_FALSE(MappedText::open(folder / "none"));
  EXPECT_FALSE(MappedText::open(folder.path()));
}

}  // namespace
}  // namespace strobe::sensors
