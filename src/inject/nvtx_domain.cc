#include "inject/nvtx_domain.h"

#include "inject/start.h"

namespace strobe::inject::nvtx {
namespace {

uint32_t make(const Domain& domain, const std::string& name) {
  if (name.empty() && domain.name.empty()) return record::Category().id();
  return record::Category(name, domain.name).id();
}

}  // namespace

Domain& domain_of(const void* handle) {
  static auto* normal = new Domain;
  return handle == nullptr ? *normal : *static_cast<Domain*>(const_cast<void*>(handle));
}

record::Category category_of(Domain& domain, uint32_t number) {
  if (number < domain.few.size()) {
    const uint32_t known = domain.few[number].load(std::memory_order_acquire);
    if (known != 0) return record::Category::with_id(known - 1);
  }
  const auto lock = lock_tables();
  const std::string unnamed = number == 0 ? std::string() : "category " + std::to_string(number);
  if (number >= domain.few.size()) {
    const auto found = domain.many.find(number);
    if (found != domain.many.end()) return record::Category::with_id(found->second);
    return record::Category::with_id(domain.many[number] = make(domain, unnamed));
  }
  uint32_t known = domain.few[number].load();
  if (known == 0) domain.few[number].store(known = make(domain, unnamed) + 1, std::memory_order_release);
  return record::Category::with_id(known - 1);
}

void name_category(Domain& domain, uint32_t number, const std::string& name) {
  const auto lock = lock_tables();
  const uint32_t id = make(domain, name);
  if (number < domain.few.size()) {
    domain.few[number].store(id + 1, std::memory_order_release);
  } else {
    domain.many[number] = id;
  }
}

}  // namespace strobe::inject::nvtx
