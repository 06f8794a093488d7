// What a grid of runs shows: each cell, each level of each factor, and the differences that factors make.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/predictability.h"
#include "base/table.h"
#include "strobe/base/result.h"

namespace strobe::analyze {

// One row a run and tenant: run, tenant, then the factors of the runs, frames, mean_ms, std_ms, min_ms, p50_ms, p99_ms
// (from 100 frames on), max_ms, range_ms (max - min). Nothing is left out as an outlier: the tail is what is studied.
Table grid_cells(const std::vector<RunLatencies>& runs);

// One row a factor, level and tenant, runs of a level pooled: factor, level, tenant, runs, frames, mean_ms, std_ms,
// min_ms, p25_ms, p50_ms, p75_ms, p99_ms, max_ms, range_ms, width_ms (p99 - p0), then against the factor's first level:
// mean_change and width_change, per cent. Factors with one level are left out. Levels stand in the order of the runs.
Table grid_levels(const std::vector<RunLatencies>& runs);

struct EffectOptions {
  int resamples = 1000;
  uint64_t seed = 1;
};

// Main effects of a crossed design. One row a tenant, factor, level after the factor's first, and statistic (p50, mean;
// p99 where all runs have 100 frames of the tenant): tenant, factor, whose (own: a setting of this tenant; co-runner:
// of another one; both), level, reference, statistic, pairs, difference_ms, low_ms, high_ms, change (per cent of the
// reference). The difference is the mean over all pairs of cells that are alike in every other factor; cells without
// partner are left out. The 95 % interval comes from resampling the frames of every run in blocks (bootstrap.h) and,
// where a cell was repeated, its repetitions too: without repetitions it says nothing of how runs differ by themselves.
// Errors: kUsage (no factor has several levels, no pair).
Result<Table> main_effects(const std::vector<RunLatencies>& runs, const EffectOptions& options);

// How much more two changes make together than the sum of each: BB - BA - AB + AA, mean over the quadruples alike in
// every other factor. One row a tenant, pair of factors, level of each and statistic: tenant, factor_a, level_a,
// factor_b, level_b, statistic, quadruples, difference_ms, low_ms, high_ms. Empty with fewer than two factors.
Table interactions(const std::vector<RunLatencies>& runs, const EffectOptions& options);

}  // namespace strobe::analyze
