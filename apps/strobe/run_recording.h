// The recording of a run: from its start to the trace in the output folder.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu_samplers.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::app {

// Records this process into folder/spool, and what is sampled of the GPUs meanwhile. One at a time.
class RunRecording {
 public:
  // Facts of the machine are recorded with it; gpu: and what the process does on NVIDIA devices, where there is a
  // driver; metrics_us: between two samples of their counters, 0 for none. Errors: those of record::start.
  static Result<std::unique_ptr<RunRecording>> start(const std::filesystem::path& folder, bool gpu, int metrics_us);
  RunRecording(const RunRecording&) = delete;
  RunRecording& operator=(const RunRecording&) = delete;
  ~RunRecording();  // not stopped: what was recorded is thrown away

  // Ends the recording. Errors: kIo; what is already safe stays in the spool.
  Result<trace::Timeline> stop();
  // Writes the timeline as folder/trace.sqlite and removes the spool; where that fails the spool is kept, and the error
  // says how to read it.
  Result<std::filesystem::path> store(const trace::Timeline& timeline);

 private:
  explicit RunRecording(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path spool() const { return folder_ / "spool"; }
  std::filesystem::path folder_;
  bool running_ = false, keep_spool_ = false;
  std::optional<GpuSamplers> gpu_samples_;
};

// Why the run's GPU work is not in its trace, or counters that were asked for are not, as notes of the summary; nothing
// where there is no driver or all is there.
void note_gpu_off(const trace::Timeline& timeline, nlohmann::ordered_json& summary);

// "M_<model>_P_<pid>_metrics.csv", the steps of the run (analyze/steps.h); adds its place to the summary as
// "metrics_csv". model: as the user named it; of a path its stem.
Result<void> write_step_metrics(const trace::Timeline& timeline, const std::string& model,
                                const std::filesystem::path& folder, nlohmann::ordered_json& summary);

// The machine and the run in a few lines for people, before it begins.
void print_start(const std::vector<std::pair<std::string, std::string>>& run);

}  // namespace strobe::app
