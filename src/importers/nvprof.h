// Text logs of nvprof: summaries, traces, metrics, dependency analysis.
#pragma once

#include "importers/byte_stream.h"
#include "importers/importer.h"

namespace strobe::importers {

// Whether a log's first bytes look like nvprof's, wherever in the program's own output they stand.
bool looks_like_nvprof(std::string_view text);

// Reads the stream from begin(), line by line. Tables come into Timeline::tables, the rows of --print-gpu-trace and
// --print-api-trace become ranges (docs/importing.md). Errors: kBadData when no part of a profile is in it.
Result<trace::Timeline> import_nvprof(ByteStream& stream, const ImportOptions& options);

}  // namespace strobe::importers
