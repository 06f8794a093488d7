// PicturePool: memory for pictures of one size, recycled, and touched before it is needed: the first write to a fresh
// page costs a fault, a copy of a picture hundreds of them, and that while the clock of a run is ticking.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

struct AVBufferRef;

namespace strobe::media {

// Thread-safe. Memory goes back to the system when neither the pool nor any of its buffers is held any longer.
class PicturePool : public std::enable_shared_from_this<PicturePool> {
 public:
  // bytes: of each buffer. ready: so many buffers are made and touched now; more are made when they are needed.
  // Without the memory for them there are fewer.
  static std::shared_ptr<PicturePool> create(size_t bytes, size_t ready);
  // A pool that someone holds and whose buffers have the size or a little more; null when there is none.
  static std::shared_ptr<PicturePool> find(size_t bytes);

  PicturePool(const PicturePool&) = delete;
  PicturePool& operator=(const PicturePool&) = delete;
  ~PicturePool();

  size_t bytes() const { return bytes_; }
  // A buffer with undefined contents, aligned for any SIMD code. Null when there is no memory.
  AVBufferRef* take();

 private:
  struct Slab {
    void* start = nullptr;
    size_t size = 0;
  };
  explicit PicturePool(size_t bytes);
  // Makes room for at least `buffers` more.
  bool grow(size_t buffers, bool touch);
  static void give_back(void* holder, unsigned char* data);

  const size_t bytes_;
  std::mutex mutex_;
  std::vector<Slab> slabs_;
  std::vector<unsigned char*> free_;
};

}  // namespace strobe::media
