#include "bench/results.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/file.h"
#include "bench/mean.h"
#include "bench/timeline_times.h"
#include "bench/warmup.h"
#include "trace/store.h"

namespace strobe::bench {
namespace {

namespace fs = std::filesystem;

bool on_gpu(const Json& meta) {
  const auto device = meta.find("device");
  return device != meta.end() && device->is_object() && device->contains("name") && (*device)["name"] != "CPU";
}

std::string dump(const Json& json) {
  return json.dump(4, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<ProcessResult> read_process(const fs::path& folder) {
  const fs::path path = folder / "benchmark.json";
  std::error_code failed;
  if (!fs::exists(path, failed))
    return not_found("wrote no benchmark.json; does it call finalize() and take --device_id and --output_dir?");
  STROBE_ASSIGN(const std::string text, read_file(path));
  ProcessResult process{.name = folder.filename().string(), .folder = folder, .read = {}};
  auto read = read_benchmark(text);
  if (!read) return std::move(read.error().at(path.string()));
  process.read = std::move(*read);
  const fs::path trace = folder / "trace.sqlite";
  const bool device = on_gpu(process.read.meta);
  if (!process.read.placeholder && !device) return process;
  const bool has_trace = fs::exists(trace, failed);
  if (process.read.placeholder && !has_trace)
    return bad_data(path.string() +
                    ": holds no times, and there is no timeline to take them from (it was not recorded)");
  Filled filled;
  if (has_trace) {
    STROBE_ASSIGN(const trace::Timeline timeline, trace::read_store(trace, trace::StoreParts::kOperations));
    filled = fill_times(process.read.ranges, timeline, process.read.placeholder);
    if (process.read.placeholder && filled.found == 0)
      return bad_data(path.string() + ": holds no times, and the timeline none of its ranges");
  }
  Json& strobe = process.read.meta["strobe"];
  if (!strobe.is_object()) strobe = Json::object();
  strobe["gpu_time"] = filled.device ? "from the device work of the timeline"
                                     : "not measured: no device work was recorded (times are 0)";
  process.read.placeholder = false;
  return process;
}

Result<Warmup> finish_processes(std::vector<ProcessResult>& processes, const Warmup& wanted, Rules rules,
                                bool* settled) {
  Warmup warmup = wanted;
  *settled = true;
  for (const auto& process : processes) {
    bool one_settled = true;
    const Warmup one = resolve(wanted, process.read.ranges, &one_settled);
    warmup.front = std::max(warmup.front, one.front);
    warmup.back = std::max(warmup.back, one.back);
    *settled = *settled && one_settled;
  }
  for (auto& process : processes) {
    Json meta = process.read.meta;
    for (const char* made : {"obj_name", "measurement_unit", "total_batches"}) meta.erase(made);
    const Json file = benchmark_of(process.read.obj_name, process.read.ranges, warmup, rules, std::move(meta));
    process.read.meta = file["meta"];
    STROBE_TRY(write_file(process.folder / "benchmark.json", dump(file)));
  }
  return warmup;
}

Result<Json> mean_of_processes(const std::vector<ProcessResult>& processes, Rules rules) {
  MeanOfFigures data, mean_data;
  for (const auto& process : processes) {
    STROBE_ASSIGN(const std::string text, read_file(process.folder / "benchmark.json"));
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) return bad_data((process.folder / "benchmark.json").string() + ": is no JSON object");
    data.add(json.value("data", Json::object()));
    mean_data.add(json.value("mean_data", Json::object()));
  }
  return Json{{"mean_all_batches", data.mean(rules)}, {"mean_data", mean_data.mean(rules)}};
}

bool is_run(const fs::path& path) {
  std::error_code failed;
  return fs::is_directory(path, failed) ? fs::exists(path / "benchmark_mean.json", failed)
                                        : path.filename() == "benchmark_mean.json" && fs::exists(path, failed);
}

Result<Run> read_run(const fs::path& path) {
  std::error_code failed;
  const fs::path file = fs::is_directory(path, failed) ? path / "benchmark_mean.json" : path;
  STROBE_ASSIGN(const std::string text, read_file(file));
  auto mean = read_mean(text);
  if (!mean) return std::move(mean.error().at(file.string()));
  const Json meta = mean->value("meta", Json::object());
  const Json strobe = meta.is_object() ? meta.value("strobe", Json::object()) : Json::object();
  Run run;
  // Of the original's files: what its arguments say.
  const Json args = meta.is_object() ? meta.value("args", Json::object()) : Json::object();
  if (args.is_object() && args.contains("warmup_batches") && args["warmup_batches"].is_number_integer())
    run.warmup.front = run.warmup.back = args["warmup_batches"].get<int64_t>();
  if (strobe.is_object() && strobe.contains("warmup") && strobe["warmup"].is_object()) {
    const Json& warmup = strobe["warmup"];
    for (const auto& [key, value] :
         {std::pair<const char*, int64_t*>{"front", &run.warmup.front}, {"back", &run.warmup.back}})
      if (warmup.contains(key) && warmup[key].is_number_integer()) *value = warmup[key].get<int64_t>();
  }
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(file.parent_path().empty() ? "." : file.parent_path(), failed))
    if (entry.path().filename().string().starts_with("proc_")) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  std::set<std::string> finished;
  if (strobe.is_object() && strobe.contains("processes") && strobe["processes"].is_array())
    for (const auto& process : strobe["processes"])
      if (process.is_object() && process.value("finished", false)) finished.insert(process.value("name", ""));
  for (const auto& folder : folders) {
    // Folders of an earlier run with more processes may lie beside.
    if (!finished.empty() && finished.count(folder.filename().string()) == 0) continue;
    if (!fs::exists(folder / "benchmark.json", failed)) continue;
    STROBE_ASSIGN(auto process, read_process(folder));
    run.processes.push_back(std::move(process));
  }
  if (!run.processes.empty()) return run;
  // The file alone: its batches are means over the processes.
  Json alone;
  alone["data"] = (*mean)["mean_all_batches"];
  alone["meta"] = Json::object();
  auto read = read_benchmark(alone.dump());
  if (!read) return std::move(read.error().at(file.string()));
  run.processes.push_back({"mean", file.parent_path(), std::move(*read)});
  return run;
}

std::vector<std::string> levels_left_empty(const std::vector<ProcessResult>& processes, const Warmup& warmup) {
  std::map<std::string, std::string> said;  // by level
  for (const auto& process : processes) {
    const auto totals = total_batches(process.read.ranges);
    std::set<std::string> counted;
    for (const auto& range : process.read.ranges) {
      const std::string level(parent_path(range.path));
      if (range.closed_batch() && *range.batch->items > 0 && counts(range.batch->index, totals.at(level), warmup))
        counted.insert(level);
    }
    for (const auto& [level, total] : totals)
      if (counted.count(level) == 0)
        said.try_emplace(level, level + ": the warm-up of " + std::to_string(warmup.front) + " + " +
                                    std::to_string(warmup.back) + " leaves none of " + std::to_string(total) +
                                    " batches (" + process.name + ")");
  }
  std::vector<std::string> lines;
  for (auto& [level, line] : said) lines.push_back(std::move(line));
  return lines;
}

std::vector<StageSeries> stage_series(const std::vector<ProcessResult>& processes, const Warmup& warmup) {
  std::vector<StageSeries> out;
  std::map<std::pair<std::string, std::string>, size_t> known;
  for (const auto& process : processes) {
    const RangeTimes& ranges = process.read.ranges;
    const auto totals = total_batches(ranges);
    // Batches first: what lies inside one finds it by its path. Nested batches belong to the innermost.
    std::map<std::string, const RangeTime*, std::less<>> batches;
    for (const auto& range : ranges)
      if (range.closed_batch() && *range.batch->items > 0 &&
          counts(range.batch->index, totals.at(std::string(parent_path(range.path))), warmup))
        batches[range.path] = &range;
    struct Entry {
      size_t series;
      int64_t index;
      const RangeTime* range;
      int64_t items;
    };
    std::vector<Entry> entries;
    for (const auto& range : ranges) {
      std::string_view batch = range.path;
      while (!batch.empty() && batches.find(batch) == batches.end()) batch = parent_path(batch);
      if (batch.empty()) continue;
      const RangeTime& mark = *batches.find(batch)->second;
      std::pair key{std::string(parent_path(batch)),
                    range.path.size() == batch.size() ? std::string() : range.path.substr(batch.size() + 1)};
      const auto [found, is_new] = known.try_emplace(std::move(key), out.size());
      if (is_new) {
        out.emplace_back();
        out.back().level = found->first.first;
        out.back().stage = found->first.second;
      }
      entries.push_back({found->second, mark.batch->index, &range, *mark.batch->items});
    }
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::pair(a.series, a.index) < std::pair(b.series, b.index);
    });
    for (size_t i = 0; i < entries.size(); ++i) {
      StageSeries& series = out[entries[i].series];
      series.cpu_ms.push_back(entries[i].range->cpu_ms);
      series.gpu_ms.push_back(entries[i].range->gpu_ms);
      series.items += entries[i].items;
      if (i == 0 || entries[i - 1].series != entries[i].series) ++series.processes;
    }
  }
  // A batch before its stages.
  std::vector<std::string> levels;
  for (const auto& series : out)
    if (std::find(levels.begin(), levels.end(), series.level) == levels.end()) levels.push_back(series.level);
  std::stable_sort(out.begin(), out.end(), [&levels](const StageSeries& a, const StageSeries& b) {
    const auto at = [&levels](const StageSeries& series) {
      return std::pair(std::find(levels.begin(), levels.end(), series.level), !series.stage.empty());
    };
    return at(a) < at(b);
  });
  return out;
}

}  // namespace strobe::bench
