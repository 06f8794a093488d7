#include "bench/held_clocks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <utility>

#include "gpu/nvml.h"

namespace strobe::bench {
namespace {

constexpr int kAnswer_ms = 60'000;  // nvidia-smi takes seconds a call where no persistence daemon runs
constexpr int kLook_ms = 200;       // for the parent, where the kernel cannot tell of its end

// Messages of the guardian, a line each: a digit, the log's level, and a text; "=" and what was done to a GPU; "." ends
// an answer.
void send_line(int socket, const std::string& line) {
  const std::string text = line + "\n";
  [[maybe_unused]] const ssize_t ignored = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
}

std::string to_line(int gpu, const GpuClocks& clocks) {
  char text[128];
  std::snprintf(text, sizeof text, "=%d %d %d %d %.3f", gpu, clocks.done ? 1 : 0, clocks.touched ? 1 : 0,
                clocks.persistence_was_on ? 1 : 0, clocks.power_limit_w.value_or(-1));
  return text;
}
bool from_line(const char* line, int& gpu, GpuClocks& clocks) {
  int done = 0, touched = 0, persistence = 0;
  double watts = -1;
  if (std::sscanf(line, "=%d %d %d %d %lf", &gpu, &done, &touched, &persistence, &watts) != 5) return false;
  clocks = {done != 0, persistence != 0, watts < 0 ? std::nullopt : std::optional(watts), touched != 0};
  return true;
}

std::vector<int> visible_gpus() {
  std::vector<int> gpus;
  if (const auto nvml = gpu::Nvml::open())
    if (const auto devices = nvml->visible_devices())
      for (const auto& device : devices->list) gpus.push_back(static_cast<int>(device.index));
  if (gpus.empty()) gpus.push_back(kAllGpus);
  return gpus;
}

// Nothing of the parent's is held: who waits for the end of its output must not wait for the guardian.
void let_go(std::vector<int> kept) {
  const int nothing = ::open("/dev/null", O_RDWR);
  for (int file = 0; file < 3; ++file) ::dup2(nothing, file);
  std::sort(kept.begin(), kept.end());
  unsigned from = 3;
  for (const int file : kept) {
    if (file < 3) continue;
    if (static_cast<unsigned>(file) > from) ::syscall(SYS_close_range, from, static_cast<unsigned>(file) - 1, 0);
    from = static_cast<unsigned>(file) + 1;
  }
  ::syscall(SYS_close_range, from, ~0U, 0);
}

[[noreturn]] void guard(int socket, pid_t parent, std::vector<int> gpus) {
  ::setsid();  // Ctrl-C is for the parent
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::prctl(PR_SET_NAME, "strobe clocks");
  int parent_end = static_cast<int>(::syscall(SYS_pidfd_open, parent, 0));
  // Where the parent's own input or output is closed they have got its number, which is about to become nothing's.
  for (int* file : {&socket, &parent_end})
    if (*file >= 0 && *file < 3) *file = ::fcntl(*file, F_DUPFD, 3);
  let_go({socket, parent_end});
  if (::getppid() != parent) ::_exit(0);

  const Log log = [socket](LogLevel level, std::string_view text) {
    std::string line = std::to_string(static_cast<int>(level)) + std::string(text);
    std::replace(line.begin(), line.end(), '\n', ' ');
    send_line(socket, line);
  };
  if (gpus.empty()) gpus = visible_gpus();
  std::map<int, GpuClocks> before;
  for (const int gpu : gpus) {
    before[gpu] = maximize_clocks(gpu, log);
    send_line(socket, to_line(gpu, before[gpu]));
  }
  send_line(socket, ".");
  for (;;) {
    pollfd waiting[] = {{socket, POLLIN, 0}, {parent_end, POLLIN, 0}};
    ::poll(waiting, parent_end < 0 ? 1 : 2, parent_end < 0 ? kLook_ms : -1);
    if (waiting[0].revents != 0 || (parent_end >= 0 && waiting[1].revents != 0) || ::getppid() != parent) break;
  }
  for (const auto& [gpu, clocks] : before) reset_clocks(gpu, clocks, log);
  send_line(socket, ".");
  ::_exit(0);
}

}  // namespace

HeldClocks::HeldClocks(std::vector<int> gpus, Log log) : log_(std::move(log)), owner_(::getpid()) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    log_(LogLevel::kError, "cannot make a pair of sockets: GPU clocks were not maximized");
    return;
  }
  std::fflush(nullptr);
  guardian_ = ::fork();
  if (guardian_ == 0) {
    ::close(ends[0]);
    guard(ends[1], owner_, std::move(gpus));
  }
  ::close(ends[1]);
  socket_ = ends[0];
  if (guardian_ < 0 || !read_messages())
    log_(LogLevel::kError, "the process that sets GPU clocks does not answer: they may not be maximized");
}

bool HeldClocks::done() const {
  return !before_.empty() &&
         std::all_of(before_.begin(), before_.end(), [](const auto& one) { return one.second.done; });
}

bool HeldClocks::read_messages() {
  std::string line;
  for (;;) {
    pollfd waiting{socket_, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, kAnswer_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char byte = 0;
    const ssize_t count = ::read(socket_, &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    if (byte != '\n') {
      line += byte;
      continue;
    }
    if (line == ".") return true;
    int gpu = 0;
    GpuClocks clocks;
    if (line.starts_with('=') && from_line(line.c_str(), gpu, clocks)) before_[gpu] = clocks;
    if (!line.empty() && line[0] >= '0' && line[0] <= '3')
      log_(static_cast<LogLevel>(line[0] - '0'), std::string_view(line).substr(1));
    line.clear();
  }
}

void HeldClocks::release() {
  if (socket_ < 0 || ::getpid() != owner_) return;
  [[maybe_unused]] const ssize_t ignored = ::send(socket_, "r", 1, MSG_NOSIGNAL);
  if (guardian_ > 0 && !read_messages()) {
    log_(LogLevel::kWarning, "the process that holds GPU clocks is gone: they are put back without it");
    ::kill(guardian_, SIGKILL);
    for (const auto& [gpu, clocks] : before_) reset_clocks(gpu, clocks, log_);
  }
  ::close(socket_);
  socket_ = -1;
  while (guardian_ > 0 && ::waitpid(guardian_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace strobe::bench
