#include <cstdio>
#include <optional>
#include <string>

#include "analyze/critical_path.h"
#include "ask.h"
#include "command.h"
#include "critical_path_text.h"
#include "report/table_format.h"

namespace strobe::app {
namespace {

class CriticalPathCommand : public Command {
 public:
  const char* name() const override { return "critical-path"; }
  const char* summary() const override { return "What decided how long a part of the trace took"; }
  const char* group() const override { return "Ask"; }
  const char* example() const override { return "strobe critical-path out/trace.sqlite --frame 120 --segments"; }

  void declare(CLI::App& app) override {
    app.add_option("trace", trace_, "Trace file, or a folder with one")->required();
    app.add_option("--range", choice_.range, "Name of a range: the path through it (default: the whole trace)");
    app.add_option("--instance", choice_.instance, "Which of the ranges with that name, from 0")->capture_default_str();
    auto* frame = app.add_option("--frame", choice_.frame, "A frame of a pipeline's run, instead of a range");
    app.add_flag("--strict", choice_.strict, "Of a frame: follow also what held it up, into other frames")
        ->needs(frame);
    app.add_option("--tenant", choice_.tenant, "Whose frame, in a trace of several tenants")->needs(frame);
    app.add_option("--rules", rules_, "strobe, or hta (those of HolisticTraceAnalysis 0.6.1)")
        ->check(CLI::IsMember({"strobe", "hta"}))
        ->capture_default_str();
    app.add_flag("--segments", segments_, "The path itself, piece by piece");
    app.add_flag("--events", events_, "The ranges on the path, each once");
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    if (choice_.frame && !choice_.range.empty()) return usage_error("--frame and --range exclude each other");
    if (choice_.frame && rules_ == "hta")
      return usage_error("--rules hta knows no frames; give --range, or --rules strobe");
    STROBE_ASSIGN(const trace::Timeline timeline, open_any_trace(trace_));
    const Table* imported = analyze::imported_dependency_table(timeline);
    // What the log's own tool had found answers the plain question; anything more special is asked of the events.
    if (imported && choice_.range.empty() && !choice_.frame && rules_ == "strobe" && !segments_ && !events_) {
      print(report::format_table(*imported, format));
      return 0;
    }
    STROBE_ASSIGN(const analyze::CriticalPath path, rules_ == "hta" ? analyze::critical_path_hta(timeline, choice_)
                                                                    : analyze::critical_path(timeline, choice_));
    Table table = segments_ ? analyze::path_segments(timeline, path)
                  : events_ ? analyze::path_events(timeline, path)
                            : path.rows;
    if (format == report::Format::kText && !segments_ && !events_) {
      table.notes.push_back("graph: " + std::to_string(path.nodes) + " nodes, " + std::to_string(path.edges) +
                            " edges (" + counts_text(path.by_type) + ")");
      if (path.path_nodes > 0)
        table.notes.push_back("path: " + std::to_string(path.path_nodes) + " nodes, " +
                              std::to_string(path.path_edges) + " edges (" + counts_text(path.path_by_type) + "), " +
                              std::to_string(path.events.size()) + " events");
    }
    print(critical_path_text(path, table, format));
    return 0;
  }

 private:
  static void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

  std::string trace_, rules_ = "strobe", format_ = "text";
  analyze::WindowChoice choice_;
  bool segments_ = false, events_ = false;
};

}  // namespace

std::unique_ptr<Command> make_critical_path_command() {
  return std::make_unique<CriticalPathCommand>();
}

}  // namespace strobe::app
