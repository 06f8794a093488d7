#include "bench_words.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace strobe::app {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kShort{{{"-np", "--num_processes"},
                                                                               {"-ng", "--num_gpus"},
                                                                               {"-go", "--gpu_offset_id"},
                                                                               {"-ll", "--log_level"},
                                                                               {"-o", "--output_dir"},
                                                                               {"-w", "--warmup_batches"},
                                                                               {"-m", "--maximize_clocks"}}};
// "-oDIR" and "-o=DIR", as the original's parser takes them.
constexpr std::array<std::string_view, 2> kMayBeJoined{"-o", "-w"};
constexpr std::array<std::string_view, 5> kWithoutValue{"--maximize_clocks", "--record", "--no-record", "--help", "-h"};

}  // namespace

std::vector<std::string> bench_words(std::vector<std::string> words) {
  if (words.empty() || words[0] != "bench") return words;
  std::vector<std::string> out{words[0]};
  size_t i = 1;
  for (; i < words.size() && words[i].starts_with('-') && words[i] != "--"; ++i) {
    std::string word = words[i];
    const auto joined = std::ranges::find_if(
        kMayBeJoined, [&word](std::string_view name) { return word.size() > name.size() && word.starts_with(name); });
    if (joined != kMayBeJoined.end()) {
      const std::string value = word.substr(word[joined->size()] == '=' ? joined->size() + 1 : joined->size());
      words[i] = value;
      word = *joined;
      --i;  // the value is the next word
    }
    const auto known =
        std::find_if(kShort.begin(), kShort.end(), [&word](const auto& pair) { return pair.first == word; });
    out.push_back(known == kShort.end() ? word : std::string(known->second));
    const bool alone = out.back().find('=') != std::string::npos ||
                       std::find(kWithoutValue.begin(), kWithoutValue.end(), out.back()) != kWithoutValue.end();
    if (!alone && i + 1 < words.size()) out.push_back(words[++i]);
  }
  if (i == words.size()) return out;
  if (words[i] != "--") out.emplace_back("--");
  out.insert(out.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  return out;
}

}  // namespace strobe::app
