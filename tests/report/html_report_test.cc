#include "report/html_report.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "report/synthetic_timeline.h"

namespace strobe::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class HtmlReport : public testing::Test {
 protected:
  void SetUp() override { std::ofstream(plotly_) << "var Plotly={};//</script>"; }
  void TearDown() override { std::filesystem::remove(plotly_); }
  Result<std::string> page(const std::vector<ReportInput>& runs, const std::string& title = "A run") const {
    return html_report(runs, {title, plotly_.string()});
  }

  const std::filesystem::path plotly_ =
      std::filesystem::path(testing::TempDir()) / ("plotly-" + std::to_string(::getpid()) + ".js");
};

// What stands between the two texts.
std::string between(const std::string& page, const std::string& begin, const std::string& end) {
  const size_t at = page.find(begin);
  if (at == std::string::npos) return {};
  return page.substr(at + begin.size(), page.find(end, at + begin.size()) - at - begin.size());
}

TEST_F(HtmlReport, IsOneFileThatAsksForNothing) {
  const auto timeline = test::synthetic_timeline({});
  const auto made = page({{"torch", &timeline}});
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_THAT(*made, HasSubstr("default-src 'none'"));
  for (const char* outside : {"<link rel=\"stylesheet\"", "<script src", "@import", "url(http"})
    EXPECT_THAT(*made, Not(HasSubstr(outside)));
  EXPECT_THAT(*made, Not(HasSubstr("{{")));
}

TEST_F(HtmlReport, DataIsJsonAndEndsNoScript) {
  test::SyntheticOptions options;
  options.engine = "</script><!-- {{title}} \xff";  // also no UTF-8
  const auto timeline = test::synthetic_timeline(options);
  const auto made = page({{options.engine, &timeline}}, "<b> & \"title\"");
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_THAT(*made, HasSubstr("<title>&lt;b&gt; &amp; &quot;title&quot;</title>"));
  const std::string text = between(*made, "<script id=\"strobe-data\" type=\"application/json\">", "</script>");
  const auto data = nlohmann::json::parse(text, nullptr, false);
  ASSERT_FALSE(data.is_discarded());
  EXPECT_EQ(data["runs"][0]["label"], "</script><!-- {{title}} \xef\xbf\xbd");
  EXPECT_EQ(data["runs"][0]["timeline"]["ranges"], timeline.ranges.size());
  EXPECT_EQ(data["comparison"]["rows"].size(), 1u);
}

TEST_F(HtmlReport, FirstTableCanBeReadWithoutScripts) {
  const auto timeline = test::synthetic_timeline({});
  const auto made = page({{"<torch>", &timeline}});
  ASSERT_TRUE(made) << made.error().to_string();
  const std::string text = between(*made, "<noscript>", "</noscript>");
  EXPECT_THAT(text, HasSubstr("end_to_end_fps"));
  EXPECT_THAT(text, HasSubstr("&lt;torch&gt;"));
}

TEST_F(HtmlReport, RefusesWhatIsNotPlotly) {
  std::ofstream(plotly_) << "something else";
  const auto timeline = test::synthetic_timeline({});
  const auto made = page({{"torch", &timeline}});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().to_string(), HasSubstr("not plotly.min.js"));
  EXPECT_FALSE(page({}));
}

}  // namespace
}  // namespace strobe::report
