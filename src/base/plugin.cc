#include "base/plugin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <string_view>

namespace strobe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".so";

Result<fs::path> locate(const fs::path& plugin) {
  std::error_code ignored;
  if (plugin.has_parent_path()) {
    if (fs::exists(plugin, ignored)) return plugin;
    return not_found(plugin.string() + ": no such plugin");
  }
  std::string looked;
  for (const auto& folder : plugin_folders()) {
    if (fs::exists(folder / plugin, ignored)) return folder / plugin;
    looked += (looked.empty() ? "" : ", ") + folder.string();
  }
  return not_found(plugin.string() + ": no such plugin in " + looked);
}

}  // namespace

std::vector<fs::path> plugin_folders() {
  std::vector<fs::path> folders;
  if (const char* listed = std::getenv("STROBE_PLUGIN_DIR")) {
    std::istringstream words(listed);
    for (std::string word; std::getline(words, word, ':');) {
      if (!word.empty()) folders.emplace_back(word);
    }
  }
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (!failed) folders.push_back((program.parent_path() / "../lib/strobe").lexically_normal());
  return folders;
}

std::vector<fs::path> find_plugins(const std::string& prefix) {
  std::map<std::string, fs::path> found;
  for (const auto& folder : plugin_folders()) {
    std::error_code failed;
    for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
      const std::string name = it->path().filename().string();
      if (name.starts_with(prefix) && name.ends_with(kSuffix) && name.size() > prefix.size() + kSuffix.size()) {
        found.emplace(name, it->path());
      }
    }
  }
  std::vector<fs::path> paths;
  for (auto& [name, path] : found) paths.push_back(std::move(path));
  return paths;
}

Result<void*> load_plugin(const fs::path& plugin, const std::string& symbol) {
  STROBE_ASSIGN(const fs::path path, locate(plugin));
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return engine_error(std::string(::dlerror()));
  void* address = ::dlsym(handle, symbol.c_str());
  if (address == nullptr) return engine_error(path.string() + ": not a plugin of this program: no symbol " + symbol);
  return address;
}

}  // namespace strobe
