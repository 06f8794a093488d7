// A folder that is there for one test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace strobe::test {

class Folder : public ::testing::Test {
 protected:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "strobe-exporters-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Folder() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

inline const std::string kHostileName = "a\"b\\c\n\x01</script>, 'd' \xff\xc3( \xed\xa0\x80 火 \xf0\x9f\x94\xa5";
// Each byte that is no UTF-8 is one U+FFFD.
inline const std::string kHostileNameClean =
    "a\"b\\c\n\x01</script>, 'd' \xef\xbf\xbd\xef\xbf\xbd( \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd 火 \xf0\x9f\x94\xa5";

}  // namespace strobe::test
