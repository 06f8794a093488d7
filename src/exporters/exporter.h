// Exporters: a Timeline in the formats of other tools, one file a format. docs/exporting.md says what each keeps.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::exporters {

struct FormatInfo {
  std::string name;         // "perfetto", "chrome", "csv", "nsys"
  std::string extension;    // what such files usually end in: ".pftrace"; empty: a folder
  std::string description;  // one line
};
std::vector<FormatInfo> known_formats();

// Writes a finished timeline. What is written appears under its name when it is complete and replaces what was there;
// on an error, what was there stays. Memory beyond the timeline: fixed, and a few bytes a flow. Errors: kUsage (no such
// format), kIo.
Result<void> export_timeline(const trace::Timeline& timeline, const std::string& format,
                             const std::filesystem::path& output);

}  // namespace strobe::exporters
