#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "analyze/tenant_trace.h"
#include "base/file.h"
#include "command.h"
#include "import_recording.h"
#include "report/html_report.h"
#include "report/plotly_file.h"
#include "report_tenants.h"
#include "trace/open.h"

namespace strobe::app {
namespace {

namespace fs = std::filesystem;

std::string fact(const trace::Timeline& timeline, const char* key) {
  const auto found = timeline.facts.find(key);
  return found == timeline.facts.end() ? std::string() : found->second;
}

// The cell of an experiment, the engine, or the file's name; a number after it where another run has the same.
std::string label_of(const trace::Timeline& timeline, const fs::path& path, const std::vector<std::string>& others) {
  std::string base = fact(timeline, "experiment.cell");
  if (base.empty()) base = fact(timeline, "engine");
  if (base.empty()) base = path.stem().string();
  std::string label = base;
  for (int number = 2; std::find(others.begin(), others.end(), label) != others.end(); ++number)
    label = base + " #" + std::to_string(number);
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
    for (const std::string& given : traces_) STROBE_TRY(open_traces(given));
    std::vector<report::ReportInput> runs;
    for (const Opened& opened : opened_) runs.push_back({opened.label, &opened.timeline});
    report::ReportOptions options{.title = title_.empty() ? title() : title_, .plotly_js = plotly.string()};
    if (!tenants_.page().runs.empty()) options.tenants = &tenants_.page();
    STROBE_ASSIGN(const std::string page, report::html_report(runs, options));
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
    std::string label;
    fs::path path;
    trace::Timeline timeline;
  };

  // A folder stands for every trace in it, in the order in which they were recorded (cells of an experiment in that of
  // their names); one without any is left to open_trace, which reads what a recorder left.
  Result<void> open_traces(const std::string& given) {
    STROBE_ASSIGN(auto files, trace::trace_files(given));
    if (files.empty()) files.emplace_back(given);
    std::vector<Opened> opened;
    for (const fs::path& path : files) {
      STROBE_ASSIGN(auto timeline, trace::open_trace(path, trace::StoreParts::kAll, import_recording));
      if (!analyze::is_tenant_trace(timeline)) {
        opened.push_back({"", path, std::move(timeline)});
        continue;
      }
      const std::string label = label_of(timeline, path, labels_);
      labels_.push_back(label);
      tenants_.add(label, timeline, path);
      if (tenant_timelines_++ < kTenantTimelines) opened.push_back({label, path, std::move(timeline)});
    }
    std::stable_sort(opened.begin(), opened.end(), [](const Opened& a, const Opened& b) {
      return a.label.empty() && b.label.empty() && a.timeline.utc_start_ns < b.timeline.utc_start_ns;
    });
    for (Opened& one : opened) {
      if (one.label.empty()) labels_.push_back(one.label = label_of(one.timeline, one.path, labels_));
      opened_.push_back(std::move(one));
    }
    if (std::error_code ignored; tenant_timelines_ > 0 && fs::is_directory(given, ignored))
      add_failed_cells(tenants_.page(), given);
    return {};
  }

  // The experiment's folder or the cell, else the first input and model.
  std::string title() const {
    if (tenants_.page().runs.empty()) return title_of(opened_.front().timeline);
    if (tenants_.page().runs.size() == 1) return tenants_.page().runs.front().label;
    const fs::path folder = fs::absolute(traces_.front()).lexically_normal();
    return (folder.filename().empty() ? folder.parent_path() : folder).filename().string();
  }

  // A page holds the timelines of so many runs of tenants; of the others, their tables.
  static constexpr size_t kTenantTimelines = 8;

  std::vector<Opened> opened_;
  std::vector<std::string> labels_;
  TenantsCollector tenants_;
  size_t tenant_timelines_ = 0;
  std::vector<std::string> traces_;
  std::string output_ = "report.html", title_, plotly_;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_report_command() {
  return std::make_unique<ReportCommand>();
}

}  // namespace strobe::app
