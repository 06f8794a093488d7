#include "media/ffmpeg/picture_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "media/ffmpeg/av.h"

namespace strobe::media {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kGrowth = size_t{4} << 20;  // bytes that a pool grows by, at most (or one buffer)

size_t round_up(size_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Every living pool. Never destroyed: pictures may outlast every other static object.
struct Registry {
  std::mutex mutex;
  std::vector<std::weak_ptr<PicturePool>> pools;
};
Registry& registry() {
  static auto* const kept = new Registry();
  return *kept;
}

// Fresh memory, in huge pages where it is large enough for them and the system grants them: one fault for 2 MiB.
unsigned char* map(size_t size) {
  const bool huge = size % kHugePage == 0;
  const size_t asked = huge ? size + kHugePage : size;
  void* const mapped = ::mmap(nullptr, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* start = static_cast<unsigned char*>(mapped);
  if (!huge) return start;
  const size_t before = round_up(reinterpret_cast<uintptr_t>(start), kHugePage) - reinterpret_cast<uintptr_t>(start);
  if (before > 0) ::munmap(start, before);
  if (before < kHugePage) ::munmap(start + before + size, kHugePage - before);
  ::madvise(start + before, size, MADV_HUGEPAGE);
  return start + before;
}

void touch_pages(unsigned char* start, size_t size, size_t page) {
#ifdef MADV_POPULATE_WRITE
  if (::madvise(start, size, MADV_POPULATE_WRITE) == 0) return;
#endif
  for (size_t at = 0; at < size; at += page) const_cast<volatile unsigned char*>(start)[at] = 0;
}

}  // namespace

PicturePool::PicturePool(size_t bytes) : bytes_(round_up(std::max<size_t>(bytes, 1), kAlignment)) {}

PicturePool::~PicturePool() {
  for (const Slab& slab : slabs_) ::munmap(slab.start, slab.size);
}

std::shared_ptr<PicturePool> PicturePool::create(size_t bytes, size_t ready) {
  std::shared_ptr<PicturePool> pool(new PicturePool(bytes));
  if (ready > 0) pool->grow(ready, true);
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.pools, [](const auto& other) { return other.expired(); });
  known.pools.push_back(pool);
  return pool;
}

std::shared_ptr<PicturePool> PicturePool::find(size_t bytes) {
  constexpr size_t kSlack = size_t{64} << 10;
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  for (auto it = known.pools.rbegin(); it != known.pools.rend(); ++it) {
    auto pool = it->lock();
    if (pool && pool->bytes_ >= bytes && pool->bytes_ <= bytes + bytes / 4 + kSlack) return pool;
  }
  return nullptr;
}

bool PicturePool::grow(size_t buffers, bool touch) {
  static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  if (buffers > (SIZE_MAX - 2 * kHugePage) / bytes_) return false;
  const size_t wanted = buffers * bytes_;
  const size_t size = round_up(wanted, wanted >= kHugePage ? kHugePage : page);
  unsigned char* const start = map(size);
  if (start == nullptr) return false;
  if (touch) touch_pages(start, size, page);
  slabs_.push_back({start, size});
  // The last one is the first to be taken: lower addresses first.
  for (size_t i = size / bytes_; i-- > 0;) free_.push_back(start + i * bytes_);
  return true;
}

AVBufferRef* PicturePool::take() {
  unsigned char* data = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (free_.empty() && !grow(std::clamp<size_t>(kGrowth / bytes_, 1, 8), false) && !grow(1, false)) return nullptr;
    data = free_.back();
    free_.pop_back();
  }
  auto* const holder = new std::shared_ptr<PicturePool>(shared_from_this());
  AVBufferRef* const buffer = av_buffer_create(data, bytes_, give_back, holder, 0);
  if (buffer == nullptr) give_back(holder, data);
  return buffer;
}

void PicturePool::give_back(void* holder, unsigned char* data) {
  const std::unique_ptr<std::shared_ptr<PicturePool>> held(static_cast<std::shared_ptr<PicturePool>*>(holder));
  PicturePool& pool = **held;
  const std::lock_guard lock(pool.mutex_);
  pool.free_.push_back(data);
}

}  // namespace strobe::media
