#include "media/ffmpeg/picture_pool.h"

extern "C" {
#include <libavutil/buffer.h>
}

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace strobe::media {
namespace {

struct BufferDeleter {
  void operator()(AVBufferRef* buffer) const { av_buffer_unref(&buffer); }
};
using Buffer = std::unique_ptr<AVBufferRef, BufferDeleter>;

// Whether every page of the buffer has memory behind it.
bool is_resident(const AVBufferRef& buffer) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(buffer.data) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(buffer.data) + buffer.size + page - 1) / page * page;
  std::vector<unsigned char> pages((end - start) / page);
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(start), end - start, pages.data()), 0);
  for (const unsigned char state : pages) {
    if ((state & 1) == 0) return false;
  }
  return true;
}

TEST(PicturePool, ReadyBuffersHaveTheirMemoryAndOthersGetIt) {
  for (const size_t bytes : {size_t{1000}, size_t{200000}, size_t{1234567}}) {
    SCOPED_TRACE(bytes);
    const auto pool = PicturePool::create(bytes, 6);
    std::vector<Buffer> held;
    std::set<const uint8_t*> addresses;
    for (size_t i = 0; i < 40; ++i) {
      held.emplace_back(pool->take());
      ASSERT_NE(held.back(), nullptr);
      EXPECT_GE(held.back()->size, bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(held.back()->data) % 64, 0U);
      if (i < 6) {
        EXPECT_TRUE(is_resident(*held.back())) << i;
      }
      std::memset(held.back()->data, static_cast<int>(i), held.back()->size);
      addresses.insert(held.back()->data);
    }
    EXPECT_EQ(addresses.size(), 40U);
    for (size_t i = 0; i < held.size(); ++i) {  // none overlaps another
      EXPECT_EQ(held[i]->data[0], i);
      EXPECT_EQ(held[i]->data[held[i]->size - 1], i);
    }
    // What was given back comes again.
    held.clear();
    for (size_t i = 0; i < 40; ++i) {
      held.emplace_back(pool->take());
      EXPECT_EQ(addresses.count(held.back()->data), 1U);
    }
  }
}

TEST(PicturePool, BuffersOutliveTheirPool) {
  auto pool = PicturePool::create(300000, 2);
  const std::weak_ptr<PicturePool> watched = pool;
  Buffer kept(pool->take());
  Buffer other(pool->take());
  pool.reset();
  other.reset();
  std::memset(kept->data, 7, kept->size);
  EXPECT_EQ(kept->data[kept->size - 1], 7);
  EXPECT_FALSE(watched.expired());
  kept.reset();
  EXPECT_TRUE(watched.expired());  // and with it the memory
}

TEST(PicturePool, IsFoundBySizeWhileItLives) {
  constexpr size_t kBytes = size_t{77} << 20;  // larger than any picture of the other tests
  EXPECT_EQ(PicturePool::find(kBytes), nullptr);
  auto pool = PicturePool::create(kBytes, 0);
  EXPECT_EQ(PicturePool::find(kBytes), pool);
  EXPECT_EQ(PicturePool::find(kBytes * 9 / 10), pool);
  EXPECT_EQ(PicturePool::find(kBytes / 2), nullptr);
  EXPECT_EQ(PicturePool::find(kBytes + 64), nullptr);
  pool.reset();
  EXPECT_EQ(PicturePool::find(kBytes), nullptr);
}

TEST(PicturePool, ImpossibleSizesGiveNothing) {
  const auto pool = PicturePool::create(SIZE_MAX / 4, 3);
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(pool->take(), nullptr);
}

// Each buffer belongs to one thread at a time (the sanitizers watch, too).
TEST(PicturePool, ManyThreadsShareIt) {
  const auto pool = PicturePool::create(4096, 4);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int id = 1; id <= 4; ++id) {
    threads.emplace_back([&, id] {
      for (int round = 0; round < 2000; ++round) {
        const Buffer first(pool->take());
        const Buffer second(pool->take());
        std::memset(first->data, id, first->size);
        std::memset(second->data, id, second->size);
        if (first->data[100] != id || second->data[4000] != id || first->data == second->data) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace strobe::media
