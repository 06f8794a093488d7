// The pictures of a folder.
#pragma once

#include <string>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::media {

// Paths of the pictures in folder, in natural order; hidden ones left out. Errors: kIo, kNotFound (there are none).
Result<std::vector<std::string>> list_pictures(const std::string& folder);

}  // namespace strobe::media
