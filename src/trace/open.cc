#include "trace/open.h"

#include <algorithm>

namespace strobe::trace {

namespace fs = std::filesystem;

namespace {

// The folder's own *.sqlite files go to files, its subfolders to folders.
Result<void> list(const fs::path& folder, std::vector<fs::path>& files, std::vector<fs::path>* folders) {
  std::error_code code;
  fs::directory_iterator entries(folder, code);
  for (; !code && entries != fs::directory_iterator(); entries.increment(code)) {
    std::error_code gone;
    if (entries->is_directory(gone)) {
      if (folders) folders->push_back(entries->path());
    } else if (entries->path().extension() == ".sqlite") {
      files.push_back(entries->path());
    }
  }
  if (code) return io_error(folder.string() + ": " + code.message());
  return {};
}

std::string names_of(const std::vector<fs::path>& paths, const fs::path& folder) {
  std::string names;
  for (const fs::path& path : paths) names += (names.empty() ? "" : ", ") + path.lexically_relative(folder).string();
  return names;
}

}  // namespace

Result<std::vector<fs::path>> trace_files(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (!fs::exists(status)) return not_found(path.string() + ": no such file or folder");
  if (!fs::is_directory(status)) return std::vector<fs::path>{path};
  std::vector<fs::path> files, folders;
  STROBE_TRY(list(path, files, &folders));
  if (files.empty()) {
    for (const fs::path& folder : folders) STROBE_TRY(list(folder, files, nullptr));
  }
  std::sort(files.begin(), files.end());
  return files;
}

fs::path spool_folder(const fs::path& path) {
  std::error_code code;
  return fs::is_directory(path / "spool", code) ? path / "spool" : path;
}

Result<Timeline> open_trace(const fs::path& path, StoreParts parts, const Import& import) {
  STROBE_ASSIGN(const std::vector<fs::path> files, trace_files(path));
  if (files.size() == 1) return read_store(files.front(), parts);
  if (files.size() > 1)
    return usage_error(path.string() + ": holds several traces, name one of them: " + names_of(files, path));
  // As with traces, the folder's own first, then those of its subfolders: cells of a run that was killed.
  std::vector<fs::path> spools = {spool_folder(path)};
  std::error_code code;
  if (spools.front() == path) {
    std::vector<fs::path> ignored, folders;
    STROBE_TRY(list(path, ignored, &folders));
    std::erase_if(folders, [&code](const fs::path& folder) { return !fs::is_directory(folder / "spool", code); });
    std::sort(folders.begin(), folders.end());
    if (!folders.empty()) spools = folders;
  }
  if (spools.size() > 1)
    return usage_error(path.string() + ": holds several recordings, name one of them: " + names_of(spools, path));
  auto timeline = import(spool_folder(spools.front()));
  if (!timeline && timeline.error().kind() == ErrorKind::kBadData)
    return not_found(path.string() + ": no trace in this folder, neither a *.sqlite file nor a recorder's spool");
  return timeline;
}

}  // namespace strobe::trace
