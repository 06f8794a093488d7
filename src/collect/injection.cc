#include "collect/injection.h"

#include "base/plugin.h"

namespace strobe::collect {
namespace {

namespace fs = std::filesystem;

class Injection : public Collector {
 public:
  Injection(InjectionOptions options, fs::path library) : options_(std::move(options)), library_(std::move(library)) {}

  Result<void> prepare(std::map<std::string, std::string>& environment) override {
    environment["STROBE_RECORD_FOLDER"] = fs::absolute(options_.folder).string();
    environment["STROBE_RECORD_RING_BYTES"] = std::to_string(options_.ring_bytes);
    environment["STROBE_RECORD_BLOCK"] = options_.block_when_full ? "1" : "0";
    if (options_.nvtx) environment["NVTX_INJECTION64_PATH"] = library_.string();
    if (options_.gpu) environment["CUDA_INJECTION64_PATH"] = library_.string();
    if (options_.gpu && options_.gpu_graph_nodes) environment["STROBE_GPU_GRAPH_NODES"] = "1";
    // Also where it is empty: a recording within one that replays does not.
    if (options_.gpu) environment["STROBE_GPU_REPLAY_METRICS"] = options_.gpu_replay;
    if (options_.itt) environment["INTEL_LIBITTNOTIFY64"] = library_.string();
    return {};
  }

  // What the library could not do it has written down.
  void finish(Findings& findings) override {
    std::error_code failed;
    for (fs::directory_iterator it(options_.folder, failed), end; !failed && it != end; it.increment(failed))
      if (it->path().extension() == ".failed")
        findings.facts["record.not_recorded." + it->path().stem().string()] = "1";
  }

 private:
  InjectionOptions options_;
  fs::path library_;
};

}  // namespace

Result<std::unique_ptr<Collector>> make_injection_collector(const InjectionOptions& options) {
  std::string looked;
  for (const auto& folder : plugin_folders()) {
    std::error_code ignored;
    const fs::path library = folder / "libstrobe_inject.so";
    if (fs::exists(library, ignored))
      return std::unique_ptr<Collector>(std::make_unique<Injection>(options, fs::absolute(library)));
    looked += (looked.empty() ? "" : ", ") + folder.string();
  }
  return not_found("libstrobe_inject.so: not in " + looked + "; build it, or set STROBE_PLUGIN_DIR to its folder");
}

}  // namespace strobe::collect
