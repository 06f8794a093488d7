// One worker as a child process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "run_workers_file.h"
#include "strobe/base/result.h"

namespace strobe::app {

class WorkerProcess {
 public:
  WorkerProcess(const WorkerPlan& plan, std::filesystem::path folder);
  ~WorkerProcess();
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&&) = delete;

  // Starts it in a process group of its own (so that Ctrl-C reaches it once, through interrupt())
  // that ends when this process does. Errors: kIo (folder, log, no more processes).
  Result<void> start();
  // Takes what it wrote and notices its end. Does not wait.
  void look();
  // As Ctrl-C does.
  void interrupt() const;

  bool running() const { return pid_ > 0 && !ended_; }
  const WorkerPlan& plan() const { return plan_; }
  pid_t pid() const { return pid_; }
  int wait_status() const { return wait_status_; }  // after its end
  bool succeeded() const;
  double seconds() const;                                // from start to end
  const std::string& output() const { return output_; }  // what it wrote on stdout
  const std::filesystem::path& folder() const { return folder_; }
  const std::filesystem::path& log() const { return log_; }  // what it wrote on stderr
  int output_descriptor() const { return output_end_; }      // -1: closed
  std::string how_it_ended() const;                          // "exit 0", "signal 9 (Killed)"

 private:
  void read_output();

  WorkerPlan plan_;
  std::filesystem::path folder_, log_;
  pid_t pid_ = 0;
  int output_end_ = -1;
  bool ended_ = false;
  int wait_status_ = 0;
  std::string output_;
  std::chrono::steady_clock::time_point start_{}, end_{};
};

}  // namespace strobe::app
