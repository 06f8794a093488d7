// Where variation comes from: shares of the variance of a measure among the factors of an experiment.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::analyze {

// The values of one cell, and its level of each factor.
struct FactorCell {
  std::map<std::string, std::string> factors;
  std::vector<double> values;
};

struct VarianceShares {
  std::vector<std::pair<std::string, double>> shares;  // by factor, the largest first; they sum to explained
  double explained = 0;                                // R^2 of all factors' main effects together
  double interactions = 0;                             // between cells, and no main effect
  double within = 0;                                   // inside cells: the rest
  size_t values = 0, cells = 0;
};

// Shapley decomposition of R^2 (Lindeman, Merenda & Gold 1980) of the main effects of categorical factors, by least
// squares on the values. A factor of one level only, or that a cell lacks, is left out. Errors: kUsage (fewer than two
// cells, no factor that varies, more than 12 factors, no variance).
Result<VarianceShares> variance_shares(const std::vector<FactorCell>& cells);

}  // namespace strobe::analyze
