// NVIDIA's Multi-Process Service for the length of a cell: with it the processes of tenants use the device side by
// side, without it they take turns of time.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::tenants {

// What CUDA and the daemon go by.
inline constexpr const char* kMpsPipeVariable = "CUDA_MPS_PIPE_DIRECTORY";
inline constexpr const char* kMpsLogVariable = "CUDA_MPS_LOG_DIRECTORY";
inline constexpr const char* kMpsShareVariable = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";
inline constexpr const char* kMpsPriorityVariable = "CUDA_MPS_CLIENT_PRIORITY";  // 0 normal, 1 below

// While it lives, processes that this one starts find the daemon's folder in their environment: one with a daemon that
// this object has started (on), or one without, so that a daemon that the machine runs is left alone (off).
class MpsServer {
 public:
  // Whether its program is on PATH; nothing is started. Errors: kUnsupported.
  static Result<void> find_program();
  // To be called by a process of one thread; the daemon goes when that process does, however it ends.
  // Errors: kUnsupported (the program nvidia-cuda-mps-control is not there, or does not come up: with its own words).
  static Result<std::unique_ptr<MpsServer>> start(bool on);
  MpsServer(const MpsServer&) = delete;
  MpsServer& operator=(const MpsServer&) = delete;
  ~MpsServer();

 private:
  explicit MpsServer(std::filesystem::path folder);
  Result<void> start_daemon();
  std::string last_words() const;

  std::filesystem::path folder_;
  pid_t daemon_ = -1;  // -1: none
  const pid_t owner_;
  std::vector<std::pair<std::string, std::string>> before_;  // of the environment; "": it was not there
};

}  // namespace strobe::tenants
