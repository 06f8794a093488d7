#include "report/table_format.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>

#include "support/test_data.h"

namespace strobe::report {
namespace {

using ::testing::HasSubstr;

Table engines() {
  Table table("Throughput", {{"engine", "", 3}, {"frames", "", 0}, {"end_to_end_fps", "", 2}, {"limit_share", "", 3}});
  table.add_row({std::string("torch"), int64_t{168}, 12.3456789, std::monostate{}});
  table.add_row({std::string("openvino"), int64_t{168}, 104.5, 0.97});
  table.coverage = 0.9821;
  table.notes = {"limit_fps of torch is missing: no alone pass"};
  return table;
}

// Names that break naive writers, one a row.
const std::vector<std::string> kAwkward = {"plain",
                                           "comma, inside",
                                           "quote \" inside",
                                           "two\nlines",
                                           "crlf\r\nhere",
                                           " padded ",
                                           "",
                                           "naïve 日本語 🚀",
                                           "</script><img onerror=alert(1)>",
                                           "back\\slash",
                                           "tab\there"};

Table awkward() {
  Table table("Awkward", {{"name, of \"it\"", "", 3}, {"count", "", 0}, {"measure", "", 3}});
  for (size_t i = 0; i < kAwkward.size(); ++i)
    table.add_row({kAwkward[i], static_cast<int64_t>(i), 1.0 / 3 * static_cast<double>(i)});
  table.add_row({std::monostate{}, std::numeric_limits<int64_t>::min(), std::numeric_limits<double>::infinity()});
  table.add_row({std::string("last"), std::numeric_limits<int64_t>::max(), std::nan("")});
  return table;
}

TEST(TableText, AlignsNumbersRightAndTextLeft) {
  EXPECT_EQ(format_table(engines(), Format::kText),
            "Throughput\n"
            "\n"
            "engine    frames  end_to_end_fps  limit_share\n"
            "--------  ------  --------------  -----------\n"
            "torch        168           12.35            -\n"
            "openvino     168          104.50        0.970\n"
            "\n"
            "coverage: 98.2 %\n"
            "note: limit_fps of torch is missing: no alone pass\n");
}

TEST(TableText, CountsTerminalCellsNotBytes) {
  Table table("", {{"name", "", 3}, {"n", "", 0}});
  for (const char* name : {"naïve", "日本", "🚀", "e\u0301"}) table.add_row({std::string(name), int64_t{1}});
  EXPECT_EQ(format_table(table, Format::kText),
            "name   n\n"
            "-----  -\n"
            "naïve  1\n"
            "日本   1\n"
            "🚀     1\n"
            "e\u0301      1\n");
}

TEST(TableText, ControlCharactersNeitherBreakLinesNorCommandTheTerminal) {
  Table table("", {{"name", "", 3}});
  table.add_row({std::string("a\nb\tc\x1b[31m\x7f\xff")});
  EXPECT_EQ(format_table(table, Format::kText), "name\n------------\na b c?[31m?\xEF\xBF\xBD\n");
}

TEST(TableText, SaysWhenThereIsNothing) {
  const Table table("Empty", {{"a", "", 3}});
  EXPECT_EQ(format_table(table, Format::kText), "Empty\n\na\n-\n(no rows)\n");
}

TEST(TableText, HugeNumbersAreWhole) {
  Table table("", {{"x", "", 1}});
  table.add_row({1e300});
  EXPECT_THAT(format_table(table, Format::kText), HasSubstr(".0\n"));
}

TEST(TableCsv, QuotesWhatNeedsItAndKeepsFullPrecision) {
  Table table("not shown", {{"a,b", "", 0}, {"c", "", 0}});
  table.add_row({std::string("say \"hi\""), 0.1});
  table.add_row({std::monostate{}, 1e-300});
  table.notes = {"not shown"};
  EXPECT_EQ(format_table(table, Format::kCsv), "\"a,b\",c\n\"say \"\"hi\"\"\",0.1\n,1e-300\n");
}

TEST(TableJson, KeepsColumnOrderAndNamesWhatIsMissing) {
  EXPECT_EQ(format_table(engines(), Format::kJson), R"({
  "title": "Throughput",
  "rows": [
    {
      "engine": "torch",
      "frames": 168,
      "end_to_end_fps": 12.3456789,
      "limit_share": null
    },
    {
      "engine": "openvino",
      "frames": 168,
      "end_to_end_fps": 104.5,
      "limit_share": 0.97
    }
  ],
  "coverage": 0.9821,
  "notes": [
    "limit_fps of torch is missing: no alone pass"
  ]
}
)");
}

TEST(TableJson, BrokenUtf8IsReplacedNotThrown) {
  Table table("", {{"a", "", 0}});
  table.add_row({std::string("\xff\xfe")});
  EXPECT_THAT(format_table(table, Format::kJson), HasSubstr("\xEF\xBF\xBD"));
}

TEST(ParseFormat, KnowsThreeAndNamesThem) {
  EXPECT_EQ(*parse_format("csv"), Format::kCsv);
  auto unknown = parse_format("xml");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind(), ErrorKind::kUsage);
  EXPECT_THAT(unknown.error().to_string(), HasSubstr("text, csv and json"));
}

