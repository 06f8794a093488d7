#include "run_recording.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "analyze/steps.h"
#include "base/file.h"
#include "collect/machine.h"
#include "gpu/timeline/open.h"
#include "report/table_format.h"
#include "strobe/record/annotate.h"
#include "trace/store.h"

namespace strobe::app {

namespace fs = std::filesystem;

Result<std::unique_ptr<RunRecording>> RunRecording::start(const fs::path& folder, bool gpu, int metrics_us) {
  std::unique_ptr<RunRecording> recording(new RunRecording(folder));
  // Of a run that was killed here before: `strobe recover` can still make its trace.
  std::error_code ignored;
  if (fs::exists(recording->spool(), ignored) && !fs::is_empty(recording->spool(), ignored)) {
    fs::remove_all(folder / "spool.killed", ignored);
    fs::rename(recording->spool(), folder / "spool.killed", ignored);
  }
  fs::remove_all(recording->spool(), ignored);
  STROBE_TRY(record::start({.folder = recording->spool(), .process_name = "strobe run", .gpu = gpu}));
  recording->running_ = true;
  record::name_thread("main");
  for (const auto& [key, value] : collect::machine_facts()) record::fact(key, value);
  record::fact("cores", fmt::format("{:g}", collect::allowed_cores()));
  if (gpu) recording->gpu_samples_.emplace(strobe::gpu::SamplerOptions{.folder = recording->spool()}, metrics_us);
  return recording;
}

RunRecording::~RunRecording() {
  gpu_samples_.reset();
  if (running_) (void)record::stop();
  std::error_code ignored;
  if (!keep_spool_) fs::remove_all(spool(), ignored);
}

Result<trace::Timeline> RunRecording::stop() {
  running_ = false;
  keep_spool_ = true;
  gpu_samples_.reset();
  STROBE_ASSIGN(const record::Totals totals, record::stop());
  std::error_code unknown;
  const fs::space_info space = fs::space(folder_, unknown);
  constexpr uintmax_t kFull = 64 << 10;
  if (totals.dropped > 0 && !unknown && space.available < kFull)
    return io_error(
        fmt::format("{}: no space is left: {} records of the run were lost", folder_.string(), totals.dropped));
  return gpu::import_folder(spool());
}

Result<fs::path> RunRecording::store(const trace::Timeline& timeline) {
  const fs::path path = folder_ / "trace.sqlite";
  if (auto stored = trace::write_store(timeline, path); !stored)
    return std::move(stored).error().at(
        fmt::format("the recording is kept, `strobe recover {}` reads it", spool().string()));
  keep_spool_ = false;
  return path;
}

void note_gpu_off(const trace::Timeline& timeline, nlohmann::ordered_json& summary) {
  const auto found = timeline.facts.find("gpu.collection");
  if (found != timeline.facts.end() && found->second != "on")
    summary["notes"].push_back("GPU collection is " + found->second);
  for (const std::string& note : metrics_notes(timeline)) summary["notes"].push_back(note);
}

Result<void> write_step_metrics(const trace::Timeline& timeline, const std::string& model, const fs::path& folder,
                                nlohmann::ordered_json& summary) {
  const Table steps = analyze::steps(timeline);
  const fs::path path =
      folder / fmt::format("M_{}_P_{}_metrics.csv", fs::path(model).stem().string(), static_cast<int>(::getpid()));
  STROBE_TRY(write_file(path, report::format_table(steps, report::Format::kCsv)));
  summary["steps"] = steps.row_count();
  summary["metrics_csv"] = path.string();
  return {};
}

void print_start(const std::vector<std::pair<std::string, std::string>>& run) {
  const auto facts = collect::machine_facts();
  const auto fact = [&](const char* key) {
    const auto found = facts.find(key);
    return found == facts.end() ? std::string("?") : found->second;
  };
  fmt::print("machine: {}, {} of {} cores, {} MiB of memory free, {}, Linux {}\n", fact("cpu.model"),
             fact("cpu.cores_allowed"), fact("cpu.cores_online"), fact("memory.available_mib"), fact("os.name"),
             fact("os.kernel"));
  for (const auto& [key, value] : run) fmt::print("{}: {}\n", key, value);
  fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace strobe::app
