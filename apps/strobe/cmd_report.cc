#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>

#include "base/file.h"
#include "command.h"
#include "report/html_report.h"
#include "report/plotly_file.h"
#include "trace/open.h"

namespace strobe::app {
namespace {

namespace fs = std::filesystem;

std::string fact(const trace::Timeline& timeline, const char* key) {
  const auto found = timeline.facts.find(key);
  return found == timeline.facts.end() ? std::string() : found->second;
}

// The engine, or the file's name; a number after it where another run has the same.
std::string label_of(const trace::Timeline& timeline, const fs::path& path,
                     const std::vector<report::ReportInput>& others) {
  std::string base = fact(timeline, "engine");
  if (base.empty()) base = path.stem().string();
  std::string label = base;
  const auto taken = [&others, &label] {
    return std::any_of(others.begin(), others.end(), [&label](const auto& other) { return other.label == label; });
  };
  for (int number = 2; taken(); ++number) label = base + " #" + std::to_string(number);
  return label;
}

// "vtest.avi through yolov4-tiny" where the trace knows both.
std::string title_of(const trace::Timeline& timeline) {
  const std::string input = fs::path(fact(timeline, "input")).filename().string();
  const std::string model = fs::path(fact(timeline, "model")).stem().string();
  if (input.empty() || model.empty()) return "Strobe report";
  return input + " through " + model;
}

class ReportCommand : public Command {
 public:
  const char* name() const override { return "report"; }
  const char* summary() const override { return "One HTML page out of one or several traces"; }
  const char* group() const override { return "Look"; }
  const char* example() const override {
    return "strobe report out/torch.sqlite out/openvino.sqlite -o report.html\n  strobe report out";
  }

  void declare(CLI::App& app) override {
    app.add_option("trace", traces_, "Trace files, or folders of runs; the first is what others are compared with")
        ->required();
    app.add_option("-o,--output", output_, "The page; - is stdout")->capture_default_str();
    app.add_option("--title", title_, "Heading of the page");
    app.add_option("--plotly", plotly_, "Path of plotly.min.js");
    app.add_flag("--quiet", quiet_, "Say nothing when it is done");
  }

  Result<int> run() override {
    // What is missing is said before long traces are read.
    STROBE_ASSIGN(const fs::path plotly, report::find_plotly(plotly_));
    std::vector<Opened> traces;
    for (const std::string& given : traces_) {
      STROBE_ASSIGN(auto opened, open_traces(given));
      std::move(opened.begin(), opened.end(), std::back_inserter(traces));
    }
    std::vector<report::ReportInput> runs;
    for (const Opened& opened : traces)
      runs.push_back({label_of(opened.timeline, opened.path, runs), &opened.timeline});
    STROBE_ASSIGN(const std::string page,
                  report::html_report(runs, {title_.empty() ? title_of(traces[0].timeline) : title_, plotly.string()}));
    if (output_ == "-") {
      std::fwrite(page.data(), 1, page.size(), stdout);
      return 0;
    }
    STROBE_TRY(write_file(output_, page));
    if (!quiet_)
      std::fprintf(stderr, "%s: %zu run%s, %.1f MB\n", output_.c_str(), runs.size(), runs.size() == 1 ? "" : "s",
                   static_cast<double>(page.size()) / 1e6);
    return 0;
  }

 private:
  struct Opened {
    fs::path path;
    trace::Timeline timeline;
  };

  // A folder stands for every trace in it, in the order in which they were recorded; one without any is left to
  // open_trace, which reads what a recorder left.
  static Result<std::vector<Opened>> open_traces(const std::string& given) {
    STROBE_ASSIGN(auto files, trace::trace_files(given));
    if (files.empty()) files.emplace_back(given);
    std::vector<Opened> opened;
    for (const fs::path& path : files) {
      STROBE_ASSIGN(auto timeline, trace::open_trace(path));
      opened.push_back({path, std::move(timeline)});
    }
    std::stable_sort(opened.begin(), opened.end(), [](const Opened& a, const Opened& b) {
      return a.timeline.utc_start_ns < b.timeline.utc_start_ns;
    });
    return opened;
  }

  std::vector<std::string> traces_;
  std::string output_ = "report.html", title_, plotly_;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_report_command() {
  return std::make_unique<ReportCommand>();
}

}  // namespace strobe::app
