// What `strobe run` leaves behind besides the trace, and the summary's figures.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/table.h"
#include "pipeline/video_run.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::app {

// detections.json: [{"frame", "time_s", "boxes": [{"label", "score", "x", "y", "w", "h"}]}], pixels of the source
// frame; of a classifier also "classes": [{"label", "score"}], the best first.
Result<void> write_detections(const std::vector<pipeline::FrameDetections>& frames,
                              const std::vector<std::string>& labels, const std::filesystem::path& path);

// One file an output, "output_<i>.f32": frames x elements, float32 of this machine's byte order.
Result<void> write_outputs(const std::vector<std::vector<std::vector<float>>>& outputs,
                           const std::filesystem::path& folder);

// The figures of a run out of its timeline, into its summary.
void add_measures(const trace::Timeline& timeline, nlohmann::ordered_json& summary);

// The summaries of several runs as tables: the comparison, then the stages of each.
Table comparison_table(const nlohmann::ordered_json& runs);
Table stages_table(const nlohmann::ordered_json& runs);

}  // namespace strobe::app
