#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analyze/what_if.h"
#include "analyze/what_if_tenants.h"
#include "ask.h"
#include "base/file.h"
#include "command.h"
#include "report/table_format.h"

namespace strobe::app {
namespace {

// Several tables as one JSON object: the members of the first, then the others by name.
std::string join_json(const std::string& head, const std::vector<std::pair<std::string, std::string>>& tables) {
  std::string text = "{\n" + head;
  for (const auto& [name, table] : tables) {
    text += ",\n\"" + name + "\": " + table;
    text.erase(text.find_last_not_of('\n') + 1);
  }
  return text + "\n}\n";
}

nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

nlohmann::ordered_json figures_json(const analyze::LatencyFigures& its) {
  return {{"p50_ms", number(its.p50_ms)},   {"p95_ms", number(its.p95_ms)},
          {"p99_ms", number(its.p99_ms)},   {"max_ms", number(its.max_ms)},
          {"mean_ms", number(its.mean_ms)}, {"miss_rate", number(its.miss_rate)},
          {"frames", its.frames},           {"frames_per_second", number(its.frames_per_second)}};
}

// The figures before and after a change, with the interval of each.
void add_answer(nlohmann::ordered_json& json, const analyze::TenantAnswer& answer) {
  const auto interval = [](const std::optional<std::pair<double, double>>& its) {
    return its ? nlohmann::ordered_json{its->first, its->second} : nlohmann::ordered_json();
  };
  json["baseline_replay_error"] = {{"p50", answer.p50_error}, {"p99", answer.p99_error}};
  json["measured"] = figures_json(answer.measured);
  json["before"] = figures_json(answer.before);
  json["after"] = figures_json(answer.after);
  for (const auto& [name, its] :
       {std::pair("equal_share", &answer.equal_share), std::pair("no_interference", &answer.no_interference)})
    json[name] = {{"p50_ms", number(its->p50_ms)}, {"p99_ms", number(its->p99_ms)}};
  json["after"]["ci95"] = {{"p50_ms", interval(answer.p50_ci_ms)}, {"p99_ms", interval(answer.p99_ci_ms)}};
}

class WhatIfCommand : public Command {
 public:
  const char* name() const override { return "what-if"; }
  const char* summary() const override { return "Replays a trace with a change: what it would gain"; }
  const char* group() const override { return "Ask"; }
  const char* example() const override { return "strobe what-if out/trace.sqlite --scale stage:infer=0.5 --sweep"; }

