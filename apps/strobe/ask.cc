#include "ask.h"

#include <cstdio>
#include <filesystem>

#include "import_recording.h"
#include "importers/importer.h"
#include "trace/open.h"

namespace strobe::app {

Result<trace::Timeline> open_any_trace(const std::string& path, trace::StoreParts parts) {
  auto own = trace::open_trace(path, parts, import_recording);
  std::error_code code;
  if (own || own.error().kind() != ErrorKind::kBadData || !std::filesystem::is_regular_file(path, code)) return own;
  auto imported = importers::import_trace(path, {});
  if (imported) return imported;
  return own;
}

void print_table(const Table& table, report::Format format) {
  const std::string text = report::format_table(table, format);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace strobe::app
