#include "cuda_graph.h"

#include <dlfcn.h>
#include <torch/version.h>

#include <filesystem>
#include <string>

#include "engines/request.h"

namespace strobe::engines::torch_plugin {
namespace {

constexpr const char* kLibrary = "libstrobe_torch_cuda_graph.so";
using Make = CudaGraph* (*)();

// Its function, a Make. It lies beside this plugin.
Result<void*> open_library() {
  Dl_info own{};
  if (::dladdr(reinterpret_cast<const void*>(&open_library), &own) == 0)
    return internal_error("torch: the plugin does not find itself");
  const auto path = std::filesystem::path(own.dli_fname).parent_path() / kLibrary;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return unsupported("engine torch:graph is not built: it needs a CUDA wheel of torch (this is " TORCH_VERSION
                       ") and CUDA's headers at build time; torch and torch:script run without");
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return unsupported("engine torch:graph cannot be loaded: " + one_line(::dlerror()));
  void* const make = ::dlsym(library, "strobe_make_cuda_graph");
  if (make == nullptr) return unsupported("engine torch:graph: " + path.string() + " is of another build");
  return make;
}

const Result<void*>& library() {
  static const Result<void*> opened = open_library();
  return opened;
}

}  // namespace

Result<void> cuda_graph_support() {
  if (!library()) return Error(library().error());
  return {};
}

Result<std::unique_ptr<CudaGraph>> make_cuda_graph() {
  STROBE_TRY(cuda_graph_support());
  return std::unique_ptr<CudaGraph>(reinterpret_cast<Make>(*library())());
}

}  // namespace strobe::engines::torch_plugin
