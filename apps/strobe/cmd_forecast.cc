#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analyze/forecast.h"
#include "ask.h"
#include "base/file.h"
#include "command.h"
#include "report/table_format.h"

namespace strobe::app {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

// "8G", "512M" or bytes.
Result<int64_t> parse_bytes(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  const double factor = unit.empty() ? 1 : unit == "K" ? 1024.0 : unit == "M" ? 0x1p20 : unit == "G" ? 0x1p30 : 0;
  if (end == text.c_str() || factor == 0 || !(value > 0) || value * factor > 1e18)
    return usage_error("--memory '" + text + "': expected bytes, or a number with K, M or G");
  return static_cast<int64_t>(value * factor);
}

class ForecastCommand : public Command {
 public:
  const char* name() const override { return "forecast"; }
  const char* summary() const override { return "Latencies of tenants together, from a trace of each alone"; }
  const char* group() const override { return "Ask"; }
  const char* example() const override { return "strobe forecast camera.sqlite lidar.sqlite --policy priority"; }

  void declare(CLI::App& app) override {
    app.add_option("traces", traces_, "Traces of tenants that ran alone")->required();
    app.add_option(
        "--policy", policy_,
        "concurrent, fifo, priority, priority-preemptive, round-robin, edf, exclusive; default: the first trace's");
    app.add_option("--calibration", calibration_, "JSON file: how much classes of operations slow each other");
    app.add_option("--draws", options_.draws, "Drawn phases")->capture_default_str();
    app.add_option("--seed", options_.seed, "Of the draws")->capture_default_str();
    app.add_flag("--all-sets", options_.all_sets, "Every set of two or more of them");
    CLI::Option* const memory = app.add_option(
        "--memory", memory_, "Memory there is, e.g. 8G: the largest set that fits and meets its deadlines");
    app.add_option("--misses", options_.most_misses, "With --memory: share of frames that may miss")
        ->needs(memory)
        ->capture_default_str();
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    if (!policy_.empty()) {
      STROBE_ASSIGN(options_.policy, analyze::parse_serve_policy(policy_));
    }
    if (!(options_.most_misses >= 0 && options_.most_misses <= 1))
      return usage_error(fmt::format("--misses {:g}: expected a share, 0 to 1", options_.most_misses));
    if (!memory_.empty()) {
      STROBE_ASSIGN(options_.memory_bytes, parse_bytes(memory_));
    }
    if (!calibration_.empty()) {
      STROBE_ASSIGN(const std::string text, read_file(calibration_));
      auto calibration = analyze::parse_calibration(text);
      if (!calibration) return std::move(calibration).error().at(calibration_);
      options_.calibration = std::move(*calibration);
    }
    std::vector<trace::Timeline> timelines;
    std::vector<const trace::Timeline*> solo;
    for (const std::string& path : traces_) {
      STROBE_ASSIGN(trace::Timeline timeline, open_any_trace(path));
      timelines.push_back(std::move(timeline));
    }
    for (const trace::Timeline& timeline : timelines) solo.push_back(&timeline);
    STROBE_ASSIGN(const analyze::Forecast forecast, analyze::forecast(solo, options_));
    if (format == report::Format::kJson) {
      const std::string text = json_of(forecast).dump(2) + "\n";
      std::fwrite(text.data(), 1, text.size(), stdout);
      return 0;
    }
    print_table(forecast.table(), format);
    if (format == report::Format::kText && options_.memory_bytes) print_largest(forecast);
    return 0;
  }

 private:
  static void print_largest(const analyze::Forecast& forecast) {
    if (!forecast.largest) {
      std::printf("\nNo tenant fits and meets its deadlines.\n");
      return;
    }
    std::string names;
    for (const int32_t tenant : forecast.largest->tenants)
      names += (names.empty() ? "" : ", ") + forecast.tenants[static_cast<size_t>(tenant)];
    std::printf("\nThe largest set that fits: %s (%.1f MB, misses %.2f %%).\n", names.c_str(),
                static_cast<double>(forecast.largest->memory_bytes) / 1e6, forecast.largest->miss_rate * 100);
  }

  static Json json_of(const analyze::Forecast& forecast) {
    const auto names = [&forecast](const std::vector<int32_t>& set) {
      Json list = Json::array();
      for (const int32_t tenant : set) list.push_back(forecast.tenants[static_cast<size_t>(tenant)]);
      return list;
    };
    Json json;
    json["policy"] = analyze::serve_policy_name(forecast.policy);
    Json& rows = json["forecast"] = Json::array();
    for (const analyze::ForecastRow& row : forecast.rows) {
      const auto figures = [](const analyze::ForecastFigures& its) {
        return Json{{"p50_ms", number(its.p50_ms)},
                    {"p99_ms", number(its.p99_ms)},
                    {"miss_rate", number(its.miss_rate)},
                    {"interval",
                     {{"p50_ms", {number(its.p50_low), number(its.p50_high)}},
                      {"p99_ms", {number(its.p99_low), number(its.p99_high)}},
                      {"miss_rate", {number(its.miss_low), number(its.miss_high)}}}}};
      };
      Json one{{"set", names(row.set)}, {"tenant", forecast.tenants[static_cast<size_t>(row.tenant)]}};
      one.update(figures(row.forecast));
      one["equal_share"] = figures(row.equal_share);
      one["no_interference"] = figures(row.no_interference);
      rows.push_back(std::move(one));
    }
    if (forecast.largest)
      json["largest"] = {{"set", names(forecast.largest->tenants)},
                         {"memory_bytes", forecast.largest->memory_bytes},
                         {"miss_rate", forecast.largest->miss_rate}};
    json["notes"] = forecast.notes;
    return json;
  }

  std::vector<std::string> traces_;
  std::string policy_, calibration_, memory_, format_ = "text";
  analyze::ForecastOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_forecast_command() {
  return std::make_unique<ForecastCommand>();
}

}  // namespace strobe::app
