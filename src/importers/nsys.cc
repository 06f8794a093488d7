#include "importers/nsys.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "importers/nsys_events.h"
#include "importers/nsys_file.h"
#include "importers/nsys_places.h"

namespace strobe::importers {

namespace {

using Facts = std::map<std::string, std::string>;

void read_version(NsysFile& file, trace::Timeline& timeline) {
  const std::pair<const char*, const char*> wanted[] = {{"EXPORT_PRODUCT_VERSION", "nsys.product_version"},
                                                        {"EXPORT_SCHEMA_VERSION", "nsys.schema_version"}};
  // Before schema 3.2 the table had another name.
  for (const char* table : {"META_DATA_EXPORT", "EXPORT_META_DATA"}) {
    file.each(table, {"name", "value"}, [&](const NsysRow& row) {
      const std::string name(row.text(0)), value(row.text(1));
      for (const auto& [key, fact] : wanted)
        if (name == key) timeline.facts[fact] = value;
      if (name == "EXPORT_SCHEMA_VERSION_MAJOR" && value != "3")
        ++timeline.losses.faults["schema " + value + " of the export is not known, some of it may be misread"];
    });
  }
}

// Of a GPU what an analysis may ask for; nothing that tells one piece from another of its kind.
void read_gpus(NsysFile& file, Facts& facts) {
  constexpr std::pair<const char*, const char*> kNumbers[] = {{"l2CacheSize", "l2_bytes"},
                                                              {"totalMemory", "memory_bytes"},
                                                              {"memoryBandwidth", "memory_bytes_per_s"},
                                                              {"clockRate", "clock_hz"},
                                                              {"smCount", "sm_count"},
                                                              {"maxShmemPerSm", "shared_bytes_per_sm"},
                                                              {"maxRegistersPerSm", "registers_per_sm"},
                                                              {"threadsPerWarp", "threads_per_warp"},
                                                              {"asyncEngines", "copy_engines"},
                                                              {"maxWarpsPerSm", "warps_per_sm"},
                                                              {"maxBlocksPerSm", "blocks_per_sm"},
                                                              {"computeMajor", "compute_major"},
                                                              {"computeMinor", "compute_minor"}};
  file.each("TARGET_INFO_GPU",
            {"id", "name", "chipName", "l2CacheSize", "totalMemory", "memoryBandwidth", "clockRate", "smCount",
             "maxShmemPerSm", "maxRegistersPerSm", "threadsPerWarp", "asyncEngines", "maxWarpsPerSm", "maxBlocksPerSm",
             "computeMajor", "computeMinor"},
            [&](const NsysRow& row) {
              const std::string gpu = "gpu." + std::to_string(row.integer(0)) + ".";
              facts[gpu + "name"] = row.text(1);
              if (!row.is_null(2)) facts[gpu + "chip"] = row.text(2);
              int column = 3;
              for (const auto& [name, fact] : kNumbers) {
                if (!row.is_null(column)) facts[gpu + fact] = std::to_string(row.integer(column));
                ++column;
              }
            });
  file.each("TARGET_INFO_CUDA_DEVICE", {"gpuId", "cudaId", "pid"}, [&](const NsysRow& row) {
    if (row.is_null(0)) return;
    facts["gpu.of." + std::to_string(row.integer(2)) + "." + std::to_string(row.integer(1))] =
        std::to_string(row.integer(0));
  });
}

// One line without places of the traced machine.
std::string presentable(std::string_view text) {
  std::string result, word;
  const auto end_word = [&] {
    result += word.find('/') != std::string::npos && word.size() > 1 ? "(path)" : word;
    word.clear();
  };
  for (const char c : text.substr(0, 300)) {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      word += c;
      continue;
    }
    end_word();
    if (!result.empty() && result.back() != ' ') result += ' ';
  }
  end_word();
  return result;
}

// The tool's own warnings. What says that events are missing is a fault of the recording.
void read_diagnostics(NsysFile& file, trace::Timeline& timeline) {
  size_t warnings = 0;
  file.each("DIAGNOSTIC_EVENT", {"severity", "text"}, [&](const NsysRow& row) {
    const int64_t severity = row.integer(0);
    if (severity != 2 && severity != 3) return;
    const std::string text = presentable(row.text(1));
    std::string lower = text;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    const char* const losses[] = {"lost",    "dropped",   "missing",    "incomplete", "not all",
                                  "discard", "truncated", "overflowed", "too many",   "may not"};
    const bool is_loss = severity == 3 || std::any_of(std::begin(losses), std::end(losses), [&](const char* word) {
                           return lower.find(word) != std::string::npos;
                         });
    if (is_loss)
      ++timeline.losses.faults["Nsight Systems: " + text];
    else if (warnings < 100)
      timeline.facts["nsys.warning." + std::to_string(++warnings)] = text;
  });
}

void read_start(NsysFile& file, trace::Timeline& timeline, int64_t first_ns) {
  timeline.facts["nsys.time_zero_ns"] = std::to_string(first_ns);
  file.each("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}, [&](const NsysRow& row) {
    int64_t start = 0;
    if (!__builtin_add_overflow(row.integer(0), first_ns, &start)) timeline.utc_start_ns = start;
  });
}

void name_what_is_left(NsysFile& file, Facts& facts) {
  std::set<std::string> left;
  for (const char* column : {"start", "startedAt", "timestamp", "rawTimestamp"})
    for (const std::string& table : file.tables_with(column))
      if (file.row_count(table) > 0) left.insert(table);
  for (const char* known : NsysEvents::kTables) left.erase(known);
  left.erase("DIAGNOSTIC_EVENT");
  std::string names;
  for (const std::string& name : left) names += (names.empty() ? "" : ", ") + name;
  if (!names.empty()) facts["nsys.not_imported"] = names;
}

}  // namespace

Result<trace::Timeline> import_nsys(const std::filesystem::path& path, const ImportOptions& options) {
  STROBE_ASSIGN(NsysFile file, NsysFile::open(path, options));
  if (file.has("STROBE_META")) return bad_data("is a Strobe trace, which needs no import");
  const auto has = [&file](const char* table) { return file.has(table); };
  if (std::none_of(NsysEvents::kTables.begin(), NsysEvents::kTables.end(), has) && !file.has("META_DATA_EXPORT") &&
      !file.has("EXPORT_META_DATA"))
    return bad_data("a SQLite file without a table of an Nsight Systems export");
  file.expect(NsysEvents::kTables);
  trace::Timeline timeline;
  read_version(file, timeline);
  NsysPlaces places(timeline);
  places.read(file);
  NsysEvents events(file, timeline, places);
  events.read();
  events.finish();
  places.name_all(file);
  read_gpus(file, timeline.facts);
  read_diagnostics(file, timeline);
  read_start(file, timeline, events.first_ns());
  name_what_is_left(file, timeline.facts);
  if (events.empty() && !file.faults.empty()) return bad_data("damaged: none of its events can be read");
  for (const auto& [fault, count] : file.faults) timeline.losses.faults[fault] += count;
  if (file.stopped()) timeline.losses.faults["import stopped before the end of the file"] = 1;
  timeline.facts["import.format"] = "nsys";
  timeline.facts["import.source"] = path.filename().string();
  timeline.finish();
  return timeline;
}

}  // namespace strobe::importers
