// A fitted model on an unseen network or another device, with a few new measurements: which to make, and how good it
// then is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "predict/measurements.h"
#include "predict/model.h"
#include "predict/strobe_model.h"
#include "strobe/base/result.h"

namespace strobe::predict {

// Which of the candidates to measure, in the order in which to measure them: each time the one that takes most from the
// summed variance of the predictions of all candidates, given those before it (A-optimal design, greedily; the values
// measured play no part). At most `count`; values of the candidates are not looked at.
std::vector<size_t> choose_measurements(const StrobeModel& model, std::span<const Sample> candidates, size_t count);

struct TransferPoint {
  int64_t measurements = 0;
  // Mean absolute percentage error on the samples that were not measured: of the choice above, and of choices at random
  // (mean over the repetitions).
  double active_mape_percent = 0;
  double random_mape_percent = 0;
};

struct TransferCurve {
  std::string net;
  std::vector<TransferPoint> points;
};

struct TransferOptions {
  std::vector<int64_t> counts = {0, 5, 10, 20};
  int repetitions = 10;  // of the choice at random
  PredictorOptions predictor;
};

// For each network of `test`: fitted on what `fit` has of other networks, adapted to `counts` measurements of this one,
// held against the rest. Errors: those of fitting; kBadData where a network has no more passed samples than the
// largest count; kUsage where a count is negative.
Result<std::vector<TransferCurve>> transfer_curves(const Dataset& fit, const Dataset& test,
                                                   const TransferOptions& options = {});

}  // namespace strobe::predict
