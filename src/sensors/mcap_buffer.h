// Bytes that grow without being set to zero first: chunks are megabytes, and each byte is written once anyway.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "sensors/mcap_records.h"

namespace strobe::sensors {

class McapBuffer {
 public:
  McapBuffer() = default;
  McapBuffer(McapBuffer&& other) noexcept { swap(other); }
  McapBuffer& operator=(McapBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  McapBuffer(const McapBuffer&) = delete;
  McapBuffer& operator=(const McapBuffer&) = delete;
  ~McapBuffer() { std::free(data_); }

  uint8_t* data() { return data_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  ByteView view() const { return {data_, size_}; }

  // Keeps what is there; throws std::bad_alloc.
  void reserve(size_t capacity) {
    if (capacity <= capacity_) return;
    void* grown = std::realloc(data_, capacity);
    if (grown == nullptr) throw std::bad_alloc();
    data_ = static_cast<uint8_t*>(grown);
    capacity_ = capacity;
  }
  // New bytes are not initialised.
  void resize(size_t size) {
    if (size > capacity_) reserve(size < capacity_ * 2 ? capacity_ * 2 : size);
    size_ = size;
  }
  void append(const void* bytes, size_t count) {
    const size_t before = size_;
    resize(before + count);
    if (count > 0) std::memcpy(data_ + before, bytes, count);
  }

 private:
  void swap(McapBuffer& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  uint8_t* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace strobe::sensors
