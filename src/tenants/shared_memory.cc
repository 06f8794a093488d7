#include "tenants/shared_memory.h"

#include <sys/mman.h>

namespace strobe::tenants {

Result<SharedPages> SharedPages::map(size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return io_error_errno("memory that tenants share");
  return SharedPages(at, bytes);
}

SharedPages::~SharedPages() {
  if (at_ != nullptr) ::munmap(at_, bytes_);
}

}  // namespace strobe::tenants
