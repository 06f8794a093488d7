// Importers: other tools' traces as Timelines. Each format is one folder-level subject with a function of the same
// shape; import_trace looks at the file's first bytes and picks one.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::importers {

struct ImportOptions {
  std::string format;  // empty: by the content; else a name of known_formats()
  // Called now and then with bytes of the file done and in all (0: unknown).
  std::function<void(uint64_t done, uint64_t total)> on_progress;
  const std::atomic<bool>* stop = nullptr;  // set: what was read so far is the result, with a fault that says so
};

struct FormatInfo {
  std::string name;         // "nsys", "kineto", "nvprof", "chrome", "trtexec"
  std::string description;  // one line
};
std::vector<FormatInfo> known_formats();

// The finished timeline of a file. Facts "import.format" and "import.source" (the file's name without folders) tell
// where it comes from. A file that is damaged or breaks off gives what could be read, and losses.faults says what was
// lost. Errors: kNotFound, kIo, kBadData (no known format; nothing in it could be read), kUnsupported.
Result<trace::Timeline> import_trace(const std::filesystem::path& path, const ImportOptions& options);

}  // namespace strobe::importers
