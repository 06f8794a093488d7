#include <cstdio>
#include <string>
#include <vector>

#include "analyze/what_if.h"
#include "ask.h"
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

class WhatIfCommand : public Command {
 public:
  const char* name() const override { return "what-if"; }
  const char* summary() const override { return "Replays a trace with a change: what it would gain"; }
  const char* group() const override { return "Ask"; }
  const char* example() const override { return "strobe what-if out/trace.sqlite --scale stage:infer=0.5 --sweep"; }

  void declare(CLI::App& app) override {
    app.add_option("trace", trace_, "Trace file, or a folder with one")->required();
    app.add_option("--scale", scales_, "Service times: stage:NAME=FACTOR, also layer:, kernel:REGEX, range:, tenant:");
    app.add_option("--remove", removed_, "Work that is not done: stage:NAME, also layer:, kernel:, range:, tenant:");
    app.add_option("--cores", options_.cores, "Cores of the machine");
    app.add_option("--sessions", options_.sessions, "Inferences at the same time");
    app.add_option("--queue", options_.queue, "Batches that may wait between two stages");
    app.add_option("--range", options_.range, "Of a trace of another program: whose instances are timed");
    app.add_flag("--sweep", options_.sweep, "What a faster part is worth, for each part");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    for (const std::string& text : scales_) {
      STROBE_ASSIGN(analyze::Scale scale, analyze::parse_scale(text));
      options_.scales.push_back(std::move(scale));
    }
    for (const std::string& text : removed_) {
      STROBE_ASSIGN(analyze::Selector selector, analyze::parse_selector(text));
      options_.removed.push_back(std::move(selector));
    }
    STROBE_ASSIGN(const trace::Timeline timeline, open_any_trace(trace_));
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
  std::string trace_, format_ = "text";
  std::vector<std::string> scales_, removed_;
  analyze::WhatIfOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_what_if_command() {
  return std::make_unique<WhatIfCommand>();
}

}  // namespace strobe::app
