#include <algorithm>

#include "base/json_scan.h"
#include "importers/byte_stream.h"
#include "importers/importer.h"
#include "importers/kineto.h"
#include "importers/nsys.h"
#include "importers/nvprof.h"
#include "importers/trtexec.h"

namespace strobe::importers {
namespace {

constexpr std::string_view kSqliteMagic("SQLite format 3\0", 16);

// How much of a file is looked at: a program may have printed a lot before nvprof said anything.
constexpr size_t kLookAt = size_t{1} << 20;

std::string names_of_formats() {
  std::string names;
  for (const FormatInfo& format : known_formats()) names.append(names.empty() ? "" : ", ").append(format.name);
  return names;
}

Error unknown_format(std::string_view start) {
  if (start.empty()) return bad_data("is empty, expected a trace");
  if (start.starts_with("QDSTRM") || start.find("NVIDIA Nsight") != std::string_view::npos)
    return bad_data("is an Nsight Systems report; export it first: nsys export --type sqlite FILE");
  return bad_data(
      "no known trace format; expected PyTorch (Kineto) or Chrome JSON, an Nsight Systems SQLite export, an nvprof log "
      "or trtexec's JSON");
}

Result<std::string> detect(std::string_view start) {
  if (start.starts_with(kSqliteMagic)) return std::string("nsys");
  const std::string_view text = start.starts_with("\xef\xbb\xbf") ? start.substr(3) : start;
  const char* first = json::skip_space(text.data(), text.data() + text.size());
  const char c = first == text.data() + text.size() ? '\0' : *first;
  if (c == '[' || c == '{') {
    if (looks_like_trtexec(text)) return std::string("trtexec");
    // "[" may also begin a line of a program that nvprof watched.
    if (!looks_like_nvprof(text) || text.find("\"ph\"") != std::string_view::npos) return std::string("kineto");
  }
  if (looks_like_nvprof(text)) return std::string("nvprof");
  return unknown_format(start);
}

Result<trace::Timeline> import_as(const std::string& format, const std::filesystem::path& path, ByteStream& stream,
                                  const ImportOptions& options) {
  if (format == "nsys") return import_nsys(path, options);
  if (format == "nvprof") return import_nvprof(stream, options);
  if (format == "trtexec") return import_trtexec(stream, options);
  return import_kineto(stream, options);
}

}  // namespace

std::vector<FormatInfo> known_formats() {
  return {
      {"kineto", "PyTorch profiler (Kineto) JSON, plain or .gz"},
      {"chrome", "Chrome or Perfetto JSON, plain or .gz; categories without meaning"},
      {"nsys", "SQLite export of Nsight Systems"},
      {"nvprof", "text log of nvprof"},
      {"trtexec", "JSON of trtexec --exportTimes, --exportProfile or --exportLayerInfo"},
  };
}

Result<trace::Timeline> import_trace(const std::filesystem::path& path, const ImportOptions& options) {
  const auto formats = known_formats();
  if (!options.format.empty() && std::none_of(formats.begin(), formats.end(),
                                              [&](const FormatInfo& format) { return format.name == options.format; }))
    return usage_error("no format '" + options.format + "'; known: " + names_of_formats());
  STROBE_ASSIGN(const auto stream, ByteStream::open(path));
  while (stream->offset_of(stream->end()) < kLookAt && stream->refill(stream->begin())) {
  }
  std::string format = options.format;
  if (format.empty()) {
    auto detected = detect({stream->begin(), static_cast<size_t>(stream->end() - stream->begin())});
    if (!detected) return std::move(detected).error().at(path.filename().string());
    format = std::move(*detected);
  }
  auto timeline = import_as(format, path, *stream, options);
  if (!timeline) return std::move(timeline).error().at(path.filename().string());
  timeline->facts.try_emplace("import.format", format);
  timeline->facts["import.source"] = path.filename().string();
  return timeline;
}

}  // namespace strobe::importers
