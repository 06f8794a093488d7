// `strobe sensors weather`: rain, snow or fog on a LiDAR sweep or on a folder of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "collect/machine.h"
#include "interrupt.h"
#include "progress_line.h"
#include "report/table_format.h"
#include "sensors/weather_files.h"
#include "sensors_command.h"

namespace strobe::app {

namespace fs = std::filesystem;
using namespace strobe::sensors;

namespace {

struct WeatherFlags {
  std::string input, output, kind = "rain", rules = "lisa", mode, fog = "strong-advection", which = "strongest";
  std::string density = "lisa", format = "text";
  double rate = 0, max_range = 200;
  uint64_t seed = 0, frame = 0;
  int columns = 0, threads = 0;
  bool calibrate = false, keep_lost = false, quiet = false;
};

// What is printed: the sum over sweeps, once for all points and once for those beyond the near limit.
struct Totals {
  FateCounts all, far;
  double seconds = 0;
};

void add(FateCounts& sum, const FateCounts& more) {
  const double squares = sum.range_rms_m * sum.range_rms_m * static_cast<double>(sum.kept) +
                         more.range_rms_m * more.range_rms_m * static_cast<double>(more.kept);
  sum.points += more.points, sum.lost += more.lost, sum.scattered += more.scattered, sum.kept += more.kept;
  sum.lost_dry += more.lost_dry;
  sum.intensity_before += more.intensity_before, sum.intensity_after += more.intensity_after;
  sum.range_rms_m = sum.kept > 0 ? std::sqrt(squares / static_cast<double>(sum.kept)) : 0;
}

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

double intensity_ratio(const FateCounts& counts) {
  return counts.intensity_before > 0 ? counts.intensity_after / counts.intensity_before : 0;
}

nlohmann::json as_json(const FateCounts& c) {
  return {{"points", c.points},
          {"lost", c.lost},
          {"scattered", c.scattered},
          {"kept", c.kept},
          {"lost_share", share(c.lost, c.points)},
          {"scattered_share", share(c.scattered, c.points)},
          {"kept_share", share(c.kept, c.points)},
          {"lost_dry", c.lost_dry},
          {"range_rms_m", c.range_rms_m},
          {"intensity_ratio", intensity_ratio(c)}};
}

std::vector<Cell> as_row(std::string points, const FateCounts& c) {
  return {std::move(points),
          c.points,
          c.lost,
          c.scattered,
          c.kept,
          100 * share(c.lost, c.points),
          100 * share(c.scattered, c.points),
          100 * share(c.kept, c.points),
          c.lost_dry,
          c.range_rms_m,
          intensity_ratio(c)};
}

class WeatherCommand : public Word {
 public:
  const char* name() const override { return "weather"; }
  const char* summary() const override { return "Rain, snow or fog on LiDAR sweeps"; }

