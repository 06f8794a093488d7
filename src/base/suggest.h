// What to say when a word that a user gave is none of those that are known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strobe {

// "did you mean NAME?" where one of the names is near in spelling, else "there are: NAME, NAME, ..." with
// the first dozen, long ones shortened.
std::string suggest(std::string_view word, const std::vector<std::string>& names);

// "a, b, c"
std::string joined(const std::vector<std::string>& words);

}  // namespace strobe
