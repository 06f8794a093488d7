// Measurements of networks (measurements.csv), and what of them can be learned from or checked: those whose layers are
// known.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "predict/layer_list.h"
#include "strobe/base/result.h"

namespace strobe::predict {

enum class Quantity : uint8_t { kLatency, kMemory };
std::string_view to_string(Quantity quantity);             // "latency", "memory"
Result<Quantity> parse_quantity(const std::string& name);  // kUsage naming the two
std::string_view unit_of(Quantity quantity);               // "ms", "MiB"

enum class Stage : uint8_t { kTraining, kInference };
std::string_view to_string(Stage stage);  // "training", "inference"

// What was run, and where its tensors lay.
struct Setting {
  Stage stage = Stage::kTraining;
  bool host = false;  // in the host's memory, which no caching allocator hands out
  bool operator==(const Setting&) const = default;
};

struct Measurement {
  std::string net;
  int64_t level = 0;
  int64_t batch = 0;  // items
  std::string quantity;
  std::optional<double> value;  // of a row that passed always, > 0
  std::string unit;
  bool passed = false;                               // false: the measurement ran out of memory or time
  std::string stage = {}, engine = {}, device = {};  // "training", "torch", "cpu"; empty where the file does not say
  std::string error = {};                            // of a row that failed, where the file says why
};

// The columns net, level, bs, quantity, value, unit and passed, in any order, and stage, engine, device and error where
// they are there; others are passed over. Repeated rows are kept. Errors: kBadData with line and column and what was
// expected.
Result<std::vector<Measurement>> parse_measurements(std::string text);
// Errors: those, after the path; kNotFound, kIo.
Result<std::vector<Measurement>> read_measurements(const std::filesystem::path& path);

// One measurement and the layers of what was measured.
struct Sample {
  std::shared_ptr<const LayerList> layers;  // never null
  int64_t batch = 0;
  double value = 0;  // in unit_of() the quantity; meaningless unless passed
  bool passed = false;
  Setting setting = {};  // the same for all that a model is fitted on; training and not the host where files do not say
};

// The measurements of one quantity, joined with layer lists by network and level.
struct Dataset {
  Quantity quantity = Quantity::kLatency;
  std::vector<Sample> samples;  // in the order of the file
  // What was measured and cannot be used, so that it is said and not lost.
  int64_t rows_without_layers = 0;
  std::vector<std::pair<std::string, int64_t>> levels_without_layers;  // network and level, sorted
  int64_t failed_otherwise = 0;  // rows that failed for another reason than memory, which say nothing of what fits

  std::vector<std::string> networks() const;  // each once, in the order of the samples
  std::string note() const;                   // a sentence about what is not used; empty where all is
};
// Errors: kBadData where a unit is not that of the quantity.
Result<Dataset> join(const std::vector<LayerList>& lists, const std::vector<Measurement>& measurements,
                     Quantity quantity);
// Which rows of a file are meant, where it holds several stages, engines or devices; empty: whichever the file has.
struct RowFilter {
  std::string stage, engine, device;
};

// A folder with layers.csv and measurements.csv. Errors: those of reading; kBadData where nothing is left; kUsage where
// rows of several stages, engines or devices are left, which no model may take for one.
Result<Dataset> read_dataset(const std::filesystem::path& folder, Quantity quantity, const RowFilter& filter = {});

}  // namespace strobe::predict
