// What an answer to a what-if looks like, whatever was replayed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analyze/what_if.h"

namespace strobe::analyze {

// Latency and end of each unit (frame, instance of a range), in the order of the source.
struct Series {
  const std::vector<double>& latency_ns;
  const std::vector<double>& finished_ns;
  double duration_ns = 0;
};

double median(const std::vector<double>& values);

// Fills in everything but path and sweep.
WhatIf compare(const Series& measured, const Series& replay, const Series& after, uint64_t seed);

// Time on the path by name.
Table path_table(const std::map<std::string, double>& before, const std::map<std::string, double>& after);

inline constexpr double kSweepFactors[] = {0.95, 0.8, 0.5};
struct SweepItem {
  std::string name;
  double time_share = 0;
  std::vector<double> p50_ns, throughput;  // by kSweepFactors
};
Table sweep_table(std::vector<SweepItem> items, double p50_ns, double throughput);

}  // namespace strobe::analyze
