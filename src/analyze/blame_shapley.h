// Counterfactual blame: what a tenant would gain without another, by replay of the subsets of tenants.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/tenant_replay.h"
#include "base/table.h"

namespace strobe::analyze {

enum class ShapleyOf : uint8_t { kMean, kP99 };

struct Shapley {
  // [i][j]: share of tenant j in the latency of tenant i, ns; [i][i]: 0. Sum over j = together[i] - alone[i].
  std::vector<std::vector<double>> values;
  std::vector<std::vector<double>> standard_errors;  // 0 where exact
  std::vector<double> alone, together;               // latency of tenant i by itself and with all others
  bool is_exact = true;
};

// Exact for at most 6 tenants (2^n replays), else by sampled orders.
Shapley shapley(const ReplayModel& model, ShapleyOf what, size_t samples = 200, uint64_t seed = 1);

// One row a pair: tenant, without, gain_ms (what the tenant's mean frame or p99 owes to the other), standard_error_ms.
Table shapley_table(const ReplayModel& model, const Shapley& shapley, ShapleyOf what);

}  // namespace strobe::analyze
