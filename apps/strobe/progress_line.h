// One line on the terminal that says how far a long command is.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace strobe::app {

// Shown only where stderr is a terminal, at most ten times a second, and wiped at the end.
class ProgressLine {
 public:
  explicit ProgressLine(bool wanted);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  // text is asked for only when it is shown.
  void show(const std::function<std::string()>& text);
  double seconds() const;  // since the beginning

 private:
  bool on_, shown_ = false;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace strobe::app
