#include "library.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/library.h"
#include "log.h"

namespace strobe::engines::tensorrt_plugin {
namespace {

namespace fs = std::filesystem;

const char* set_variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != 0 ? text : nullptr;
}

// Folders in which both libraries are looked for, in this order; an empty one is the loader's own search.
std::vector<fs::path> folders() {
  if (const char* chosen = set_variable("STROBE_TENSORRT_LIBRARY")) return {chosen};
  std::vector<fs::path> all{""};
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* environment = set_variable(variable);
    if (environment == nullptr) continue;
    std::error_code failed;
    for (fs::directory_iterator it(fs::path(environment) / "lib", failed), end; !failed && it != end;
         it.increment(failed))
      all.push_back(it->path() / "site-packages/tensorrt_libs");
  }
  all.emplace_back("/usr/local/tensorrt/lib");
  return all;
}

Result<Library> open(const std::string& stem, int major) {
  LibrarySearch search{"", {}};  // the variable names a folder
  for (const fs::path& folder : folders())
    search.names.push_back((folder / fmt::format("{}.so.{}", stem, major)).string());
  return Library::open(search);
}

// A library of another major version, to say that it is there.
std::string other_version() {
  constexpr int kOldest = 8, kNewest = NV_TENSORRT_MAJOR + 2;
  for (int major = kNewest; major >= kOldest; --major)
    if (major != NV_TENSORRT_MAJOR && open("libnvinfer", major)) return std::to_string(major);
  return {};
}

// 100900 is 10.9.0; before 10.0, 8601 was 8.6.1.
std::string version_text(int version) {
  constexpr int kNew = 100000;
  if (version < kNew) return fmt::format("{}.{}.{}", version / 1000, version / 100 % 10, version % 100);
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Result<Tensorrt> open_tensorrt() {
  const std::string built = "this plugin was built with the headers of TensorRT " + header_version();
  auto library = open("libnvinfer", NV_TENSORRT_MAJOR);
  if (!library) {
    const std::string other = other_version();
    if (!other.empty())
      return unsupported(fmt::format("only TensorRT {} is here, and {}; install TensorRT {} or build again", other,
                                     built, NV_TENSORRT_MAJOR));
    return unsupported(fmt::format("TensorRT's library: {} ({}; STROBE_TENSORRT_LIBRARY names its folder)",
                                   library.error().message(), built));
  }
  Tensorrt found;
  found.path = library->path();
  int32_t (*get_version)() = nullptr;
  int32_t (*get_build)() = nullptr;
  library->find(get_version, "getInferLibVersion");
  library->find(found.create_builder, "createInferBuilder_INTERNAL");
  library->find(found.create_runtime, "createInferRuntime_INTERNAL");
  if (get_version == nullptr || found.create_builder == nullptr || found.create_runtime == nullptr)
    return unsupported(found.path + ": is no TensorRT that can be used");
  library->find(get_build, "getInferLibBuildVersion");
  if (get_build != nullptr) found.build = std::to_string(get_build());
  const int version = get_version();
  found.version = version_text(version);
  if (found.version.substr(0, found.version.find('.')) != std::to_string(NV_TENSORRT_MAJOR))
    return unsupported(fmt::format("{} is TensorRT {}, and {}", found.path, found.version, built));

  STROBE_ASSIGN(const Library parser, [&]() -> Result<Library> {
    auto opened = open("libnvonnxparser", NV_TENSORRT_MAJOR);
    if (!opened) return unsupported("TensorRT's ONNX parser: " + opened.error().message());
    return opened;
  }());
  parser.find(found.create_parser, "createNvOnnxParser_INTERNAL");
  if (found.create_parser == nullptr) return unsupported(parser.path() + ": is no ONNX parser of TensorRT's");
  return found;
}

}  // namespace

std::string header_version() {
  return fmt::format("{}.{}.{}", NV_TENSORRT_MAJOR, NV_TENSORRT_MINOR, NV_TENSORRT_PATCH);
}

const Result<Tensorrt>& tensorrt() {
  static const Result<Tensorrt> opened = open_tensorrt();
  return opened;
}

std::unique_ptr<nvinfer1::IBuilder> Tensorrt::builder() const {
  return std::unique_ptr<nvinfer1::IBuilder>(
      static_cast<nvinfer1::IBuilder*>(create_builder(&log(), NV_TENSORRT_VERSION)));
}

std::unique_ptr<nvinfer1::IRuntime> Tensorrt::runtime() const {
  return std::unique_ptr<nvinfer1::IRuntime>(
      static_cast<nvinfer1::IRuntime*>(create_runtime(&log(), NV_TENSORRT_VERSION)));
}

std::unique_ptr<nvonnxparser::IParser> Tensorrt::parser(nvinfer1::INetworkDefinition& network) const {
  return std::unique_ptr<nvonnxparser::IParser>(
      static_cast<nvonnxparser::IParser*>(create_parser(&network, &log(), NV_ONNX_PARSER_VERSION)));
}

}  // namespace strobe::engines::tensorrt_plugin
