#include <algorithm>

#include "exporters/chrome.h"
#include "exporters/csv.h"
#include "exporters/exporter.h"
#include "exporters/perfetto.h"
#include "trace/nsys_export.h"

namespace strobe::exporters {
namespace {

using Write = Result<void> (*)(const trace::Timeline& timeline, const std::filesystem::path& output);

struct Format {
  FormatInfo info;
  Write write;
};

const std::vector<Format>& formats() {
  static const std::vector<Format> kFormats{
      {{"perfetto", ".pftrace", "Perfetto's own format, for ui.perfetto.dev and trace_processor"}, write_perfetto},
      {{"chrome", ".json", "Chrome trace JSON, also .json.gz; read by Perfetto, Chrome and many others"}, write_chrome},
      {{"csv", "", "a folder of CSV files; with a name that ends in .csv the ranges alone"}, write_csv},
      {{"nsys", ".sqlite", "the SQLite export of Nsight Systems"}, trace::write_nsys},
  };
  return kFormats;
}

}  // namespace

std::vector<FormatInfo> known_formats() {
  std::vector<FormatInfo> infos;
  for (const Format& format : formats()) infos.push_back(format.info);
  return infos;
}

Result<void> export_timeline(const trace::Timeline& timeline, const std::string& format,
                             const std::filesystem::path& output) {
  const auto found = std::find_if(formats().begin(), formats().end(),
                                  [&format](const Format& known) { return known.info.name == format; });
  if (found == formats().end()) return usage_error("no format '" + format + "'");
  return found->write(timeline, output);
}

}  // namespace strobe::exporters
