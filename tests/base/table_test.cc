#include "base/table.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

Table sample() {
  Table table("Stages", {{"stage", "", 0}, {"count", "", 0}, {"p50_ms", "", 3}});
  table.add_row({std::string("read"), int64_t{3}, 1.5});
  table.add_row({std::string("infer"), int64_t{4}, std::monostate{}});
  return table;
}

TEST(Table, FindsCellsByColumnName) {
  const Table table = sample();
  EXPECT_EQ(table.text(1, "stage"), "infer");
  EXPECT_EQ(table.number(0, "count"), 3.0);
  EXPECT_EQ(table.number(0, "p50_ms"), 1.5);
}

TEST(Table, MissingCellsColumnsAndRowsAreNothing) {
  const Table table = sample();
  EXPECT_FALSE(table.number(1, "p50_ms"));
  EXPECT_FALSE(table.number(0, "p99_ms"));
  EXPECT_FALSE(table.number(2, "count"));
  EXPECT_FALSE(table.number(0, "stage"));
  EXPECT_EQ(table.text(0, "count"), "");
}

TEST(Table, ARowOfAnotherLengthStopsTheProgram) {
  Table table = sample();
  EXPECT_DEATH(table.add_row({std::string("x")}), "takes 3 cells a row, not 1");
}

}  // namespace
}  // namespace strobe
