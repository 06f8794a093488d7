// The order in which people expect numbered names: picture2 before picture10.
#pragma once

#include <string_view>

namespace strobe::media {

// A strict order: runs of digits compare by value, everything else by byte; equal values by fewer leading zeros.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace strobe::media
