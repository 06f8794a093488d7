// What is written page by page, SQLite finds whole and reads back.
#include "trace/bulk_table.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cmath>
#include <limits>
#include <vector>

#include "support/test_data.h"
#include "trace/sqlite.h"
#include "trace/store_bulk.h"

namespace strobe::trace {
namespace {

namespace fs = std::filesystem;

std::string integrity(Database& database) {
  auto check = database.prepare("PRAGMA integrity_check");
  if (!check || !check->step()) return "cannot be asked";
  return std::string(check->text(0));
}

// Two tables in a file with that page size; rows(table) fills the second.
template <typename WriteRows>
void make(const fs::path& path, int page_size, WriteRows rows) {
  auto database = Database::create(path, page_size);
  ASSERT_TRUE(database);
  ASSERT_TRUE(
      database->execute("CREATE TABLE other (a TEXT); INSERT INTO other VALUES ('here');"
                        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b REAL)"));
  const auto roots = root_pages(*database);
  ASSERT_TRUE(roots);
  ASSERT_TRUE(database->close());
  auto file = BulkFile::open(path);
  ASSERT_TRUE(file) << file.error().to_string();
  BulkTable table = file->table(roots->at("t"));
  rows(table);
  ASSERT_TRUE(table.finish());
  ASSERT_TRUE(file->close());
}

TEST(BulkTable, EveryIntegerAndReal) {
  std::vector<int64_t> integers{0, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  for (int bit = 0; bit < 63; ++bit)
    for (const int64_t step : {-1, 0, 1})
      for (const int64_t sign : {-1, 1}) integers.push_back(sign * ((int64_t{1} << bit) + step));
  const double reals[] = {0, -0.5, 1e300, std::numeric_limits<double>::infinity(), std::nan(""), 3};
  const test::ScratchFolder folder;
  make(folder / "t", 4096, [&](BulkTable& table) {
    for (size_t i = 0; i < integers.size(); ++i) {
      table.row(static_cast<int64_t>(i));
      table.null();
      table.integer(integers[i]);
      table.real(reals[i % std::size(reals)]);
    }
  });
  auto database = Database::open(folder / "t");
  ASSERT_TRUE(database);
  EXPECT_EQ(integrity(*database), "ok");
  auto rows = database->prepare("SELECT id, a, b FROM t");
  ASSERT_TRUE(rows);
  for (size_t i = 0; i < integers.size(); ++i) {
    const auto more = rows->step();
    ASSERT_TRUE(more && *more) << i;
    EXPECT_EQ(rows->integer(0), static_cast<int64_t>(i));
    EXPECT_EQ(rows->integer(1), integers[i]);
    const double real = reals[i % std::size(reals)];
    EXPECT_EQ(rows->is_null(2), std::isnan(real));
    if (std::isnan(real)) continue;
    EXPECT_EQ(rows->real(2), real);
  }
}

// From none to so many that there are three levels of pages; numbers with gaps, some of which need long varints.
TEST(BulkTable, AnyNumberOfRows) {
  for (const int page_size : {512, 4096, 32768})
    for (const int count : {0, 1, 2, 17, 40, 300, 5000, 100'000}) {
      SCOPED_TRACE(std::to_string(count) + " rows in pages of " + std::to_string(page_size));
      const test::ScratchFolder folder;
      const auto number = [](int64_t i) { return i * 3 + (i > 20 ? int64_t{1} << 57 : 0); };
      make(folder / "t", page_size, [&](BulkTable& table) {
        for (int64_t i = 0; i < count; ++i) {
          table.row(number(i));
          table.null();
          table.integer_unless(i * i, 9);
          table.real(static_cast<double>(i));
        }
      });
      auto database = Database::open(folder / "t");
      ASSERT_TRUE(database);
      EXPECT_EQ(integrity(*database), "ok");
      for (const auto& [sql, expected] :
           {std::pair<std::string, int64_t>("SELECT COUNT(*) FROM t", count),
            {"SELECT COUNT(*) FROM t WHERE a IS NULL", count > 3 ? 1 : 0},
            {"SELECT COUNT(*) FROM t WHERE typeof(b) = 'real'", count},
            {"SELECT COUNT(*) FROM other WHERE a = 'here'", 1},
            {"SELECT MAX(id) FROM t", count == 0 ? 0 : number(count - 1)},
            {"SELECT COUNT(*) FROM t WHERE id = " + std::to_string(number(count / 2)), count == 0 ? 0 : 1}}) {
        auto answer = database->prepare(sql);
        ASSERT_TRUE(answer && answer->step()) << sql;
        EXPECT_EQ(answer->integer(0), expected) << sql;
      }
    }
}

TEST(BulkTable, RowsOutOfOrderAreRefused) {
  const test::ScratchFolder folder;
  auto database = Database::create(folder / "t");
  ASSERT_TRUE(database && database->execute("CREATE TABLE t (id INTEGER PRIMARY KEY)"));
  const auto roots = root_pages(*database);
  ASSERT_TRUE(roots && database->close());
  auto file = BulkFile::open(folder / "t");
  ASSERT_TRUE(file);
  BulkTable table = file->table(roots->at("t"));
  for (const int64_t number : {5, 5}) {
    table.row(number);
    table.null();
  }
  EXPECT_FALSE(table.finish());
}

// SQLite must be able to go on with the file: it knows how many pages there are.
TEST(BulkTable, CanBeAddedToLater) {
  const test::ScratchFolder folder;
  make(folder / "t", 4096, [](BulkTable& table) {
    for (int i = 0; i < 20'000; ++i) {
      table.row(i);
      table.null();
      table.integer(i);
      table.null();
    }
  });
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open((folder / "t").c_str(), &handle), SQLITE_OK);
  EXPECT_EQ(
      sqlite3_exec(handle, "INSERT INTO t (a) SELECT a FROM t; DELETE FROM t WHERE id % 7 = 0; CREATE INDEX i ON t (a)",
                   nullptr, nullptr, nullptr),
      SQLITE_OK)
      << sqlite3_errmsg(handle);
  sqlite3_close(handle);
  auto database = Database::open(folder / "t");
  ASSERT_TRUE(database);
  EXPECT_EQ(integrity(*database), "ok");
}

}  // namespace
}  // namespace strobe::trace
