// PyTorch profiler (Kineto) traces and any other Chrome / Perfetto JSON: {"traceEvents": [...], ...} or a bare array,
// also without its closing bracket.
#pragma once

#include "importers/byte_stream.h"
#include "importers/importer.h"

namespace strobe::importers {

// Reads the stream from begin(). Memory follows the timeline, not the text. Fact "import.format" says "kineto" where
// something is in it that only PyTorch's profiler writes, else "chrome"; with options.format "chrome", categories have
// no meaning of their own. Errors: kBadData when no event can be read and something is wrong with the file.
Result<trace::Timeline> import_kineto(ByteStream& stream, const ImportOptions& options);

}  // namespace strobe::importers
