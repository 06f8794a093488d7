#include "gpu/cupti.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace strobe::gpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

void add_in(const fs::path& folder, std::vector<std::string>& names) {
  for (const char* name : kNames) names.push_back((folder / name).string());
}

// A wheel's folders below a Python environment's site-packages.
void add_wheels(const fs::path& site_packages, std::vector<std::string>& names) {
  add_in(site_packages / "nvidia/cu13/lib", names);
  add_in(site_packages / "nvidia/cuda_cupti/lib", names);
}

// Folders of the libraries of CUDA and PyTorch that this process has: their CUPTI lies beside them.
int collect_folder(dl_phdr_info* info, size_t, void* into) {
  const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return 0;
  const std::string_view name = path.substr(slash + 1);
  if (name.starts_with("libcudart.so") || name.starts_with("libtorch_cuda.so") || name.starts_with("libtorch.so"))
    static_cast<std::vector<fs::path>*>(into)->emplace_back(path.substr(0, slash));
  return 0;
}

LibrarySearch cupti_search() {
  LibrarySearch search{"STROBE_CUPTI_LIBRARY", {}};
  std::vector<std::string>& names = search.names;
  for (const char* name : kNames) names.emplace_back(name);
  std::vector<fs::path> folders;
  ::dl_iterate_phdr(collect_folder, &folders);
  for (const fs::path& folder : folders) {
    add_in(folder, names);
    add_wheels(folder.parent_path().parent_path(), names);   // of site-packages/torch/lib
    add_in(folder.parent_path() / "cuda_cupti/lib", names);  // of nvidia/cuda_runtime/lib
    add_in(folder.parent_path().parent_path() / "cuda_cupti/lib", names);
  }
  std::vector<fs::path> roots;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* root = std::getenv(variable); root != nullptr && *root != 0) roots.emplace_back(root);
  for (const char* root : {"/usr/local/cuda", "/usr/local/cuda-13", "/usr/local/cuda-12"}) roots.emplace_back(root);
  for (const fs::path& root : roots) {
    add_in(root / "lib64", names);
    add_in(root / "extras/CUPTI/lib64", names);
  }
  if (const char* environment = std::getenv("VIRTUAL_ENV"); environment != nullptr && *environment != 0) {
    std::error_code failed;
    for (fs::directory_iterator it(fs::path(environment) / "lib", failed), end; !failed && it != end;
         it.increment(failed))
      add_wheels(it->path() / "site-packages", names);
  }
  return search;
}

}  // namespace

Result<Library> Cupti::open_library() {
  return Library::open(cupti_search());
}

Result<Cupti> Cupti::load() {
  STROBE_ASSIGN(const Library library, open_library());
  Cupti cupti;
  cupti.path = library.path();
  library.find(cupti.register_callbacks, "cuptiActivityRegisterCallbacks");
  library.find(cupti.enable, "cuptiActivityEnable");
  library.find(cupti.disable, "cuptiActivityDisable");
  library.find(cupti.flush_all, "cuptiActivityFlushAll");
  library.find(cupti.next_record, "cuptiActivityGetNextRecord");
  library.find(cupti.timestamp, "cuptiGetTimestamp");
  const std::pair<bool, const char*> needed[] = {
      {cupti.register_callbacks != nullptr, "cuptiActivityRegisterCallbacks"},
      {cupti.enable != nullptr, "cuptiActivityEnable"},
      {cupti.disable != nullptr, "cuptiActivityDisable"},
      {cupti.flush_all != nullptr, "cuptiActivityFlushAll"},
      {cupti.next_record != nullptr, "cuptiActivityGetNextRecord"},
      {cupti.timestamp != nullptr, "cuptiGetTimestamp"},
  };
  for (const auto& [there, name] : needed)
    if (!there) return unsupported(cupti.path + ": is no CUPTI that can be used, it lacks " + name);
  library.find(cupti.get_version, "cuptiGetVersion");
  library.find(cupti.subscribe_v2, "cuptiSubscribe_v2");
  library.find(cupti.subscribe, "cuptiSubscribe");
  library.find(cupti.unsubscribe, "cuptiUnsubscribe");
  library.find(cupti.enable_and_dump, "cuptiActivityEnableAndDump");
  library.find(cupti.set_attribute, "cuptiActivitySetAttribute");
  library.find(cupti.set_thread_id_type, "cuptiSetThreadIdType");
  library.find(cupti.dropped_records, "cuptiActivityGetNumDroppedRecords");
  library.find(cupti.flush_period, "cuptiActivityFlushPeriod");
  library.find(cupti.enable_runtime_api, "cuptiActivityEnableRuntimeApi");
  library.find(cupti.enable_driver_api, "cuptiActivityEnableDriverApi");
  library.find(cupti.enable_all_sync_records, "cuptiActivityEnableAllSyncRecords");
  library.find(cupti.enable_callback, "cuptiEnableCallback");
  library.find(cupti.graph_node_id, "cuptiGetGraphNodeId");
  library.find(cupti.callback_name, "cuptiGetCallbackName");
  uint32_t version = 0;
  if (cupti.get_version != nullptr && cupti.get_version(&version) == cupti::kSuccess) cupti.version = version;
  return cupti;
}

}  // namespace strobe::gpu
