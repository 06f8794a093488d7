// The words of `strobe bench`, which takes CV-CUDA's: "-np" is an option of two letters, and what follows the program
// belongs to the program, with or without "--" before it.
#pragma once

#include <string>
#include <vector>

namespace strobe::app {

// The words after "strobe" as CLI11 understands them: long options, and "--" before the program. Other commands' words
// come back as they are.
std::vector<std::string> bench_words(std::vector<std::string> words);

}  // namespace strobe::app
