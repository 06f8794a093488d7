#include "record/nvtx_ranges.h"

#ifdef STROBE_HAVE_NVTX

#include <nvtx3/nvToolsExt.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace strobe::record {
namespace {

struct Names {
  std::mutex mutex;
  std::map<std::string, NvtxDomain, std::less<>> domains;
  std::map<std::pair<NvtxDomain, std::string>, uint32_t> categories;
};
// Never destroyed: threads may end ranges until the process is gone.
Names& names() {
  static auto* made = new Names;
  return *made;
}

uint32_t category_id(NvtxDomain domain, std::string_view name) {
  Names& all = names();
  const std::lock_guard lock(all.mutex);
  const auto [entry, is_new] = all.categories.try_emplace({domain, std::string(name)}, 0);
  if (is_new) {
    entry->second = static_cast<uint32_t>(all.categories.size());
    nvtxDomainNameCategoryA(static_cast<nvtxDomainHandle_t>(domain), entry->second, entry->first.second.c_str());
  }
  return entry->second;
}

// NVTX looks for a tool at its first call, and other threads' calls read what it finds without synchronisation.
void initialize() {
  static const bool done = (nvtxInitialize(nullptr), true);
  (void)done;
}

}  // namespace

NvtxDomain nvtx_domain(std::string_view name) {
  initialize();
  if (name.empty()) return nullptr;
  Names& all = names();
  const std::lock_guard lock(all.mutex);
  const auto found = all.domains.find(name);
  if (found != all.domains.end()) return found->second;
  std::string text(name);
  NvtxDomain made = nvtxDomainCreateA(text.c_str());
  return all.domains.emplace(std::move(text), made).first->second;
}

void nvtx_push(NvtxDomain domain, const char* message, uint32_t argb, std::string_view category) {
  initialize();
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.colorType = NVTX_COLOR_ARGB;
  attributes.color = argb;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = message;
  if (!category.empty()) attributes.category = category_id(domain, category);
  nvtxDomainRangePushEx(static_cast<nvtxDomainHandle_t>(domain), &attributes);
}

void nvtx_pop(NvtxDomain domain) {
  initialize();
  nvtxDomainRangePop(static_cast<nvtxDomainHandle_t>(domain));
}

}  // namespace strobe::record

#else

namespace strobe::record {
NvtxDomain nvtx_domain(std::string_view) {
  return nullptr;
}
void nvtx_push(NvtxDomain, const char*, uint32_t, std::string_view) {}
void nvtx_pop(NvtxDomain) {}
}  // namespace strobe::record

#endif
