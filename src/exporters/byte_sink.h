// Bytes into a file, in large blocks, plain or gzip.
#pragma once

#include <zlib.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "strobe/base/result.h"

namespace strobe::exporters {

class ByteSink {
 public:
  ByteSink() = default;
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;
  ~ByteSink();

  // Errors: kIo.
  Result<void> open(const std::filesystem::path& path, bool gzip);
  // What is appended here goes out when flush_if_full is called and enough is there.
  std::string& buffer() { return buffer_; }
  void append(std::string_view bytes) { buffer_.append(bytes); }
  void flush_if_full() {
    if (buffer_.size() >= kBlock) flush();
  }
  // False once a write has failed: what follows is lost, close() says why.
  bool good() const { return failure_.empty(); }
  // To be called once, last. Errors: kIo with the reason of the first write that failed.
  Result<void> close();

 private:
  static constexpr size_t kBlock = size_t{1} << 20;
  void flush();

  std::string buffer_;
  std::string failure_;
  int fd_ = -1;
  gzFile zipped_ = nullptr;
};

// A file that appears under its name when `write` is through and everything is on its way to the disk. Errors: kIo.
Result<void> write_whole_file(const std::filesystem::path& path, bool gzip,
                              const std::function<void(ByteSink& sink)>& write);

}  // namespace strobe::exporters
