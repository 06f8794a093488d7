// Vectors of which a trace of millions of ranges makes hundreds of megabytes: in large pages where the system has them,
// since there the first touch of each small page costs more than what is then done with it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace strobe::analyze {

template <typename T>
struct LargeAllocator {
  using value_type = T;

  LargeAllocator() = default;
  template <typename Other>
  explicit(false) LargeAllocator(const LargeAllocator<Other>& /*other*/) {}

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes < kWorthLargePages) return std::allocator<T>().allocate(count);
    void* memory = std::aligned_alloc(kLargePage, (bytes + kLargePage - 1) / kLargePage * kLargePage);
    if (!memory) throw std::bad_alloc();
#ifdef __linux__
    madvise(memory, bytes, MADV_HUGEPAGE);  // where it is refused, small pages serve
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t count) {
    if (count * sizeof(T) < kWorthLargePages)
      std::allocator<T>().deallocate(memory, count);
    else
      std::free(memory);
  }
  // resize() leaves rows as the memory was, for who writes all of them; resize(n, value) and assign() set them.
  template <typename U>
  void construct(U* /*at*/) {
    static_assert(std::is_trivially_copyable_v<U> && std::is_trivially_destructible_v<U>);
  }
  template <typename U, typename... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
  }
  template <typename Other>
  bool operator==(const LargeAllocator<Other>& /*other*/) const {
    return true;
  }

 private:
  static constexpr size_t kLargePage = size_t{1} << 21;
  static constexpr size_t kWorthLargePages = 4 * kLargePage;
};

template <typename T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace strobe::analyze
