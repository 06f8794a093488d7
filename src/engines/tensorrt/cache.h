// Engines that were built before, as files in a folder of the user's own. They hold machine code: neither a folder nor
// a file that somebody else could have written is used. Nothing here fails a run: what is in the way becomes a note.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::engines::tensorrt_plugin {

// What is kept of one build.
struct CachedEngine {
  std::string engine;                                      // serialised
  std::vector<std::string> inputs, outputs;                // as Plan has them
  std::vector<std::pair<std::string, std::string>> facts;  // of building it
};

class EngineCache {
 public:
  // STROBE_TENSORRT_CACHE: a folder, made where it is absent, or "off"; else strobe/tensorrt in XDG_CACHE_HOME or
  // ~/.cache. STROBE_TENSORRT_CACHE_MB: what its files may take together (8,192). Null: switched off. Errors: kUsage (a
  // number that is none), kIo (no such folder can be had, or it is not safe).
  static Result<std::unique_ptr<EngineCache>> open();
  EngineCache(const EngineCache&) = delete;
  EngineCache& operator=(const EngineCache&) = delete;
  ~EngineCache();

  // What was kept for this description, all of which is compared; nullopt: nothing. Marks it as used. Errors: kBadData
  // (damaged, another's), kIo.
  Result<std::optional<CachedEngine>> find(const std::string& description) const;
  // Appears under its name when complete. The files that were not used for longest make place for it. Errors: kIo
  // (full, larger than all that may be there).
  Result<void> keep(const std::string& description, const CachedEngine& built) const;
  std::filesystem::path path_of(const std::string& description) const;

  // One engine at a time is built by all that use the folder: a build measures kernels on the device, and who waited
  // may find what it wanted. Waits; ten minutes at most, then goes on without. Free again with the object.
  class Turn {
   public:
    explicit Turn(const EngineCache& cache);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

   private:
    int fd_ = -1;
  };

 private:
  EngineCache(int folder, std::filesystem::path path, int64_t limit)
      : folder_(folder), path_(std::move(path)), limit_bytes_(limit) {}
  void make_place(const std::string& beside) const;

  int folder_;  // open: whatever happens to its path, this is the one that was looked at
  std::filesystem::path path_;
  int64_t limit_bytes_;
};

}  // namespace strobe::engines::tensorrt_plugin
