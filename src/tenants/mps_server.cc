#include "tenants/mps_server.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tenants/board.h"

namespace strobe::tenants {

namespace fs = std::filesystem;

namespace {

constexpr const char* kProgram = "nvidia-cuda-mps-control";
constexpr int64_t kLook_ns = 20'000'000;
constexpr int64_t kComesUp_ns = 20'000'000'000;
constexpr int64_t kGoes_ns = 10'000'000'000;  // its clients have ended by then
constexpr int kNotFound = 127;                // as a shell says it

Error no_program() {
  return unsupported(std::string("mps: no program ") + kProgram + " on PATH; it comes with NVIDIA's driver");
}

// Starts the program with `input` to read; its output is dropped, or goes into a file.
pid_t start_program(const char* argument, int input, const char* output, pid_t owner) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != owner) ::_exit(3);
  ::setsid();  // Ctrl-C is for the tenants, whose end it waits for
  const int said = ::open(output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(input, STDIN_FILENO);
  ::dup2(said, STDOUT_FILENO);
  ::dup2(said, STDERR_FILENO);
  ::execlp(kProgram, kProgram, argument, static_cast<char*>(nullptr));
  ::_exit(kNotFound);
}

// Whether the child ended in time, and how.
bool ends_within(pid_t child, int64_t most_ns, int& status) {
  const int64_t begin = monotonic_ns();
  for (;;) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return true;
    if (monotonic_ns() - begin > most_ns) return false;
    ::usleep(kLook_ns / 1000);
  }
}

void end(pid_t child) {
  int status = 0;
  ::kill(child, SIGTERM);
  if (ends_within(child, kGoes_ns, status)) return;
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
}

// Hands the daemon a line, by the same program. Whether it took it.
bool tell_daemon(const std::string& line, int64_t most_ns) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return false;
  const bool written = ::write(pipe[1], line.data(), line.size()) == static_cast<ssize_t>(line.size());
  ::close(pipe[1]);
  const pid_t child = written ? start_program(nullptr, pipe[0], "/dev/null", ::getpid()) : -1;
  ::close(pipe[0]);
  if (child < 0) return false;
  int status = 0;
  if (!ends_within(child, most_ns, status)) {
    end(child);
    return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

MpsServer::MpsServer(fs::path folder) : folder_(std::move(folder)), owner_(::getpid()) {
  for (const char* name : {kMpsPipeVariable, kMpsLogVariable}) {
    const char* value = std::getenv(name);
    before_.emplace_back(name, value == nullptr ? "" : value);
    ::setenv(name, folder_.c_str(), 1);
  }
}

Result<void> MpsServer::find_program() {
  const char* const path = std::getenv("PATH");
  std::stringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((fs::path(folder) / kProgram).c_str(), X_OK) == 0) return {};
  return no_program();
}

Result<std::unique_ptr<MpsServer>> MpsServer::start(bool on) {
  std::string pattern = (fs::temp_directory_path() / "strobe-mps-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) return io_error_errno("mps: making " + pattern);
  std::unique_ptr<MpsServer> server(new MpsServer(pattern));
  if (on) STROBE_TRY(server->start_daemon());
  return server;
}

Result<void> MpsServer::start_daemon() {
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  daemon_ = start_program("-f", nothing, (folder_ / "said").c_str(), owner_);
  ::close(nothing);
  if (daemon_ < 0) return io_error_errno(std::string("mps: starting ") + kProgram);
  const int64_t begin = monotonic_ns();
  while (monotonic_ns() - begin < kComesUp_ns) {
    int status = 0;
    if (ends_within(daemon_, 0, status)) {
      daemon_ = -1;
      if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound) return no_program();
      return unsupported(std::string("mps: ") + kProgram + " ended at once" + last_words());
    }
    if (tell_daemon("get_server_list\n", kComesUp_ns)) return {};
    ::usleep(kLook_ns / 1000);
  }
  return unsupported(std::string("mps: ") + kProgram + " does not answer" + last_words());
}

// The last line that the daemon wrote, of its own or into its log.
std::string MpsServer::last_words() const {
  std::string last;
  for (const char* name : {"control.log", "said"}) {
    std::ifstream file(folder_ / name);
    for (std::string line; std::getline(file, line);) {
      if (!line.empty()) last = line;
    }
  }
  return last.empty() ? "" : ": " + last;
}

MpsServer::~MpsServer() {
  if (::getpid() != owner_) return;  // a forked child's copy
  if (daemon_ > 0) {
    int status = 0;
    if (!tell_daemon("quit\n", kGoes_ns) || !ends_within(daemon_, kGoes_ns, status)) end(daemon_);
  }
  for (const auto& [name, value] : before_) {
    if (value.empty()) {
      ::unsetenv(name.c_str());
    } else {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace strobe::tenants
