#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <string>

#include "command.h"
#include "importers/importer.h"
#include "interrupt.h"
#include "progress_line.h"
#include "report/table_format.h"
#include "trace/store.h"

namespace strobe::app {
namespace {

namespace fs = std::filesystem;

// "[####      ]  42% of 1200 MB", or what was read where the whole is not known.
std::string bar(uint64_t done, uint64_t total) {
  constexpr double kMega = 1e6;
  constexpr size_t kWidth = 40;
  if (total == 0) return fmt::format("{:.0f} MB", static_cast<double>(done) / kMega);
  const double share = static_cast<double>(done) / static_cast<double>(total);
  return fmt::format("[{:<{}}] {:3.0f}% of {:.0f} MB", std::string(static_cast<size_t>(share * kWidth), '#'), kWidth,
                     share * 100, static_cast<double>(total) / kMega);
}

// "runs/worker0.pt.trace.json.gz" -> "worker0.pt.trace.sqlite", in the current folder.
fs::path default_output(const fs::path& input) {
  fs::path name = input.filename();
  if (name.extension() == ".gz") name.replace_extension();
  return name.replace_extension(".sqlite");
}

Table summary(const trace::Timeline& timeline, const std::string& title) {
  Table table(title, {{"what", "Kind of record", 0},
                      {"count", "How many", 0},
                      {"total_ms", "Sum of durations (nested ranges count in each other)", 3}});
  constexpr std::array<const char*, 10> kKinds{"annotations", "operators", "API calls", "OS calls",         "overhead",
                                               "kernels",     "copies",    "memsets",   "synchronisations", "graphs"};
  std::array<int64_t, kKinds.size()> counts{}, sums{};
  const trace::Ranges& ranges = timeline.ranges;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const auto kind = static_cast<size_t>(ranges.kind[i]);
    ++counts[kind];
    sums[kind] += ranges.end_ns[i] - ranges.start_ns[i];
  }
  for (size_t kind = 0; kind < kKinds.size(); ++kind)
    if (counts[kind] > 0)
      table.add_row({std::string(kKinds[kind]), counts[kind], static_cast<double>(sums[kind]) / 1e6});
  const auto add = [&table](const char* what, size_t count) {
    if (count > 0) table.add_row({std::string(what), static_cast<int64_t>(count), Cell()});
  };
  add("arguments", timeline.arguments.size());
  add("flows", timeline.flows.size());
  add("counter values", timeline.counters.size());
  add("marks", timeline.marks.size());
  add("network layers", timeline.layers.size());
  add("network kernels", timeline.kernels.size());
  add("tables", timeline.tables.size());
  for (const auto& [kind, count] : timeline.losses.faults) table.notes.push_back(fmt::format("{} x {}", count, kind));
  if (timeline.losses.dropped_records > 0)
    table.notes.push_back(
        fmt::format("{} records were dropped while it was recorded", timeline.losses.dropped_records));
  return table;
}

class ImportCommand : public Command {
 public:
  const char* name() const override { return "import"; }
  const char* summary() const override { return "Another tool's trace as a Strobe trace"; }
  const char* group() const override { return "Move"; }
  const char* example() const override { return "strobe import worker0.pt.trace.json.gz -o worker0.sqlite"; }

  void declare(CLI::App& app) override {
    std::string formats;
    for (const auto& format : importers::known_formats())
      formats.append(formats.empty() ? "" : ", ").append(format.name);
    app.add_option("file", file_,
                   "PyTorch or Chrome JSON (.gz too), Nsight Systems SQLite export, nvprof log, trtexec JSON")
        ->required();
    app.add_option("-o,--output", output_,
                   "Trace file to write; default: the file's name with .sqlite, in this folder");
    app.add_option("--format", format_, "Format of the file: " + formats + "; default: by its content");
    app.add_flag("--quiet", quiet_, "Say nothing but errors");
  }

  Result<int> run() override {
    const fs::path output = output_.empty() ? default_output(file_) : fs::path(output_);
    std::error_code ignored;
    if (fs::equivalent(file_, output, ignored))
      return usage_error("the output " + output.string() + " is the input itself; give another one with -o");
    const std::atomic<bool>& stop_requested = stop_on_interrupt();
    importers::ImportOptions options{.format = format_, .on_progress = {}, .stop = &stop_requested};
    trace::Timeline timeline;
    {
      ProgressLine progress(!quiet_);
      options.on_progress = [&progress](uint64_t done, uint64_t total) {
        progress.show([=] { return bar(done, total); });
      };
      STROBE_ASSIGN(timeline, importers::import_trace(file_, options));
    }
    STROBE_TRY(trace::write_store(timeline, output));
    if (!quiet_) {
      const std::string title = fmt::format("{} ({}, {:.3f} s of events) -> {}", fs::path(file_).filename().string(),
                                            timeline.facts["import.format"],
                                            static_cast<double>(timeline.duration_ns) / 1e9, output.string());
      std::fputs(report::format_table(app::summary(timeline, title), report::Format::kText).c_str(), stdout);
    }
    constexpr int kInterruptedCode = 130;
    return stop_requested ? kInterruptedCode : 0;
  }

 private:
  std::string file_, output_, format_;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_import_command() {
  return std::make_unique<ImportCommand>();
}

}  // namespace strobe::app