  void declare(CLI::App& app) override {
    app.add_option("trace", trace_, "Trace file, or a folder with one")->required();
    app.add_option("--scale", scales_,
                   "Service times: stage:NAME=FACTOR, also layer:, kernel:REGEX, range:, tenant:; of tenants' traces "
                   "tenant=NAME,stage=NAME:FACTOR");
    app.add_option("--remove", removed_, "Work that is not done: stage:NAME, also layer:, kernel:, range:, tenant:");
    app.add_option("--policy", policy_, "Of tenants: who is served first (fifo, priority, priority-preemptive, ...)");
    app.add_option("--priority", priorities_, "Of a tenant: tenant=NAME:NUMBER, greater goes first");
    app.add_option("--rate", rates_, "Of a tenant: tenant=NAME:FRAMES_A_SECOND (of batches: their pictures)");
    app.add_flag("--add-copy", add_copy_, "Of tenants: one more copy engine");
    app.add_option("--calibration", calibration_,
                   "Of tenants: JSON file of strobe calibrate, instead of what the trace says of interference");
    app.add_option("--cores", options_.cores, "Cores of the machine");
    app.add_option("--sessions", options_.sessions, "Inferences at the same time");
    app.add_option("--queue", options_.queue, "Batches that may wait between two stages");
    app.add_option("--range", options_.range, "Of a trace of another program: whose instances are timed");
    app.add_flag("--sweep", options_.sweep, "What a faster part is worth, for each part");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(const trace::Timeline timeline, open_any_trace(trace_));
    if (analyze::is_tenant_trace(timeline)) return of_tenants(timeline, format);
    if (!policy_.empty() || !priorities_.empty() || !rates_.empty() || add_copy_ || !calibration_.empty())
      return usage_error("--policy, --priority, --rate, --add-copy and --calibration need a trace of several tenants");
    for (const std::string& text : scales_) {
      STROBE_ASSIGN(analyze::Scale scale, analyze::parse_scale(text));
      options_.scales.push_back(std::move(scale));
    }
    for (const std::string& text : removed_) {
      STROBE_ASSIGN(analyze::Selector selector, analyze::parse_selector(text));
      options_.removed.push_back(std::move(selector));
    }
    STROBE_ASSIGN(const analyze::WhatIf answer, analyze::what_if(timeline, options_));
    std::string text;
    if (format == report::Format::kJson) {
      std::vector<std::pair<std::string, std::string>> tables{
          {"answer", report::format_table(answer.answer, format)},
          {"critical_path", report::format_table(answer.path, format)}};
      if (answer.sweep) tables.emplace_back("sweep", report::format_table(*answer.sweep, format));
      const std::string head = std::string("\"reliable\": ") + (answer.is_reliable ? "true" : "false") +
                               ",\n\"replay_error\": {\"p50\": " + std::to_string(answer.p50_error) +
                               ", \"p99\": " + std::to_string(answer.p99_error) + "}";
      text = join_json(head, tables);
    } else if (format == report::Format::kCsv) {
      text = report::format_table(answer.sweep ? *answer.sweep : answer.answer, format);
    } else {
      text = report::format_table(answer.answer, format) + "\n" + report::format_table(answer.path, format);
      if (answer.sweep) text += "\n" + report::format_table(*answer.sweep, format);
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }

 private:
  Result<int> of_tenants(const trace::Timeline& timeline, report::Format format) const {
    if (options_.sessions || options_.queue || !options_.range.empty())
      return usage_error("--sessions, --queue and --range do not fit a trace of several tenants");
    analyze::TenantWhatIfOptions options;
    for (const std::string& text : scales_) {
      STROBE_ASSIGN(analyze::TenantScale scale, analyze::parse_tenant_scale(text));
      options.scales.push_back(std::move(scale));
    }
    for (const std::string& text : removed_) {
      STROBE_ASSIGN(analyze::TenantSelector selector, analyze::parse_tenant_selector(text));
      options.removed.push_back(std::move(selector));
    }
    for (const std::string& text : priorities_) {
      STROBE_ASSIGN(auto value, analyze::parse_tenant_value("--priority", text));
      options.priorities.push_back(std::move(value));
    }
    for (const std::string& text : rates_) {
      STROBE_ASSIGN(auto value, analyze::parse_tenant_value("--rate", text));
      options.rates.push_back(std::move(value));
    }
    if (!policy_.empty()) {
      STROBE_ASSIGN(options.policy, analyze::parse_serve_policy(policy_));
    }
    if (!calibration_.empty()) {
      STROBE_ASSIGN(const std::string text, read_file(calibration_));
      auto calibration = analyze::parse_calibration(text);
      if (!calibration) return std::move(calibration).error().at(calibration_);
      options.calibration = std::move(*calibration);
    }
    options.cores = options_.cores;
    options.add_copy = add_copy_;
    options.sweep = options_.sweep;
    STROBE_ASSIGN(const analyze::TenantWhatIf answer, analyze::what_if_tenants(timeline, options));
    std::string text;
    if (format == report::Format::kJson) {
      nlohmann::ordered_json json;
      json["reliable"] = answer.is_reliable;
      add_answer(json, answer.all);
      for (const analyze::TenantAnswer& one : answer.tenants) {
        nlohmann::ordered_json row{{"tenant", one.tenant}};
        add_answer(row, one);
        json["tenants"].push_back(std::move(row));
      }
      json["notes"] = answer.notes;
      if (answer.sweep) json["sweep"] = nlohmann::ordered_json::parse(report::format_table(*answer.sweep, format));
      text = json.dump(2) + "\n";
    } else if (format == report::Format::kCsv) {
      text = report::format_table(answer.sweep ? *answer.sweep : answer.table(), format);
    } else {
      text = report::format_table(answer.table(), format);
      if (answer.sweep) text += "\n" + report::format_table(*answer.sweep, format);
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }

  std::string trace_, policy_, calibration_, format_ = "text";
  std::vector<std::string> scales_, removed_, priorities_, rates_;
  bool add_copy_ = false;
  analyze::WhatIfOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_what_if_command() {
  return std::make_unique<WhatIfCommand>();
}

}  // namespace strobe::app
