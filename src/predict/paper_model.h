// The baseline: perf4sight's features and 300 extremely randomised trees (Rajagopal and Bouganis 2021). Intervals and
// the answer whether a batch fits are not the paper's: they come from the same features and trees.
#pragma once

#include <memory>

#include "predict/model.h"

namespace strobe::predict {

std::unique_ptr<Predictor> make_paper_model(const PredictorOptions& options);

}  // namespace strobe::predict
