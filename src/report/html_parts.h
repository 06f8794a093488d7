// What pages are put together from.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "strobe/base/result.h"

namespace strobe::report {

std::string escape_html(std::string_view text);

// As text that stands between <script> and </script>: no "<" may begin a tag or a comment there.
std::string data_for_script(const nlohmann::ordered_json& data);

// plotly.min.js, likewise. given: its path; empty: searched where the set-up puts it. Errors: kNotFound (says how to
// get it), kBadData (another file).
Result<std::string> plotly_for_script(const std::string& given);

}  // namespace strobe::report
