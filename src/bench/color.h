#pragma once

#include <cstdint>
#include <string_view>

namespace strobe::bench {

// ARGB of a colour's CSS name or of "#rrggbb"; blue for any other text.
uint32_t argb_of(std::string_view color);

}  // namespace strobe::bench
