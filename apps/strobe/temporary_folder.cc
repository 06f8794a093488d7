#include "temporary_folder.h"

#include <unistd.h>

#include <cstdlib>

namespace strobe::app {

namespace fs = std::filesystem;

Result<std::unique_ptr<TemporaryFolder>> TemporaryFolder::make(const std::string& name) {
  const char* const given = std::getenv("TMPDIR");
  std::error_code code;
  const fs::path parent = given && *given ? fs::path(given) : fs::temp_directory_path(code);
  if (code) return io_error("the system's folder for temporary files: " + code.message());
  std::string pattern = (parent / (name + "-XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) return io_error_errno(parent.string());
  return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(pattern));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace strobe::app
