// Every analysis that has something to say of a trace, after reading it once.
#include <cstdio>
#include <map>
#include <string>

#include "analyze/answers.h"
#include "analyze/critical_path.h"
#include "ask.h"
#include "command.h"
#include "critical_path_text.h"
#include "report/table_format.h"

namespace strobe::app {
namespace {

class ExplainCommand : public Command {
 public:
  const char* name() const override { return "explain"; }
  const char* summary() const override { return "All of the analyses that apply, one after the other"; }
  const char* group() const override { return "Ask"; }
  const char* example() const override { return "strobe explain trace.json.gz --range ProfilerStep --instance 2"; }

  void declare(CLI::App& app) override {
    app.add_option("trace", trace_, "Trace file or folder, or another tool's trace")->required();
    auto* range = app.add_option("--range", choice_.range, "Name of a range: with the critical path through it");
    app.add_option("--instance", choice_.instance, "Which of the ranges with that name, from 0")
        ->needs(range)
        ->capture_default_str();
    app.add_option("--rules", rules_, "strobe, or hta: as HolisticTraceAnalysis counts")
        ->check(CLI::IsMember({"strobe", "hta"}))
        ->capture_default_str();
    app.add_option("--top", top_, "At most so many names a table, most time first; 0: all")->capture_default_str();
    app.add_option("--format", format_, "text or json")->check(CLI::IsMember({"text", "json"}))->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    STROBE_ASSIGN(const analyze::IdleRules rules, analyze::parse_idle_rules(rules_));
    STROBE_ASSIGN(const trace::Timeline timeline, open_any_trace(trace_));
    Printer out(format);
    for (const analyze::Answer& answer : analyze::answers(timeline, {.rules = rules, .top = top_}))
      out.add(answer.key, answer.table);
    if (!choice_.range.empty()) {
      STROBE_ASSIGN(const analyze::CriticalPath path, rules_ == "hta" ? analyze::critical_path_hta(timeline, choice_)
                                                                      : analyze::critical_path(timeline, choice_));
      out.add("critical_path", path.rows, critical_path_text(path, path.rows, format));
    }
    return out.end();
  }

 private:
  // Tables without rows are left out.
  class Printer {
   public:
    explicit Printer(report::Format format) : is_json_(format == report::Format::kJson), format_(format) {}
    void add(const std::string& key, const Table& table) {
      if (table.row_count() > 0) add(key, table, report::format_table(table, format_));
    }
    void add(const std::string& key, const Table& table, std::string text) {
      if (table.row_count() == 0) return;
      if (is_json_) {
        // A log may have brought several tables.
        const std::string unique = count_[key]++ == 0 ? key : key + "_" + std::to_string(count_[key]);
        while (!text.empty() && text.back() == '\n') text.pop_back();
        text = (is_first_ ? "{\n\"" : ",\n\"") + unique + "\": " + text;
      } else if (!is_first_) {
        text.insert(0, "\n\n");
      }
      is_first_ = false;
      text_ += text;
    }
    // Nothing is printed before everything is known to be well.
    int end() {
      text_ += is_json_ ? (is_first_ ? "{}\n" : "\n}\n") : (is_first_ ? "Nothing in this trace.\n" : "");
      std::fwrite(text_.data(), 1, text_.size(), stdout);
      return 0;
    }

   private:
    bool is_json_, is_first_ = true;
    report::Format format_;
    std::map<std::string, int> count_;
    std::string text_;
  };

  std::string trace_, rules_ = "strobe", format_ = "text";
  size_t top_ = 20;
  analyze::WindowChoice choice_;
};

}  // namespace

std::unique_ptr<Command> make_explain_command() {
  return std::make_unique<ExplainCommand>();
}

}  // namespace strobe::app
