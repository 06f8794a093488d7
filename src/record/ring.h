// One thread's ring in its file: mapped, so that what was written to it outlives the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "record/encode.h"
#include "record/layout.h"
#include "strobe/base/result.h"

namespace strobe::record {

class Ring {
 public:
  // Makes the file at full size, on disk and in memory, so that writing to it can neither fail nor fault later.
  // capacity_words: a power of two. Errors: kIo.
  static Result<std::shared_ptr<Ring>> create(const std::filesystem::path& path, uint64_t capacity_words);
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring();

  // Gives the ring to a thread. Nobody else may use it at that time.
  void assign(uint32_t serial, int32_t tid);
  void remove_file() const;
  // In a forked child: the memory stays, but is no longer the parent's file.
  void detach_from_file() const;

  RingHeader& header() const { return *header_; }
  uint64_t* words() const { return words_; }
  uint64_t mask() const { return capacity_ - 1; }
  uint64_t capacity() const { return capacity_; }
  RingWords view() const { return {words_, capacity_ - 1}; }

  // Set by the thread as it ends; after that it writes no more.
  std::atomic<bool> ended{false};

  // The drain's own notes.
  bool announced = false;
  int64_t drained_ns = 0;

 private:
  Ring(std::filesystem::path path, RingHeader* header, uint64_t capacity);
  size_t bytes() const { return kHeaderBytes + capacity_ * 8; }

  std::filesystem::path path_;
  RingHeader* header_;
  uint64_t* words_;
  uint64_t capacity_;
};

}  // namespace strobe::record
