#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analyze/deadlines.h"
#include "ask.h"
#include "command.h"
#include "report/table_format.h"

namespace strobe::app {
namespace {

using Json = nlohmann::ordered_json;

class DeadlineCommand : public Command {
 public:
  const char* name() const override { return "deadline"; }
  const char* summary() const override {
    return "Which frames missed their deadline, for what reason, and who was to blame";
  }
  const char* group() const override { return "Ask"; }
  const char* example() const override { return "strobe deadline out/000/trace.sqlite --deadline-ms 100"; }

  void declare(CLI::App& app) override {
    app.add_option("trace", trace_, "Trace of several tenants, or a folder with one")->required();
    app.add_option("--deadline-ms", options_.deadline_ms, "From the stamp, for all tenants; without it each one's own");
    app.add_option("--window", options_.window, "Frames in a row, of which the most misses are counted")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    app.add_option("--top", top_, "Late frames shown as text, the latest first; 0: all")->capture_default_str();
    app.add_option("--format", format_, "text, csv (the late frames) or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    if (options_.deadline_ms && !(*options_.deadline_ms > 0 && std::isfinite(*options_.deadline_ms)))
      return usage_error(fmt::format("--deadline-ms {:g}: expected milliseconds above 0", *options_.deadline_ms));
    STROBE_ASSIGN(const trace::Timeline timeline, open_any_trace(trace_));
    auto answer = analyze::deadlines(timeline, options_);
    if (!answer) return std::move(answer).error().at(trace_);
    std::string text;
    if (format == report::Format::kJson) {
      const auto json = [&](const Table& table) { return Json::parse(report::format_table(table, format)); };
      Json out = json(answer->tenants);
      out["reasons"] = json(answer->reasons);
      out["late"] = json(answer->late);
      out["budget"] = json(answer->budget);
      text = out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    } else if (format == report::Format::kCsv) {
      text = report::format_table(answer->late, format);
    } else {
      text = report::format_table(answer->tenants, format);
      if (answer->late.row_count() > 0)
        text += "\n" + report::format_table(answer->reasons, format) + "\n" +
                report::format_table(latest(answer->late), format);
      text += "\n" + report::format_table(answer->budget, format);
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }

 private:
  // The rows that are furthest beyond their deadline.
  Table latest(const Table& all) const {
    std::vector<size_t> order(all.row_count());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return *all.number(a, "over_ms") > *all.number(b, "over_ms"); });
    if (top_ > 0 && order.size() > top_) order.resize(top_);
    Table table(all.title(), all.columns());
    for (const size_t i : order) table.add_row(all.rows()[i]);
    table.notes = all.notes;
    if (table.row_count() < all.row_count())
      table.notes.push_back(std::to_string(all.row_count() - table.row_count()) +
                            " more late frames: --top 0, or --format csv");
    return table;
  }

  std::string trace_, format_ = "text";
  size_t top_ = 10;
  analyze::DeadlineOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_deadline_command() {
  return std::make_unique<DeadlineCommand>();
}

}  // namespace strobe::app
