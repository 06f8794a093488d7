#include "bench/read.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace strobe::bench {
namespace {

constexpr size_t kDeepest = 200;  // levels of ranges; a program's stack has fewer

// The n of "batch_<n>".
std::optional<int64_t> index_in_name(std::string_view name) {
  const size_t underscore = name.rfind('_');
  if (underscore == std::string_view::npos) return std::nullopt;
  int64_t index = 0;
  const std::string_view digits = name.substr(underscore + 1);
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (digits.empty() || failed != std::errc{} || end != digits.data() + digits.size() || index < 0 ||
      index > kMostItems)
    return std::nullopt;
  return index;
}

std::optional<double> time_of(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const auto ms = value.get<double>();
  return std::isfinite(ms) ? std::optional(ms) : std::nullopt;
}

// Means over processes are no integers in the file, even where they are whole.
std::optional<int64_t> count_of(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  if (!(number >= 0 && number <= static_cast<double>(kMostItems))) return std::nullopt;
  return static_cast<int64_t>(std::llround(number));
}

class Reader {
 public:
  explicit Reader(ReadBenchmark& out) : out_(out) {}

  Result<void> batches(const Json& marks) {
    if (!marks.is_object()) return bad_data("batches: expected an object");
    for (const auto& [path, mark] : marks.items()) {
      if (!mark.is_array() || mark.size() != 2 || !mark[0].is_number_integer() ||
          !(mark[1].is_number_integer() || mark[1].is_null()))
        return bad_data("batch " + path + ": expected [index, items]");
      BatchMark batch{.index = mark[0].get<int64_t>(), .items = {}};
      if (mark[1].is_number_integer()) batch.items = mark[1].get<int64_t>();
      const auto sound = [](int64_t count) { return count >= 0 && count <= kMostItems; };
      if (!sound(batch.index) || !sound(batch.items.value_or(0)))
        return bad_data("batch " + path + ": index and items must be 0 to " + std::to_string(kMostItems));
      marks_[path] = batch;
    }
    return {};
  }

  // Nested by names, as the finished file has it.
  Result<void> nested(const Json& level, const std::string& path, bool inside, size_t depth, bool infer) {
    if (depth > kDeepest) return bad_data("data: nested deeper than " + std::to_string(kDeepest) + " levels");
    infer = infer && level.contains("cpu_time_minus_warmup");
    for (const auto& [key, value] : level.items()) {
      if (!value.is_object()) continue;
      const std::string below = path.empty() ? key : path + "/" + key;
      if (infer && value.contains("total_items")) {
        const auto index = index_in_name(key);
        const auto items = count_of(value["total_items"]);
        if (index && items) marks_[below] = {*index, *items};
      }
      const auto mark = marks_.find(below);
      const bool is_batch = mark != marks_.end();
      STROBE_TRY(nested(value, below, inside || is_batch, depth + 1, infer_));
      if (!value.contains("cpu_time")) continue;
      const auto cpu_ms = time_of(value["cpu_time"]);
      const auto gpu_ms = value.contains("gpu_time") ? time_of(value["gpu_time"]) : std::optional(0.0);
      if (!cpu_ms || !gpu_ms) return bad_data(below + ": expected cpu_time and gpu_time in milliseconds");
      RangeTime range{.path = below, .cpu_ms = *cpu_ms, .gpu_ms = *gpu_ms, .inside = inside};
      if (is_batch) range.batch = mark->second;
      out_.ranges.push_back(std::move(range));
    }
    return {};
  }

  // By whole paths, as CvCudaPerf leaves it.
  Result<void> flat(const Json& data, const Json& inside) {
    std::set<std::string> inside_paths;
    if (inside.is_array())
      for (const auto& path : inside)
        if (path.is_string()) inside_paths.insert(path.get<std::string>());
    for (const auto& [path, value] : data.items()) {
      if (std::count(path.begin(), path.end(), '/') > static_cast<std::ptrdiff_t>(kDeepest))
        return bad_data("data: nested deeper than " + std::to_string(kDeepest) + " levels");
      const auto mark = marks_.find(path);
      RangeTime range{.path = path, .inside = mark == marks_.end() && inside_paths.count(path) > 0};
      if (mark != marks_.end()) range.batch = mark->second;
      out_.ranges.push_back(std::move(range));
    }
    return {};
  }

  void infer_batches() { infer_ = true; }
  bool infers() const { return infer_; }

 private:
  ReadBenchmark& out_;
  std::unordered_map<std::string, BatchMark> marks_;
  bool infer_ = false;  // batches are told by their names and places
};

Result<Json> parse_object(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return bad_data("is no JSON");
  if (!json.is_object()) return bad_data("expected a JSON object");
  return json;
}

}  // namespace

Result<ReadBenchmark> read_benchmark(std::string_view text) {
  STROBE_ASSIGN(const Json json, parse_object(text));
  if (!json.contains("data") || !json["data"].is_object()) return bad_data("expected an object 'data'");
  if (!json.contains("meta") || !json["meta"].is_object()) return bad_data("expected an object 'meta'");
  ReadBenchmark out;
  out.meta = json["meta"];
  if (const auto name = out.meta.find("obj_name"); name != out.meta.end() && name->is_string())
    out.obj_name = name->get<std::string>();
  Reader reader(out);
  if (json.contains("batch_info")) {
    out.placeholder = true;
    STROBE_TRY(reader.batches(json["batch_info"]));
    STROBE_TRY(reader.flat(json["data"], json.contains("inside_batch_info") ? json["inside_batch_info"] : Json()));
    return out;
  }
  const auto strobe = out.meta.find("strobe");
  if (strobe != out.meta.end() && strobe->is_object() && strobe->contains("batches")) {
    STROBE_TRY(reader.batches((*strobe)["batches"]));
  } else {
    reader.infer_batches();
  }
  STROBE_TRY(reader.nested(json["data"], "", false, 0, reader.infers()));
  return out;
}

Result<Json> read_mean(std::string_view text) {
  STROBE_ASSIGN(Json json, parse_object(text));
  for (const char* key : {"mean_all_batches", "mean_data"})
    if (!json.contains(key) || !json[key].is_object())
      return bad_data(std::string("expected an object '") + key + "', as a benchmark_mean.json has it");
  return json;
}

}  // namespace strobe::bench
