// Perfetto's own trace format (protocol buffers, TrackEvent), for ui.perfetto.dev and trace_processor.
#pragma once

#include <filesystem>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::exporters {

// One pass over each kind of record. A name that ends in ".gz" is compressed. Errors: kIo.
Result<void> write_perfetto(const trace::Timeline& timeline, const std::filesystem::path& output);

}  // namespace strobe::exporters
