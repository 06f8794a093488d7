// JSON files of TensorRT's trtexec: --exportTimes, --exportProfile, --exportLayerInfo.
#pragma once

#include "importers/byte_stream.h"
#include "importers/importer.h"

namespace strobe::importers {

bool looks_like_trtexec(std::string_view text);

// Reads the stream from begin(). Errors: kBadData when it holds none of the three.
Result<trace::Timeline> import_trtexec(ByteStream& stream, const ImportOptions& options);

}  // namespace strobe::importers
