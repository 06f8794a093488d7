#include "trace/open.h"

#include <algorithm>

#include "trace/spool_import.h"
#include "trace/store.h"

namespace strobe::trace {

namespace fs = std::filesystem;

Result<std::vector<fs::path>> trace_files(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (!fs::exists(status)) return not_found(path.string() + ": no such file or folder");
  if (!fs::is_directory(status)) return std::vector<fs::path>{path};
  std::vector<fs::path> files;
  fs::directory_iterator entries(path, code);
  if (code) return io_error(path.string() + ": " + code.message());
  for (; entries != fs::directory_iterator(); entries.increment(code)) {
    if (entries->path().extension() == ".sqlite" && entries->is_regular_file(code)) files.push_back(entries->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Result<Timeline> open_trace(const fs::path& path) {
  STROBE_ASSIGN(const std::vector<fs::path> files, trace_files(path));
  if (files.size() == 1) return read_store(files.front());
  if (files.size() > 1) {
    std::string names;
    for (const fs::path& file : files) names += (names.empty() ? "" : ", ") + file.filename().string();
    return usage_error(path.string() + ": holds several traces, name one of them: " + names);
  }
  auto timeline = import_spool(path);
  if (!timeline && timeline.error().kind() == ErrorKind::kBadData)
    return not_found(path.string() + ": no trace in this folder, neither a *.sqlite file nor a recorder's spool");
  return timeline;
}

}  // namespace strobe::trace
