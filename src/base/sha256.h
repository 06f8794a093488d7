// SHA-256 (FIPS 180-4), for manifests that say which bytes were read and written, and for names of what was made of
// them.
#pragma once

#include <string>
#include <string_view>

namespace strobe {

// 64 lower-case hexadecimal digits.
std::string sha256(std::string_view bytes);

namespace detail {
// The same without the processor's instructions for it (and to test against).
std::string sha256_by_words(std::string_view bytes);
}  // namespace detail

}  // namespace strobe
