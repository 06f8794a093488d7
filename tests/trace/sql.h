// What a user's own SQL sees in a trace file: SQLite without any code of ours.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <string>
#include <vector>

namespace strobe::test {

class Sql {
 public:
  explicit Sql(const std::filesystem::path& path, int flags = SQLITE_OPEN_READWRITE) {
    EXPECT_EQ(sqlite3_open_v2(path.c_str(), &handle_, flags, nullptr), SQLITE_OK);
  }
  Sql(const Sql&) = delete;
  Sql& operator=(const Sql&) = delete;
  ~Sql() { sqlite3_close(handle_); }

  // Each row as "a|b|c", as sqlite3's own shell prints it.
  std::vector<std::string> rows(const std::string& sql) {
    std::vector<std::string> result;
    char* message = nullptr;
    const auto collect = [](void* out, int count, char** values, char**) {
      std::string row;
      for (int i = 0; i < count; ++i) row += (i ? "|" : "") + std::string(values[i] ? values[i] : "NULL");
      static_cast<std::vector<std::string>*>(out)->push_back(row);
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(handle_, sql.c_str(), collect, &result, &message), SQLITE_OK) << sql << ": " << message;
    sqlite3_free(message);
    return result;
  }

 private:
  sqlite3* handle_ = nullptr;
};

}  // namespace strobe::test
