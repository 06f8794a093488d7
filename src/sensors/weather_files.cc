#include "sensors/weather_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/file.h"
#include "base/sha256.h"
#include "base/suggest.h"

namespace strobe::sensors {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 4> kKinds = {"dry", "rain", "snow", "fog"};
constexpr std::array<std::string_view, 3> kRules = {"lisa", "physical", "goodin2019"};
constexpr std::array<std::string_view, 2> kModes = {"mean", "monte-carlo"};

template <typename Enum, size_t kCount>
Result<Enum> parse_word(const char* what, const std::string& text, const std::array<std::string_view, kCount>& words) {
  std::vector<std::string> names;
  for (size_t i = 0; i < kCount; ++i) {
    if (words[i] == text) return static_cast<Enum>(i);
    names.emplace_back(words[i]);
  }
  return usage_error(fmt::format("no {} '{}'; {}", what, text, suggest(text, names)));
}

const char* layout_name(int columns) {
  return columns == 5 ? "5 floats a point (nuScenes)" : "4 floats a point (KITTI)";
}

bool makes_sense(std::string_view bytes, int columns) {
  const size_t stride = static_cast<size_t>(columns) * sizeof(float);
  if (bytes.size() % stride != 0) return false;
  const float full = columns == 5 ? 255 : 1;
  for (size_t at = 0; at < bytes.size(); at += stride) {
    float point[5];
    std::memcpy(point, bytes.data() + at, stride);
    if (!(point[3] >= 0 && point[3] <= full)) return false;
    if (columns == 5 && !(point[4] >= 0 && point[4] == std::floor(point[4]))) return false;  // a ring is a number
  }
  return true;
}

struct Layout {
  int columns;
  const char* why;
};

Result<Layout> find_layout(std::string_view bytes, const std::string& name) {
  if (name.ends_with(".pcd.bin")) return Layout{5, "by its name"};
  const bool four = bytes.size() % 16 == 0, five = bytes.size() % 20 == 0;
  if (four != five) return Layout{four ? 4 : 5, "by its size"};
  if (!four) return bad_data(fmt::format("{} bytes: expected points of 16 or 20 bytes", bytes.size()));
  const bool four_fits = makes_sense(bytes, 4), five_fits = makes_sense(bytes, 5);
  if (four_fits) return Layout{4, five_fits ? "by its suffix" : "by its intensities"};
  if (five_fits) return Layout{5, "by its intensities"};
  return bad_data("neither 4 nor 5 floats a point give intensities in 0..1 or 0..255: expected a LiDAR sweep");
}

// The weather on the bytes of a file; sweep: what is to be written.
Result<WeatherOutcome> change(const WeatherOptions& options, const WeatherJob& job, std::string_view bytes, int threads,
                              SweepFile& sweep) {
  STROBE_ASSIGN(sweep, parse_sweep(bytes, job.input.filename().string(), job.columns));
  WeatherOptions own = options;
  if (job.calibrate) {
    STROBE_ASSIGN(own, calibrated(options, sweep.points()));
  }
  STROBE_ASSIGN(const Weather weather, Weather::create(own));
  WeatherOutcome outcome;
  outcome.layout = sweep.layout;
  outcome.alpha = weather.alpha();
  outcome.max_range_m = own.max_range_m;
  std::vector<PointFate> fates(sweep.points().count());
  const auto begin = std::chrono::steady_clock::now();
  STROBE_ASSIGN(outcome.summary, weather.apply(sweep.points(), job.frame, threads, fates));
  if (!job.keep_lost) sweep.values.resize(remove_lost(sweep.points(), fates));
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

nlohmann::json counts_json(const FateCounts& counts) {
  return {{"points", counts.points}, {"lost", counts.lost},         {"scattered", counts.scattered},
          {"kept", counts.kept},     {"lost_dry", counts.lost_dry}, {"range_rms_m", counts.range_rms_m}};
}

}  // namespace

std::string_view word(WeatherKind kind) {
  return kKinds[static_cast<size_t>(kind)];
}
std::string_view word(WeatherRules rules) {
  return kRules[static_cast<size_t>(rules)];
}
std::string_view word(WeatherMode mode) {
  return kModes[static_cast<size_t>(mode)];
}
Result<WeatherKind> parse_weather_kind(const std::string& text) {
  return parse_word<WeatherKind>("weather", text, kKinds);
}
Result<WeatherRules> parse_weather_rules(const std::string& text) {
  return parse_word<WeatherRules>("rules", text, kRules);
}
Result<WeatherMode> parse_weather_mode(const std::string& text) {
  return parse_word<WeatherMode>("mode", text, kModes);
}

Result<SweepFile> parse_sweep(std::string_view bytes, const std::string& name, int columns) {
  if (columns != 0 && columns != 4 && columns != 5)
    return usage_error(fmt::format("columns {}: expected 4 (KITTI) or 5 (nuScenes)", columns));
  if (bytes.empty()) return bad_data("an empty file: expected points");
  Layout layout{columns, "as asked"};
  if (columns == 0) {
    STROBE_ASSIGN(layout, find_layout(bytes, name));
  }
  const size_t stride = static_cast<size_t>(layout.columns) * sizeof(float);
  if (bytes.size() % stride != 0) {
    return bad_data(
        fmt::format("{} bytes: expected a multiple of {} ({} floats a point)", bytes.size(), stride, layout.columns));
  }
  SweepFile file;
  file.columns = layout.columns;
  file.layout = fmt::format("{}, {}", layout_name(layout.columns), layout.why);
  file.values.resize(bytes.size() / sizeof(float));
  std::memcpy(file.values.data(), bytes.data(), bytes.size());
  return file;
}

Result<WeatherOutcome> weather_on_file(const WeatherOptions& options, const WeatherJob& job, int threads, bool hashes) {
  std::error_code failed;
  if (fs::equivalent(job.input, job.output, failed))
    return usage_error(fmt::format("{}: input and output are the same file", job.output.string()));
  STROBE_ASSIGN(const std::string bytes, read_file(job.input));
  SweepFile sweep;
  auto changed = change(options, job, bytes, threads, sweep);
  if (!changed) return std::move(changed).error().at(job.input.string());
  const std::string_view written(reinterpret_cast<const char*>(sweep.values.data()),
                                 sweep.values.size() * sizeof(float));
  STROBE_TRY(write_file(job.output, written));
  if (hashes) {
    changed->input_sha256 = sha256(bytes);
    changed->output_sha256 = sha256(written);
  }
  return changed;
}

Result<std::vector<WeatherJob>> folder_jobs(const fs::path& input, const fs::path& output) {
  std::error_code failed;
  if (fs::equivalent(input, output, failed))
    return usage_error(fmt::format("{}: input and output are the same folder", output.string()));
  std::vector<WeatherJob> jobs;
  fs::directory_iterator it(input, failed);
  if (failed) return not_found(fmt::format("{}: {}", input.string(), failed.message()));
  for (const fs::directory_iterator end; it != end; it.increment(failed)) {
    if (failed) return io_error(fmt::format("{}: {}", input.string(), failed.message()));
    if (it->path().extension() == ".bin" && it->is_regular_file(failed)) {
      WeatherJob job;
      job.input = it->path();
      job.output = output / it->path().filename();
      jobs.push_back(std::move(job));
    }
  }
  if (jobs.empty()) return not_found(fmt::format("{}: no *.bin files: expected sweeps", input.string()));
  std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) { return a.input < b.input; });
  for (size_t i = 0; i < jobs.size(); ++i) jobs[i].frame = i;
  return jobs;
}

