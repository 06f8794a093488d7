#include "base/library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>

namespace strobe {
namespace {

constexpr int kMode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;

std::string path_of(void* handle, const std::string& name) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr && *map->l_name != 0)
    return map->l_name;
  return name;
}

std::string last_error() {
  const char* text = ::dlerror();
  return text == nullptr ? "cannot be opened" : text;
}

}  // namespace

Result<Library> Library::open(const LibrarySearch& search) {
  if (const char* chosen = std::getenv(search.variable); chosen != nullptr && *chosen != 0) {
    if (void* handle = ::dlopen(chosen, kMode)) return Library(handle, path_of(handle, chosen));
    return not_found(std::string(search.variable) + ": " + last_error());
  }
  for (const std::string& name : search.names)
    if (void* handle = ::dlopen(name.c_str(), kMode | RTLD_NOLOAD)) return Library(handle, path_of(handle, name));
  std::string why;
  for (const std::string& name : search.names) {
    if (void* handle = ::dlopen(name.c_str(), kMode)) return Library(handle, path_of(handle, name));
    const std::string reason = last_error();
    // A file that is there and cannot be opened tells more than one that is not there.
    std::error_code ignored;
    if (why.empty() && name.find('/') != std::string::npos && std::filesystem::exists(name, ignored)) why = reason;
  }
  if (!why.empty()) return not_found(why);
  return not_found("no " + search.names.front());
}

void* Library::symbol(const char* name) const {
  return ::dlsym(handle_, name);
}

}  // namespace strobe
