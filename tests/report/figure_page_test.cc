#include "report/figure_page.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "report/plotly_file.h"

namespace strobe::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(FigurePage, IsCompleteAndSafe) {
  if (!find_plotly("")) GTEST_SKIP() << "plotly.min.js is absent";
  Table table("A <table>", {{"net", "", 0}, {"error", "", 1}});
  table.add_row({std::string("</script><b>"), 2.5});
  Figure figure{"Title & more", "A sentence.", "x, ms", "y, ms", true, {}};
  figure.series.push_back({"</script>", {1, 10}, {2, 20}, {1, 15}, {3, 22}, {"a", "b"}, false, false, 0});
  figure.series.push_back({"right", {1, 10}, {1, 10}, {}, {}, {}, true, true, -1});
  const auto page = figure_page("Error of <nets>", table, {figure});
  ASSERT_TRUE(page) << page.error().to_string();
  EXPECT_THAT(*page, HasSubstr("Error of &lt;nets&gt;"));
  EXPECT_THAT(*page, HasSubstr("Title &amp; more"));
  EXPECT_THAT(*page, HasSubstr("&lt;/script&gt;&lt;b&gt;"));
  EXPECT_THAT(*page, Not(HasSubstr("<script src")));
  // The figure's data are JSON between its tags, with bars as distances from the point.
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page->find(open) + open.size(), end = page->find("</script>", begin);
  const auto data = nlohmann::json::parse(page->substr(begin, end - begin));
  const auto& series = data["figures"][0]["series"];
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[0]["name"], "</script>");
  EXPECT_EQ(series[0]["error_y"]["array"], (nlohmann::json{1.0, 2.0}));
  EXPECT_EQ(series[0]["error_y"]["arrayminus"], (nlohmann::json{1.0, 5.0}));
  EXPECT_EQ(series[1]["line"]["dash"], "dash");
  EXPECT_FALSE(series[1].contains("error_y"));
}

}  // namespace
}  // namespace strobe::report
