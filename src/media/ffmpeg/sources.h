// The kinds of sources behind open_source(), each over VideoInput.
#pragma once

#include <memory>
#include <string>

#include "media/common/input_kind.h"
#include "media/source.h"

namespace strobe::media {

// A video file, or one that comes over http.
Result<std::unique_ptr<Source>> open_file_source(const std::string& input, const SourceOptions& options);
// One picture, or every picture of a folder.
Result<std::unique_ptr<Source>> open_picture_source(const std::string& input, InputKind kind,
                                                    const SourceOptions& options);
// Pictures made by rule (common/synthetic.h).
Result<std::unique_ptr<Source>> open_synthetic_source(const std::string& input, const SourceOptions& options);
// Pictures in memory.
Result<std::unique_ptr<PictureDecoder>> open_picture_decoder();
// A camera or a network stream, opened again when it breaks.
Result<std::unique_ptr<Source>> open_live_source(const std::string& input, InputKind kind,
                                                 const SourceOptions& options);

}  // namespace strobe::media
