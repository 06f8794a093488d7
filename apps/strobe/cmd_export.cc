#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "ask.h"
#include "base/suggest.h"
#include "command.h"
#include "exporters/exporter.h"
#include "pperf_files.h"

namespace strobe::app {
namespace {

namespace fs = std::filesystem;

class ExportCommand : public Command {
 public:
  const char* name() const override { return "export"; }
  const char* summary() const override { return "A trace in another tool's format"; }
  const char* group() const override { return "Move"; }
  const char* example() const override { return "strobe export out --to perfetto -o out.pftrace"; }

  void declare(CLI::App& app) override {
    std::string formats;
    for (const auto& format : exporters::known_formats())
      formats.append(formats.empty() ? "" : "; ").append(format.name).append(": ").append(format.description);
    app.add_option("trace", trace_, "Trace file, output folder of a run, or another tool's trace")->required();
    app.add_option("--to", format_,
                   "Format: " + formats + "; pperf: a folder of the CSV files that pPerf's analyses write")
        ->required();
    app.add_option("-o,--output", output_, "File to write; a folder for csv and pperf")->required();
    app.add_flag("--quiet", quiet_, "Say nothing but errors");
  }

  Result<int> run() override {
    std::vector<std::string> names;
    bool known = false;
    for (const auto& format : exporters::known_formats()) {
      known |= format.name == format_;
      names.push_back(format.name);
    }
    names.emplace_back("pperf");
    known |= format_ == "pperf";
    if (!known) return usage_error("--to " + format_ + ": no such format; " + suggest(format_, names));
    std::error_code ignored;
    if (fs::equivalent(trace_, output_, ignored))
      return usage_error("the output " + output_ + " is the input itself; give another one with -o");
    STROBE_ASSIGN(const trace::Timeline timeline, open_any_trace(trace_));
    if (format_ == "pperf") return export_pperf(timeline);
    STROBE_TRY(exporters::export_timeline(timeline, format_, output_));
    if (quiet_) return 0;
    std::printf("%s: %zu ranges, %zu marks, %zu flows, %zu counter values, %.3f s\n", output_.c_str(),
                timeline.ranges.size(), timeline.marks.size(), timeline.flows.size(), timeline.counters.size(),
                static_cast<double>(timeline.duration_ns) / 1e9);
    for (const auto& [kind, count] : timeline.losses.faults)
      std::fprintf(stderr, "strobe: note: %llu x %s\n", static_cast<unsigned long long>(count), kind.c_str());
    return 0;
  }

 private:
  Result<int> export_pperf(const trace::Timeline& timeline) const {
    const std::string index = "0";
    STROBE_ASSIGN(const auto written, write_pperf_files(timeline, output_, index));
    if (!quiet_)
      for (const fs::path& path : written) std::printf("%s\n", path.c_str());
    return 0;
  }

  std::string trace_, format_, output_;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_export_command() {
  return std::make_unique<ExportCommand>();
}

}  // namespace strobe::app
