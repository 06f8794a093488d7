#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "analyze/critical_path.h"

namespace strobe::analyze {

// What is known of a name beyond its segments; a missing one is an empty cell.
struct NameFigures {
  std::map<std::string, int64_t> waiting_ns, slack_ns, drag_ns;
};

// The rows of a path, by time on it; names that only waited come last. Coverage: share of the path that is service or
// a wait with a recorded reason.
Table path_rows(const CriticalPath& path, const NameFigures& figures);

}  // namespace strobe::analyze
