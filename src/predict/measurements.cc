#include "predict/measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/csv_text.h"
#include "base/file.h"

namespace strobe::predict {
namespace {

constexpr int64_t kMaxBatch = int64_t{1} << 24;

struct Columns {
  size_t net, level, batch, quantity, value, unit, passed;
  std::optional<size_t> stage, engine, device, error;

  static Result<Columns> of(const CsvText& csv) {
    Columns columns{};
    STROBE_ASSIGN(columns.net, csv.column("net"));
    STROBE_ASSIGN(columns.level, csv.column("level"));
    STROBE_ASSIGN(columns.batch, csv.column("bs"));
    STROBE_ASSIGN(columns.quantity, csv.column("quantity"));
    STROBE_ASSIGN(columns.value, csv.column("value"));
    STROBE_ASSIGN(columns.unit, csv.column("unit"));
    STROBE_ASSIGN(columns.passed, csv.column("passed"));
    columns.stage = csv.find("stage");
    columns.engine = csv.find("engine");
    columns.device = csv.find("device");
    columns.error = csv.find("error");
    return columns;
  }
};

Result<Measurement> parse_row(const CsvText& csv, const Columns& columns, size_t row) {
  Measurement measured;
  measured.net = csv.field(row, columns.net);
  if (measured.net.empty()) return csv.wrong(row, columns.net, "the name of a network");
  STROBE_ASSIGN(measured.level, csv.integer(row, columns.level, 0, kMaxLevel));
  STROBE_ASSIGN(measured.batch, csv.integer(row, columns.batch, 1, kMaxBatch));
  measured.quantity = csv.field(row, columns.quantity);
  if (measured.quantity.empty()) return csv.wrong(row, columns.quantity, "the name of a quantity");
  measured.unit = csv.field(row, columns.unit);
  STROBE_ASSIGN(const int64_t passed, csv.integer(row, columns.passed, 0, 1));
  measured.passed = passed == 1;
  if (!csv.field(row, columns.value).empty()) {
    STROBE_ASSIGN(measured.value, csv.number(row, columns.value));
  }
  if (measured.passed && !(measured.value.value_or(0) > 0))
    return csv.wrong(row, columns.value, "a number above 0 where passed is 1");
  const auto text = [&](const std::optional<size_t>& column) {
    return column ? std::string(csv.field(row, *column)) : std::string();
  };
  measured.stage = text(columns.stage);
  measured.engine = text(columns.engine);
  measured.device = text(columns.device);
  measured.error = text(columns.error);
  return measured;
}

// Files that say why a row failed: only those that ran out of memory tell what fits.
bool failed_otherwise(const Measurement& measured) {
  constexpr std::string_view kMemory = "out of memory";
  return !measured.passed && !measured.error.empty() && measured.error.compare(0, kMemory.size(), kMemory) != 0;
}

// One stage and one engine are left. The rows of the quantity alone count.
Result<void> keep_one(std::vector<Measurement>& measurements, Quantity quantity, std::string Measurement::*what,
                      const char* name, const std::string& wanted) {
  std::erase_if(measurements, [&](const Measurement& one) {
    return one.quantity != to_string(quantity) || (!wanted.empty() && one.*what != wanted);
  });
  std::set<std::string> found;
  for (const Measurement& one : measurements) found.insert(one.*what);
  if (found.size() <= 1) return {};
  return usage_error(fmt::format("it holds {} of several {}s ({}); choose with --{}", to_string(quantity), name,
                                 fmt::join(found, ", "), name));
}

}  // namespace

std::string_view to_string(Stage stage) {
  return stage == Stage::kTraining ? "training" : "inference";
}

std::string_view to_string(Quantity quantity) {
  return quantity == Quantity::kLatency ? "latency" : "memory";
}

Result<Quantity> parse_quantity(const std::string& name) {
  if (name == "latency") return Quantity::kLatency;
  if (name == "memory") return Quantity::kMemory;
  return usage_error(fmt::format("quantity '{}', expected latency or memory", name));
}

std::string_view unit_of(Quantity quantity) {
  return quantity == Quantity::kLatency ? "ms" : "MiB";
}

Result<std::vector<Measurement>> parse_measurements(std::string text) {
  STROBE_ASSIGN(const CsvText csv, CsvText::parse(std::move(text)));
  STROBE_ASSIGN(const Columns columns, Columns::of(csv));
  std::vector<Measurement> all;
  all.reserve(csv.row_count());
  for (size_t row = 0; row < csv.row_count(); ++row) {
    STROBE_ASSIGN(Measurement measured, parse_row(csv, columns, row));
    all.push_back(std::move(measured));
  }
  return all;
}

Result<std::vector<Measurement>> read_measurements(const std::filesystem::path& path) {
  STROBE_ASSIGN(std::string text, read_file(path));
  auto all = parse_measurements(std::move(text));
  if (!all) return std::move(all).error().at(path.string());
  return all;
}

std::vector<std::string> Dataset::networks() const {
  std::vector<std::string> names;
  for (const Sample& sample : samples)
    if (std::find(names.begin(), names.end(), sample.layers->net) == names.end()) names.push_back(sample.layers->net);
  return names;
}

std::string Dataset::note() const {
  std::string others;
  if (failed_otherwise > 0)
    others = fmt::format("{} measurement{} that failed for another reason than memory {} not used", failed_otherwise,
                         failed_otherwise == 1 ? "" : "s", failed_otherwise == 1 ? "is" : "are");
  if (rows_without_layers == 0) return others;
  std::map<std::string, std::vector<int64_t>> by_network;
  for (const auto& [net, level] : levels_without_layers) by_network[net].push_back(level);
  std::string what;
  for (const auto& [net, levels] : by_network)
    what += fmt::format("{}{} level{} {}", what.empty() ? "" : "; ", net, levels.size() == 1 ? "" : "s",
                        fmt::join(levels, ","));
  return fmt::format("{} {} measurements are not used, their layers are not known: {}{}{}", rows_without_layers,
                     to_string(quantity), what, others.empty() ? "" : "; ", others);
}

Result<Dataset> join(const std::vector<LayerList>& lists, const std::vector<Measurement>& measurements,
                     Quantity quantity) {
  std::map<std::pair<std::string_view, int64_t>, std::shared_ptr<const LayerList>> by_level;
  for (const LayerList& list : lists)
    by_level.emplace(std::pair<std::string_view, int64_t>(list.net, list.level),
                     std::make_shared<const LayerList>(list));
  Dataset dataset;
  dataset.quantity = quantity;
  std::set<std::pair<std::string, int64_t>> missing;
  for (const Measurement& measured : measurements) {
    if (measured.quantity != to_string(quantity)) continue;
    if (measured.unit != unit_of(quantity))
      return bad_data(fmt::format("{} level {} batch {}: the {} is in '{}', expected {}", measured.net, measured.level,
                                  measured.batch, measured.quantity, measured.unit, unit_of(quantity)));
    const auto found = by_level.find({measured.net, measured.level});
    if (found == by_level.end()) {
      ++dataset.rows_without_layers;
      missing.emplace(measured.net, measured.level);
      continue;
    }
    if (strobe::predict::failed_otherwise(measured)) {
      ++dataset.failed_otherwise;
      continue;
    }
    dataset.samples.push_back({found->second,
                               measured.batch,
                               measured.value.value_or(0),
                               measured.passed,
                               {measured.stage == to_string(Stage::kInference) ? Stage::kInference : Stage::kTraining,
                                measured.device == "cpu"}});
  }
  dataset.levels_without_layers.assign(missing.begin(), missing.end());
  return dataset;
}

Result<Dataset> read_dataset(const std::filesystem::path& folder, Quantity quantity, const RowFilter& filter) {
  STROBE_ASSIGN(const std::vector<LayerList> lists, read_layer_lists(folder / "layers.csv"));
  const auto path = folder / "measurements.csv";
  STROBE_ASSIGN(std::vector<Measurement> measurements, read_measurements(path));
  auto kept = keep_one(measurements, quantity, &Measurement::stage, "stage", filter.stage);
  if (kept) kept = keep_one(measurements, quantity, &Measurement::engine, "engine", filter.engine);
  if (kept) kept = keep_one(measurements, quantity, &Measurement::device, "device", filter.device);
  if (!kept) return std::move(kept).error().at(path.string());
  auto dataset = join(lists, measurements, quantity);
  if (!dataset) return std::move(dataset).error().at(path.string());
  if (dataset->samples.empty()) {
    std::string wanted;
    for (const std::string& word : {filter.stage, filter.engine, filter.device})
      if (!word.empty()) wanted += " of " + word;
    return bad_data(
        fmt::format("{}: no {}{} of a network and level of layers.csv", path.string(), to_string(quantity), wanted));
  }
  return dataset;
}

}  // namespace strobe::predict
