#pragma once

#include <memory>

#include "strobe/trace/timeline.h"

namespace strobe::python {

struct TraceHolder {
  std::shared_ptr<const trace::Timeline> timeline;
};

}  // namespace strobe::python
