#include "run_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/gpu_use.h"
#include "analyze/pipeline.h"
#include "base/file.h"
#include "gpu_use_text.h"

namespace strobe::app {

using Json = nlohmann::ordered_json;

namespace {

// To so many steps in 1. Division by a whole number gives the double that prints shortest; times 0.01 would not.
double rounded(double value, double steps) {
  return std::round(value * steps) / steps;
}

std::string label_of(int class_id, const std::vector<std::string>& labels) {
  const auto id = static_cast<size_t>(class_id);
  return id < labels.size() ? labels[id] : fmt::format("class {}", class_id);
}

Json number_or_null(const Table& table, size_t row, std::string_view column) {
  const auto value = table.number(row, column);
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

// A number of a summary as a cell; missing where it is absent or null.
Cell cell(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  if (found->is_number_integer()) return found->get<int64_t>();
  if (found->is_number()) return found->get<double>();
  return found->get<std::string>();
}

}  // namespace

Result<void> write_detections(const std::vector<pipeline::FrameDetections>& frames,
                              const std::vector<std::string>& labels, const std::filesystem::path& path) {
  Json all = Json::array();
  for (const pipeline::FrameDetections& frame : frames) {
    Json boxes = Json::array();
    for (const models::Detection& box : frame.boxes) {
      boxes.push_back({{"label", label_of(box.class_id, labels)},
                       {"score", rounded(box.score, 1e4)},
                       {"x", rounded(box.x, 100)},
                       {"y", rounded(box.y, 100)},
                       {"w", rounded(box.width, 100)},
                       {"h", rounded(box.height, 100)}});
    }
    Json entry = {{"frame", frame.frame}, {"time_s", rounded(frame.time_s, 1e6)}, {"boxes", std::move(boxes)}};
    for (const pipeline::ClassScore& one : frame.classes)
      entry["classes"].push_back({{"label", label_of(one.class_id, labels)}, {"score", rounded(one.score, 1e4)}});
    all.push_back(std::move(entry));
  }
  return write_file(path, all.dump(1) + "\n");
}

Result<void> write_outputs(const std::vector<std::vector<std::vector<float>>>& outputs,
                           const std::filesystem::path& folder) {
  STROBE_TRY(make_writable_folder(folder));
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string bytes;
    for (const auto& frame : outputs[i])
      bytes.append(reinterpret_cast<const char*>(frame.data()), frame.size() * sizeof(float));
    STROBE_TRY(write_file(folder / fmt::format("output_{}.f32", i), bytes));
  }
  return {};
}

void add_measures(const trace::Timeline& timeline, Json& summary) {
  const Table whole = analyze::throughput(timeline);
  if (whole.row_count() > 0) {
    for (const char* key : {"inference_fps", "end_to_end_fps", "limit_fps", "limit_share", "cpu_ms_per_frame",
                            "cpu_alone_ms_per_frame", "cores"})
      summary[key] = number_or_null(whole, 0, key);
    const std::string slowest = whole.text(0, "slowest_stage");
    summary["slowest_stage"] = {{"name", slowest.empty() ? Json(nullptr) : Json(slowest)},
                                {"fps", number_or_null(whole, 0, "slowest_stage_fps")}};
  }
  const Table stages = analyze::stage_latency(timeline);
  summary["stages"] = Json::array();
  for (size_t row = 0; row < stages.row_count(); ++row) {
    Json figures;
    for (const char* key : {"p50_ms", "p90_ms", "p99_ms", "max_ms", "mean_ms"})
      figures[key] = number_or_null(stages, row, key);
    if (stages.text(row, "stage") == "total") {
      summary["latency_ms"] = {{"p50", figures["p50_ms"]},
                               {"p90", figures["p90_ms"]},
                               {"p99", figures["p99_ms"]},
                               {"max", figures["max_ms"]}};
      continue;
    }
    Json stage = {{"name", stages.text(row, "stage")}};
    stage.update(figures);
    summary["stages"].push_back(std::move(stage));
  }
  const Table gpus = analyze::gpu_use(timeline, analyze::measured_stretch(timeline));
  if (gpus.row_count() > 0) summary["gpus"] = gpu_use_json(gpus);
  for (const Table* table : {&whole, &stages, &gpus})
    for (const std::string& note : table->notes) {
      auto& notes = summary["notes"];
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
    }
}

Table comparison_table(const Json& runs) {
  Table table("Engines side by side", {{"engine", "", 0},
                                       {"frames", "", 0},
                                       {"dropped", "", 0},
                                       {"inference_fps", "the network alone", 2},
                                       {"end_to_end_fps", "the whole pipeline", 2},
                                       {"limit_fps", "what the machine can do at best", 2},
                                       {"of_limit", "end_to_end_fps / limit_fps", 3},
                                       {"slowest_stage", "", 0},
                                       {"p50_ms", "frame latency, queues included", 2},
                                       {"p90_ms", "", 2},
                                       {"p99_ms", "", 2},
                                       {"max_ms", "", 2},
                                       {"speed_up", "end-to-end FPS against the first engine", 2}});
  for (const Json& run : runs) {
    const Json latency = run.value("latency_ms", Json::object());
    const Json slowest = run.value("slowest_stage", Json::object());
    table.add_row({cell(run, "engine"), cell(run, "frames"), cell(run, "dropped"), cell(run, "inference_fps"),
                   cell(run, "end_to_end_fps"), cell(run, "limit_fps"), cell(run, "limit_share"), cell(slowest, "name"),
                   cell(latency, "p50"), cell(latency, "p90"), cell(latency, "p99"), cell(latency, "max"),
                   cell(run, "speed_up")});
  }
  return table;
}

Table stages_table(const Json& runs) {
  Table table("Latency of each stage", {{"engine", "", 0},
                                        {"stage", "", 0},
                                        {"mean_ms", "", 3},
                                        {"p50_ms", "", 3},
                                        {"p90_ms", "", 3},
                                        {"p99_ms", "", 3},
                                        {"max_ms", "", 3}});
  for (const Json& run : runs)
    for (const Json& stage : run.value("stages", Json::array()))
      table.add_row({cell(run, "engine"), cell(stage, "name"), cell(stage, "mean_ms"), cell(stage, "p50_ms"),
                     cell(stage, "p90_ms"), cell(stage, "p99_ms"), cell(stage, "max_ms")});
  return table;
}

}  // namespace strobe::app
