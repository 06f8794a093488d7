// The page's own files (src/report/assets), put into the library by embed_assets.cmake.
#pragma once

#include <string_view>

namespace strobe::report::assets {
extern const std::string_view kPage;    // report.html
extern const std::string_view kStyle;   // report.css
extern const std::string_view kScript;  // the .js files, joined in the order of CMakeLists.txt
}  // namespace strobe::report::assets
