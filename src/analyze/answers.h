// Everything that the analyses have to say of a trace: which of them apply is decided here, once, for `strobe explain`
// and for reports.
#pragma once

#include <string>
#include <vector>

#include "analyze/idle.h"
#include "base/table.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

struct Answer {
  std::string key;  // "tenants", "blame", "deadlines", "budget", "tail", "bounds", "stages", "ranges", "device_time",
                    // "work", "kernels", "counters", "copies", "launches", "findings", "imported"
  Table table;
};

struct AnswerOptions {
  IdleRules rules = IdleRules::kStrobe;
  size_t top = 20;  // names a table; 0: all
};

// Tables that have rows, in the order in which they are read best. An imported log may bring several of one key.
std::vector<Answer> answers(const trace::Timeline& timeline, const AnswerOptions& options);

}  // namespace strobe::analyze