  void declare(CLI::App& app) override {
    app_ = &app;
    WeatherFlags& f = flags_;
    app.add_option("input", f.input, "Sweep (nuScenes .pcd.bin or KITTI .bin), or a folder of them")->required();
    app.add_option("-o,--output", f.output, "File, or folder for files and manifest.json")->required();
    app.add_option("--kind", f.kind, "rain, snow, fog or dry")->capture_default_str();
    app.add_option("--rate", f.rate, "Of rain or snow, mm of water an hour");
    app.add_option("--fog", f.fog,
                   "strong-advection, moderate-advection, strong-spray, moderate-spray, chu-hogg, continental-haze or "
                   "coastal-haze")
        ->capture_default_str();
    app.add_option("--mode", f.mode, "monte-carlo (drops one by one; default of rain and snow) or mean");
    app.add_option("--return", f.which, "The return that is reported: strongest or last")->capture_default_str();
    app.add_option("--rules", f.rules, "lisa, physical (exact extinction) or goodin2019")->capture_default_str();
    app.add_option("--density", f.density, "Drops in snow and fog: lisa, or literature (half as many)")
        ->capture_default_str();
    app.add_option("--max-range", f.max_range, "Where a target of reflectivity 0.9 is just seen, in m")
        ->capture_default_str();
    app.add_flag("--calibrate", f.calibrate, "Choose the maximal range so that clear air loses no point");
    app.add_option("--seed", f.seed, "Of the random numbers")->capture_default_str();
    app.add_option("--frame", f.frame, "Number of the sweep (a folder's are numbered from 0)")->capture_default_str();
    app.add_option("--columns", f.columns, "Floats a point: 4 or 5 (default: found out)");
    app.add_flag("--keep-lost", f.keep_lost, "Keep lost points as zeros");
    app.add_option("--threads", f.threads, "Default: as many as cores are allowed");
    app.add_option("--format", f.format, "text, csv or json")->capture_default_str();
    app.add_flag("-q,--quiet", f.quiet, "No progress on stderr");
    app.footer("Example:\n  strobe sensors weather sweep.pcd.bin --kind rain --rate 10 --seed 1 -o wet.pcd.bin");
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(flags_.format));
    STROBE_ASSIGN(const WeatherOptions options, parse_options());
    if (auto weather = Weather::create(options); !weather) return std::move(weather).error();
    if (flags_.threads < 0) return usage_error(fmt::format("--threads {}: expected 1 or more", flags_.threads));
    const int threads = flags_.threads > 0 ? flags_.threads : std::max(1, static_cast<int>(collect::allowed_cores()));
    std::error_code ignored;
    return fs::is_directory(flags_.input, ignored) ? run_folder(options, threads, format)
                                                   : run_file(options, threads, format);
  }

 private:
  Result<WeatherOptions> parse_options() const {
    WeatherOptions options;
    STROBE_ASSIGN(options.kind, parse_weather_kind(flags_.kind));
    STROBE_ASSIGN(options.rules, parse_weather_rules(flags_.rules));
    const bool falls = options.kind == WeatherKind::kRain || options.kind == WeatherKind::kSnow;
    const bool drops = options.kind != WeatherKind::kFog && options.rules != WeatherRules::kGoodin2019;
    options.mode = drops ? WeatherMode::kMonteCarlo : WeatherMode::kMean;
    if (!flags_.mode.empty()) {
      STROBE_ASSIGN(options.mode, parse_weather_mode(flags_.mode));
    }
    if (falls && app_->count("--rate") == 0)
      return usage_error(fmt::format("--rate is missing: {} falls with some mm/h", flags_.kind));
    if (!falls && app_->count("--rate") > 0)
      return usage_error(fmt::format("--rate: {} has none (expected with rain or snow)", flags_.kind));
    if (options.kind != WeatherKind::kFog && app_->count("--fog") > 0) return usage_error("--fog: expected --kind fog");
    if (flags_.calibrate && app_->count("--max-range") > 0)
      return usage_error("--calibrate and --max-range: give one of them");
    if (flags_.which != "strongest" && flags_.which != "last")
      return usage_error(fmt::format("--return {}: expected strongest or last", flags_.which));
    if (flags_.density != "lisa" && flags_.density != "literature")
      return usage_error(fmt::format("--density {}: expected lisa or literature", flags_.density));
    if (app_->count("--columns") > 0 && flags_.columns != 4 && flags_.columns != 5)
      return usage_error(fmt::format("--columns {}: expected 4 (KITTI) or 5 (nuScenes)", flags_.columns));
    options.rate_mm_h = flags_.rate;
    options.pick = flags_.which == "last" ? DropPick::kFarthest : DropPick::kStrongest;
    options.density = flags_.density == "literature" ? Density::kLiterature : Density::kLisa;
    options.fog = flags_.fog;
    options.max_range_m = flags_.max_range;
    options.seed = flags_.seed;
    return options;
  }

  void set(WeatherJob& job) const {
    job.columns = flags_.columns;
    job.calibrate = flags_.calibrate;
    job.keep_lost = flags_.keep_lost;
  }

  Result<int> run_file(const WeatherOptions& options, int threads, report::Format format) {
    WeatherJob job;
    job.input = flags_.input, job.output = flags_.output, job.frame = flags_.frame;
    set(job);
    STROBE_ASSIGN(const WeatherOutcome outcome, weather_on_file(options, job, threads, false));
    print(options, {outcome}, {outcome.summary.all, outcome.summary.far, outcome.seconds}, format);
    return 0;
  }

