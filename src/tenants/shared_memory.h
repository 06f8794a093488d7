// Memory that forked processes share.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "strobe/base/result.h"

namespace strobe::tenants {

// Zeroed pages that this process and those forked from it later see alike, as long as any of them lives.
class SharedPages {
 public:
  // Errors: kIo.
  static Result<SharedPages> map(size_t bytes);
  SharedPages(SharedPages&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  SharedPages& operator=(SharedPages&&) = delete;
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  ~SharedPages();
  void* data() const { return at_; }

 private:
  SharedPages(void* at, size_t bytes) : at_(at), bytes_(bytes) {}
  void* at_;
  size_t bytes_;
};

}  // namespace strobe::tenants
