// How good a kind of model is: fitted on some measurements, held against others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "predict/measurements.h"
#include "predict/model.h"
#include "strobe/base/result.h"

namespace strobe::predict {

enum class Protocol : uint8_t {
  kSame,         // for each network: fitted on some of its levels, tested on its others
  kLeaveOneOut,  // for each network: fitted on all levels of the others
  kUnseen,       // fitted on one set, tested on the levels of another that are not in the first
};
std::string_view to_string(Protocol protocol);             // "same", "leave-one-out", "unseen"
Result<Protocol> parse_protocol(const std::string& name);  // kUsage naming the three

struct Scores {
  int64_t rows = 0;                // measurements that passed
  double mape_percent = 0;         // mean of |predicted - measured| / measured; NaN without rows, as the next two
  double median_ape_percent = 0;   // their median
  double coverage_90 = 0;          // share (0..1) that lies in its interval
  int64_t fit_rows = 0;            // measurements, passed or failed, for which the model was asked whether they fit
  double fit_no_fit_accuracy = 0;  // share (0..1) of them that it told rightly
};

// A measurement that passed, and what was said of it.
struct EvaluatedRow {
  std::string net;
  int64_t level = 0, batch = 0;
  double measured = 0, predicted = 0, low = 0, high = 0;
};

struct Evaluation {
  std::vector<EvaluatedRow> rows;
  Scores all;  // over all rows
  std::vector<std::pair<std::string, Scores>> by_network;
  double mean_network_mape_percent = 0;  // every network weighs the same
  std::vector<std::string> notes;        // what was not used
};

struct EvaluationOptions {
  Protocol protocol = Protocol::kSame;
  std::string model = "strobe";
  // Levels to fit on. kSame: {} is 0, 30, 50, 70 and 90; others: {} is all.
  std::vector<int64_t> fit_levels;
  PredictorOptions predictor;
};

// test: may be the same as fit (and is meant to be, but for kUnseen). A batch is said to fit where the model's chance
// is 0.5 or more, or where it has no opinion. Errors: those of fitting; kBadData where nothing is left to fit on or to
// test, or where the quantities differ.
Result<Evaluation> evaluate(const Dataset& fit, const Dataset& test, const EvaluationOptions& options);

}  // namespace strobe::predict