Result<std::vector<WeatherOutcome>> weather_on_files(const WeatherOptions& options, const std::vector<WeatherJob>& jobs,
                                                     int threads, const std::function<bool(size_t)>& progress) {
  std::vector<std::optional<Result<WeatherOutcome>>> results(jobs.size());
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  size_t done = 0;
  const auto work = [&] {
    for (size_t i = next++; i < jobs.size() && !stop; i = next++) {
      results[i] = weather_on_file(options, jobs[i], 1, true);
      if (!*results[i]) stop = true;
      const std::lock_guard lock(mutex);
      if (!progress(++done)) stop = true;
    }
  };
  std::vector<std::jthread> others;
  const size_t wanted = std::min(static_cast<size_t>(std::max(threads, 1)), jobs.size());
  for (size_t i = 1; i < wanted; ++i) others.emplace_back(work);
  work();
  others.clear();

  for (auto& result : results)
    if (result && !*result) return std::move(*result).error();
  std::vector<WeatherOutcome> outcomes;
  for (auto& result : results) {
    if (!result) return Error(ErrorKind::kInterrupted, fmt::format("stopped after {} of {} sweeps", done, jobs.size()));
    outcomes.push_back(std::move(**result));
  }
  return outcomes;
}

std::string weather_manifest(const WeatherOptions& options, const std::vector<WeatherJob>& jobs,
                             const std::vector<WeatherOutcome>& outcomes) {
  nlohmann::json files = nlohmann::json::array();
  for (size_t i = 0; i < jobs.size(); ++i) {
    nlohmann::json file = counts_json(outcomes[i].summary.all);
    file["file"] = jobs[i].output.filename().string();
    file["frame"] = jobs[i].frame;
    file["layout"] = outcomes[i].layout;
    file["alpha_per_m"] = outcomes[i].alpha;
    file["max_range_m"] = outcomes[i].max_range_m;
    file["source_sha256"] = outcomes[i].input_sha256;
    file["sha256"] = outcomes[i].output_sha256;
    files.push_back(std::move(file));
  }
  const bool drops = options.mode == WeatherMode::kMonteCarlo;
  nlohmann::json manifest = {
      {"kind", word(options.kind)},
      {"rate_mm_h", options.rate_mm_h},
      {"seed", options.seed},
      {"mode", word(options.mode)},
      {"rules", word(options.rules)},
      {"density", options.density == Density::kLisa ? "lisa" : "literature"},
      {"calibrated", !jobs.empty() && jobs.front().calibrate},
      {"lost_points", !jobs.empty() && jobs.front().keep_lost ? "zeros" : "removed"},
      {"files", files},
  };
  if (drops) manifest["return"] = options.pick == DropPick::kStrongest ? "strongest" : "last";
  if (options.kind == WeatherKind::kFog) manifest["fog"] = options.fog;
  return manifest.dump(2) + "\n";
}

}  // namespace strobe::sensors
