#include "doctor_folder.h"

#include <unistd.h>

#include <cstdlib>

#include "base/file.h"

namespace strobe::app {

namespace fs = std::filesystem;

Result<std::unique_ptr<TemporaryFolder>> TemporaryFolder::make() {
  const char* const given = std::getenv("TMPDIR");
  std::error_code code;
  const fs::path parent = given && *given ? fs::path(given) : fs::temp_directory_path(code);
  if (code) return io_error("the system's folder for temporary files: " + code.message());
  std::string pattern = (parent / "strobe-doctor-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) return io_error_errno(parent.string());
  return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(pattern));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Check untried(const std::string& name, bool needed, const Error& error) {
  return {name, Health::kBroken, needed, "could not be tried, no temporary folder can be made: " + error.to_string(),
          "set TMPDIR to a folder that can be written to and has room"};
}

}  // namespace strobe::app
