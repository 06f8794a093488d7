#include "streaming_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/csv_text.h"
#include "base/file.h"
#include "base/statistics.h"
#include "base/suggest.h"
#include "base/table.h"

namespace strobe::app {

namespace {

using Json = nlohmann::ordered_json;
using namespace strobe::sensors;

constexpr double kLongest_s = 3600;

Json metrics_json(const DetectionMetrics& metrics) {
  Json out = {{"mAP", metrics.mean_ap}, {"NDS", metrics.nds}, {"label_aps", Json::object()}};
  for (size_t cls = 0; cls < kDetectionClasses; ++cls)
    for (size_t d = 0; d < kDetectionDistances.size(); ++d)
      out["label_aps"][std::string(kDetectionClassTable[cls].name)][fmt::format("{:.1f}", kDetectionDistances[d])] =
          metrics.classes[cls].ap[d];
  return out;
}

std::vector<double> delays_ms(const DelaysFile& delays) {
  std::vector<double> out;
  for (const TimedResult& result : delays.results) out.push_back(1e3 * result.delay_s);
  std::ranges::sort(out);
  return out;
}

Json as_json(const DelaysFile& delays, const StreamingAccuracy& accuracy) {
  const std::vector<double> ms = delays_ms(delays);
  return {{"tenant", delays.tenant},
          {"results", accuracy.results},
          {"without_boxes", accuracy.without_boxes},
          {"beyond_annotations", accuracy.beyond},
          {"delays_swapped", delays.swapped},
          {"delay_ms", {{"p50", quantile_sorted(ms, 0.5)}, {"p99", quantile_sorted(ms, 0.99)}}},
          {"still", metrics_json(accuracy.still)},
          {"stream", metrics_json(accuracy.stream)}};
}

Table ap_rows(const StreamingAccuracy& accuracy) {
  Table table("Average precision", {{"class_name", "", 0}, {"dist_th", "", 1}, {"ap", "", 6}, {"when", "", 0}});
  for (const bool stream : {false, true})
    for (size_t cls = 0; cls < kDetectionClasses; ++cls)
      for (size_t d = 0; d < kDetectionDistances.size(); ++d)
        table.add_row({std::string(kDetectionClassTable[cls].name), kDetectionDistances[d],
                       (stream ? accuracy.stream : accuracy.still).classes[cls].ap[d],
                       std::string(stream ? "stream" : "still")});
  return table;
}

Table summary(const DelaysFile& delays, const StreamingAccuracy& accuracy) {
  Table table(fmt::format("Accuracy of {} with its delays", delays.tenant),
              {{"class", "", 0}, {"truths", "", 0}, {"AP_still", "", 4}, {"AP_stream", "", 4}, {"lost", "", 4}});
  const auto add = [&](std::string name, Cell truths, double still, double stream) {
    table.add_row({std::move(name), std::move(truths), still, stream, still - stream});
  };
  for (size_t cls = 0; cls < kDetectionClasses; ++cls) {
    const ClassMetrics& still = accuracy.still.classes[cls];
    add(std::string(kDetectionClassTable[cls].name), int64_t{still.truths}, still.mean_ap,
        accuracy.stream.classes[cls].mean_ap);
  }
  add("mAP", Cell(), accuracy.still.mean_ap, accuracy.stream.mean_ap);
  add("NDS", Cell(), accuracy.still.nds, accuracy.stream.nds);
  const std::vector<double> ms = delays_ms(delays);
  table.notes.push_back(
      fmt::format("still: against the annotations of the sensor's moment; stream: of the moment when the "
                  "result was ready, {:.1f} ms later in the median of {} results",
                  quantile_sorted(ms, 0.5), accuracy.results));
  if (accuracy.without_boxes > 0)
    table.notes.push_back(
        fmt::format("{} results are not in the file, and count as without boxes", accuracy.without_boxes));
  if (accuracy.beyond > 0)
    table.notes.push_back(
        fmt::format("{} results were ready after the last key frame of their scene, whose annotations are "
                    "taken as standing still",
                    accuracy.beyond));
  if (delays.swapped)
    table.notes.push_back(
        "most end-to-end delays are shorter than the inference's: the two columns were taken for swapped");
  return table;
}

}  // namespace

Result<DelaysFile> read_delays(const std::filesystem::path& path, const std::string& who) {
  const auto at_file = [&](Error error) { return std::move(error).at(path.string()); };
  STROBE_ASSIGN(std::string text, read_file(path));
  auto parsed = CsvText::parse(std::move(text));
  if (!parsed) return at_file(std::move(parsed).error());
  const CsvText& csv = *parsed;
  const auto token = csv.column("input_token"), e2e = csv.column("e2e_delay"), infer = csv.column("inference_delay"),
             type = csv.column("model_type"), model = csv.column("model_name");
  for (const auto* column : {&token, &e2e, &infer, &type, &model})
    if (!*column) return at_file(column->error());
  const size_t tenant = csv.find("tenant").value_or(*model);

  std::set<std::string> in_space, all;
  for (size_t row = 0; row < csv.row_count(); ++row) {
    all.emplace(csv.field(row, tenant));
    if (csv.field(row, *type) != "image") in_space.emplace(csv.field(row, tenant));
    auto whole = csv.number(row, *e2e), part = csv.number(row, *infer);
    for (const auto* value : {&whole, &part})
      if (!*value) return at_file(value->error());
    for (const size_t column : {*e2e, *infer})
      if (const double seconds = *csv.number(row, column); seconds < 0 || seconds > kLongest_s)
        return at_file(csv.wrong(row, column, fmt::format("seconds from 0 to {:g}", kLongest_s)));
  }
  DelaysFile out;
  out.tenant = who;
  if (who.empty()) {
    if (in_space.empty()) return at_file(not_found("no result in space: none of a LiDAR or fusion model"));
    if (in_space.size() != 1)
      return at_file(usage_error(fmt::format("results in space of {} tenants ({}): choose one with --tenant",
                                             in_space.size(), fmt::join(in_space, ", "))));
    out.tenant = *in_space.begin();
  }
  std::vector<size_t> rows;
  size_t shorter = 0;
  for (size_t row = 0; row < csv.row_count(); ++row) {
    if (csv.field(row, tenant) != out.tenant && csv.field(row, *model) != out.tenant) continue;
    rows.push_back(row);
    if (*csv.number(row, *e2e) < *csv.number(row, *infer)) ++shorter;
  }
  out.swapped = 2 * shorter > rows.size();
  for (const size_t row : rows)
    out.results.push_back({std::string(csv.field(row, *token)), *csv.number(row, out.swapped ? *infer : *e2e)});
  if (out.results.empty())
    return at_file(
        not_found(fmt::format("no result of \"{}\"; {}", out.tenant, suggest(out.tenant, {all.begin(), all.end()}))));
  return out;
}

std::vector<std::string> streaming_notes(const DelaysFile& delays, const StreamingAccuracy& accuracy) {
  return summary(delays, accuracy).notes;
}

std::string streaming_text(const DelaysFile& delays, const StreamingAccuracy& accuracy, report::Format format) {
  if (format == report::Format::kJson)
    return as_json(delays, accuracy).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (format == report::Format::kCsv) return report::format_table(ap_rows(accuracy), format);
  return report::format_table(summary(delays, accuracy), format);
}

}  // namespace strobe::app
