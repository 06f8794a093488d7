#include "log.h"

#include <deque>
#include <mutex>
#include <thread>

#include "engines/request.h"

namespace strobe::engines::tensorrt_plugin {
namespace {

using Severity = nvinfer1::ILogger::Severity;

struct Message {
  uint64_t number;
  std::thread::id thread;
  bool error;
  std::string text;
};

class Log : public nvinfer1::ILogger {
 public:
  void log(Severity severity, const nvinfer1::AsciiChar* text) noexcept override {
    if (severity > Severity::kWARNING || text == nullptr) return;
    try {
      const std::lock_guard lock(mutex_);
      constexpr size_t kMost = 256;
      if (messages_.size() == kMost) messages_.pop_front();
      messages_.push_back({++last_, std::this_thread::get_id(), severity <= Severity::kERROR, one_line(text)});
    } catch (const std::exception&) {
      // A message that there is no memory for.
    }
  }
  uint64_t last() const {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  std::vector<std::string> since(uint64_t number, bool errors) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> own, all;
    for (const Message& one : messages_) {
      if (one.number <= number || one.error != errors) continue;
      if (one.thread == std::this_thread::get_id()) own.push_back(one.text);
      all.push_back(one.text);
    }
    return own.empty() ? all : own;
  }

 private:
  mutable std::mutex mutex_;
  std::deque<Message> messages_;
  uint64_t last_ = 0;
};

Log& the_log() {
  static auto* const one = new Log;  // TensorRT's own threads and exit handlers may speak last
  return *one;
}

}  // namespace

nvinfer1::ILogger& log() {
  return the_log();
}

Listening::Listening() : since_(the_log().last()) {}

std::string Listening::errors() const {
  std::string line;
  for (const std::string& text : the_log().since(since_, true)) line += (line.empty() ? "" : "; ") + text;
  return line.empty() ? "TensorRT did not say why" : one_line(line);
}

std::vector<std::string> Listening::warnings() const {
  return the_log().since(since_, false);
}

}  // namespace strobe::engines::tensorrt_plugin
