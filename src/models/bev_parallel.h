// A loop cut into as many ranges as there are threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace strobe::models {

// Calls work(begin, end) on ranges of [0, count); the caller's thread takes the first one. Starting a thread costs some
// ten microseconds: `threads` beyond what `least` items each can feed are not started.
template <typename Work>
void in_parallel(int threads, int64_t count, int64_t least, Work work) {
  const int64_t parts = std::clamp<int64_t>(count / std::max<int64_t>(least, 1), 1, std::max(threads, 1));
  std::vector<std::jthread> others;
  for (int64_t part = 1; part < parts; ++part) {
    others.emplace_back([=] { work(count * part / parts, count * (part + 1) / parts); });
  }
  work(int64_t{0}, count / parts);
}

}  // namespace strobe::models