  Result<int> run_folder(const WeatherOptions& options, int threads, report::Format format) {
    if (app_->count("--frame") > 0) return usage_error("--frame: a folder's sweeps are numbered by their place");
    STROBE_ASSIGN(std::vector<WeatherJob> jobs, folder_jobs(flags_.input, flags_.output));
    STROBE_ASSIGN(const OutputFolder output_folder, OutputFolder::make(flags_.output));
    for (WeatherJob& job : jobs) set(job);
    const std::atomic<bool>& stop = stop_on_interrupt();
    Totals totals;
    std::vector<WeatherOutcome> outcomes;
    {
      ProgressLine line(!flags_.quiet);
      STROBE_ASSIGN(outcomes, weather_on_files(options, jobs, threads, [&](size_t done) {
                      line.show([&] { return fmt::format("{} of {} sweeps", done, jobs.size()); });
                      return !stop.load();
                    }));
      totals.seconds = line.seconds();
    }
    STROBE_TRY(write_file(fs::path(flags_.output) / "manifest.json", weather_manifest(options, jobs, outcomes)));
    for (const WeatherOutcome& outcome : outcomes) {
      add(totals.all, outcome.summary.all);
      add(totals.far, outcome.summary.far);
    }
    print(options, outcomes, totals, format);
    return 0;
  }

  void print(const WeatherOptions& options, const std::vector<WeatherOutcome>& outcomes, const Totals& totals,
             report::Format format) const {
    const WeatherOutcome& first = outcomes.front();
    if (format == report::Format::kJson) {
      nlohmann::json all = as_json(totals.all);
      all["beyond_near_limit"] = as_json(totals.far);
      all["sweeps"] = outcomes.size();
      all["kind"] = word(options.kind);
      all["rate_mm_h"] = options.rate_mm_h;
      all["mode"] = word(options.mode);
      all["rules"] = word(options.rules);
      all["seed"] = options.seed;
      all["alpha_per_m"] = first.alpha;
      all["max_range_m"] = first.max_range_m;
      all["layout"] = first.layout;
      all["seconds"] = totals.seconds;
      if (options.kind == WeatherKind::kFog) all["fog"] = options.fog;
      fmt::print("{}\n", all.dump(2));
      return;
    }
    Table table(title(options, outcomes.size()),
                {{"which", "points that are counted"},
                 {"points", "before"},
                 {"lost", "too weak or swallowed"},
                 {"scattered", "replaced by a drop"},
                 {"kept", "the others"},
                 {"lost_percent", "of points", 2},
                 {"scattered_percent", "of points", 2},
                 {"kept_percent", "of points", 2},
                 {"lost_dry", "lost with the same rules in clear air"},
                 {"range_rms_m", "root mean square of range after - before, of kept", 4},
                 {"intensity_ratio", "intensity after / before, of kept"}});
    table.add_row(as_row("all", totals.all));
    table.add_row(as_row(fmt::format("beyond {:g} m", options.min_range_m), totals.far));
    table.notes.push_back(fmt::format("alpha {:.6g} /m, maximal range {:.4g} m; {}; {:.2f} ms{}.", first.alpha,
                                      first.max_range_m, first.layout, totals.seconds * 1000,
                                      outcomes.size() > 1 ? " with reading and writing" : ""));
    fmt::print("{}", report::format_table(table, format));
  }

  static std::string title(const WeatherOptions& options, size_t sweeps) {
    std::string what(word(options.kind));
    if (options.kind == WeatherKind::kFog) what += " " + options.fog;
    if (options.rate_mm_h > 0) what += fmt::format(" {:g} mm/h", options.rate_mm_h);
    return fmt::format("Weather: {}, {}, rules {}, seed {}, {} sweep{}", what, word(options.mode), word(options.rules),
                       options.seed, sweeps, sweeps == 1 ? "" : "s");
  }

  CLI::App* app_ = nullptr;
  WeatherFlags flags_;
};

}  // namespace

std::unique_ptr<Word> make_sensors_weather() {
  return std::make_unique<WeatherCommand>();
}

}  // namespace strobe::app
