#include "analyze/query.h"

#include <gmock/gmock.h>
#include <sqlite3.h>

#include <fstream>
#include <sstream>

#include "support/test_data.h"

namespace strobe::analyze {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Query : public testing::Test {
 protected:
  void SetUp() override {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file_.c_str(), &database), SQLITE_OK);
    const char* sql =
        "CREATE TABLE t (n INTEGER, x REAL, s TEXT, b BLOB); CREATE VIEW v AS SELECT n FROM t;"
        "INSERT INTO t VALUES (1, 0.5, 'a,\"b\"', x'0aff'), (2, NULL, NULL, NULL)";
    ASSERT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }
  Result<void> run(const std::string& sql, size_t most = SIZE_MAX) {
    rows_.clear();
    return query(file_, sql,
                 {[this](const std::vector<std::string>& names) { names_ = names; },
                  [this, most](const std::vector<Cell>& row) {
                    rows_.push_back(row);
                    return rows_.size() < most;
                  }});
  }
  std::string refusal(const std::string& sql) {
    const auto done = run(sql);
    EXPECT_FALSE(done) << sql;
    EXPECT_TRUE(rows_.empty()) << sql;
    return done ? "" : done.error().to_string();
  }

  test::ScratchFolder folder_;
  std::filesystem::path file_ = folder_ / "t.sqlite";
  std::vector<std::string> names_;
  std::vector<std::vector<Cell>> rows_;
};

TEST_F(Query, RowsOfEveryType) {
  ASSERT_TRUE(run("SELECT n, x, s AS text, b FROM t ORDER BY n;  "));
  EXPECT_THAT(names_, ElementsAre("n", "x", "text", "b"));
  ASSERT_EQ(rows_.size(), 2U);
  EXPECT_THAT(rows_[0], ElementsAre(Cell(int64_t{1}), Cell(0.5), Cell("a,\"b\""), Cell("X'0AFF'")));
  EXPECT_THAT(rows_[1], ElementsAre(Cell(int64_t{2}), Cell(), Cell(), Cell()));
  ASSERT_TRUE(run("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 5) SELECT i FROM c"));
  EXPECT_EQ(rows_.size(), 5U);
  ASSERT_TRUE(run("SELECT n FROM v"));
  EXPECT_EQ(rows_.size(), 2U);
  ASSERT_TRUE(run("PRAGMA table_info(t)"));
  EXPECT_EQ(rows_.size(), 4U);
  ASSERT_TRUE(run("SELECT n FROM t WHERE n > 9"));
  EXPECT_THAT(names_, ElementsAre("n"));
}

TEST_F(Query, StopsWhereTheReaderDoes) {
  ASSERT_TRUE(run("WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT i FROM c", 3));
  EXPECT_EQ(rows_.size(), 3U);
}

TEST_F(Query, ChangesNothing) {
  const auto bytes = [&] {
    std::ostringstream all;
    all << std::ifstream(file_, std::ios::binary).rdbuf();
    return all.str();
  };
  const std::string before = bytes();
  const std::string other = (folder_ / "other.sqlite").string();
  for (const std::string& sql :
       {std::string("DELETE FROM t"), std::string("INSERT INTO t VALUES (1, 2, 3, 4)"), std::string("DROP TABLE t"),
        std::string("CREATE TABLE u (x)"), std::string("CREATE TEMP TABLE u (x)"), std::string("UPDATE t SET n = 0"),
        "ATTACH '" + other + "' AS o", "VACUUM INTO '" + other + "'", std::string("PRAGMA user_version = 5"),
        std::string("PRAGMA journal_mode = DELETE"), std::string("PRAGMA query_only = OFF"),
        std::string("PRAGMA writable_schema = ON"), std::string("BEGIN"), std::string("SELECT load_extension('x')"),
        std::string("ANALYZE")})
    EXPECT_FALSE(refusal(sql).empty()) << sql;
  EXPECT_THAT(refusal("DELETE FROM t"), HasSubstr("a query may only read"));
  EXPECT_EQ(bytes(), before);
  EXPECT_FALSE(std::filesystem::exists(other));
}

TEST_F(Query, ErrorsSayWhere) {
  EXPECT_THAT(refusal("SELECT nn FROM t"),
              AllOf(HasSubstr("no such column: nn"), HasSubstr("at character 8, near 'nn FROM t'")));
  EXPECT_THAT(refusal("SELEC 1"), HasSubstr("at character 1"));
  EXPECT_THAT(refusal("SELECT 1; SELECT 2"), HasSubstr("one statement at a time; the second begins at character 10"));
  EXPECT_THAT(refusal("  "), HasSubstr("nothing to run"));
  file_ = folder_ / "none.sqlite";
  EXPECT_THAT(refusal("SELECT 1"), HasSubstr("no such file"));
  file_ = folder_ / "text.sqlite";
  std::ofstream(file_) << std::string(5000, 'x');
  EXPECT_THAT(refusal("SELECT 1"), HasSubstr("no SQLite file"));
}

}  // namespace
}  // namespace strobe::analyze