// What an independent reader makes of our output; skips where there is no Python.
class ReadByPython : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("python3 -c 'import csv, json' 2>/dev/null") != 0) GTEST_SKIP() << "python3 is absent";
  }
  std::string run(const std::string& text, const std::string& script) {
    std::ofstream(scratch_ / "data", std::ios::binary) << text;
    std::ofstream(scratch_ / "read.py") << script;
    const std::string command =
        "python3 '" + (scratch_ / "read.py").string() + "' '" + (scratch_ / "data").string() + "' 2>&1";
    std::FILE* pipe = ::popen(command.c_str(), "r");
    std::string out;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) out += static_cast<char>(c);
    ::pclose(pipe);
    return out;
  }
  std::string expected_names() const {
    std::string hex;
    for (const std::string& name : kAwkward) {
      for (const unsigned char c : name) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", c);
        hex += digits;
      }
      hex += ';';
    }
    return hex;
  }
  test::ScratchFolder scratch_;
};

TEST_F(ReadByPython, CsvComesBackExactly) {
  const std::string out = run(format_table(awkward(), Format::kCsv), R"(
import csv, math, sys
rows = list(csv.DictReader(open(sys.argv[1], newline='', encoding='utf-8')))
print(list(rows[0].keys()))
print(''.join(r['name, of "it"'].encode().hex() + ';' for r in rows[:-2]))
print(all(int(r['count']) == i and float(r['measure']) == 1.0 / 3 * i for i, r in enumerate(rows[:-2])))
print(rows[-2]['name, of "it"'] == '', int(rows[-2]['count']) == -2**63, float(rows[-2]['measure']) == math.inf)
print(int(rows[-1]['count']) == 2**63 - 1, math.isnan(float(rows[-1]['measure'])))
)");
  EXPECT_EQ(out,
            "['name, of \"it\"', 'count', 'measure']\n" + expected_names() + "\nTrue\nTrue True True\nTrue True\n");
}

TEST_F(ReadByPython, JsonComesBackExactly) {
  const std::string out = run(format_table(awkward(), Format::kJson), R"(
import json, sys
def refuse(x): raise ValueError(x)
table = json.load(open(sys.argv[1], encoding='utf-8'), parse_constant=refuse)
rows = table['rows']
print(table['title'], list(rows[0].keys()))
print(''.join(r['name, of "it"'].encode().hex() + ';' for r in rows[:-2]))
print(all(r['count'] == i and r['measure'] == 1.0 / 3 * i for i, r in enumerate(rows[:-2])))
print(rows[-2]['name, of "it"'] is None, rows[-2]['count'] == -2**63, rows[-2]['measure'] is None)
print(rows[-1]['count'] == 2**63 - 1, rows[-1]['measure'] is None)
)");
  EXPECT_EQ(out, "Awkward ['name, of \"it\"', 'count', 'measure']\n" + expected_names() +
                     "\nTrue\nTrue True True\nTrue True\n");
}

TEST(TextTable, ShortensNamesAndKeepsSentences) {
  const std::string name = "void gemm<" + std::string(100, 'x') + ">(int)";
  const std::string sentence(100, 's');
  Table table("", {{"name", ""}, {"why", "", 3, true}});
  table.add_row({name, sentence});
  const std::string text = format_table(table, Format::kText);
  EXPECT_THAT(text, testing::HasSubstr("void gemm<…>(…)"));
  EXPECT_THAT(text, testing::HasSubstr(sentence));
  EXPECT_THAT(format_table(table, Format::kCsv), testing::HasSubstr(name));
  EXPECT_THAT(format_table(table, Format::kJson), testing::HasSubstr(name));
}

}  // namespace
}  // namespace strobe::report
