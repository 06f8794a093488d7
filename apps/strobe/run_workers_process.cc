#include "run_workers_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "base/file.h"

extern char** environ;

namespace strobe::app {

namespace {

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& added) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=', 1);
    if (equals != std::string::npos) all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : added) all[name] = value;
  std::vector<std::string> texts;
  for (const auto& [name, value] : all) texts.push_back(name + "=" + value);
  return texts;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// What the child needs, made before the fork: after it only calls that are safe there.
struct Launch {
  char** arguments;
  char** environment;
  int output, log, nothing;
  pid_t parent;
};

[[noreturn]] void become_worker(const Launch& launch) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != launch.parent) ::_exit(3);
  ::dup2(launch.nothing, STDIN_FILENO);
  ::dup2(launch.output, STDOUT_FILENO);
  ::dup2(launch.log, STDERR_FILENO);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_DFL);
  ::execve("/proc/self/exe", launch.arguments, launch.environment);
  static constexpr char kFailed[] = "strobe: the worker's program could not be started\n";
  (void)!::write(STDERR_FILENO, kFailed, sizeof kFailed - 1);
  ::_exit(3);
}

}  // namespace

WorkerProcess::WorkerProcess(const WorkerPlan& plan, std::filesystem::path folder)
    : plan_(plan),
      folder_(std::move(folder)),
      log_(plan.log.empty() ? folder_ / "log.txt" : std::filesystem::path(plan.log)) {}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : plan_(std::move(other.plan_)),
      folder_(std::move(other.folder_)),
      log_(std::move(other.log_)),
      pid_(std::exchange(other.pid_, 0)),
      output_end_(std::exchange(other.output_end_, -1)),
      ended_(other.ended_),
      wait_status_(other.wait_status_),
      output_(std::move(other.output_)),
      start_(other.start_),
      end_(other.end_) {}

WorkerProcess::~WorkerProcess() {
  if (running()) {
    ::kill(-pid_, SIGKILL);
    while (::waitpid(pid_, &wait_status_, 0) < 0 && errno == EINTR) {
    }
  }
  if (output_end_ >= 0) ::close(output_end_);
}

Result<void> WorkerProcess::start() {
  STROBE_TRY(make_writable_folder(folder_));
  const int log = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (log < 0) return io_error_errno(log_.string());
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  int ends[2] = {-1, -1};
  if (nothing < 0 || ::pipe2(ends, O_CLOEXEC) != 0) {
    Error error = io_error_errno("starting worker " + plan_.name);
    ::close(log);
    if (nothing >= 0) ::close(nothing);
    return error;
  }
  std::vector<std::string> words = {"strobe", "run"};
  words.insert(words.end(), plan_.flags.begin(), plan_.flags.end());
  words.insert(words.end(), {"--output=" + folder_.string(), "--format=json"});
  std::vector<std::string> variables = environment_with(plan_.environment);
  std::vector<char*> arguments = pointers(words), environment = pointers(variables);
  const Launch launch{arguments.data(), environment.data(), ends[1], log, nothing, ::getpid()};
  std::fflush(nullptr);
  start_ = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) become_worker(launch);
  const int failed = errno;
  ::close(ends[1]);
  ::close(log);
  ::close(nothing);
  if (child < 0) {
    ::close(ends[0]);
    errno = failed;
    return io_error_errno("starting worker " + plan_.name);
  }
  pid_ = child;
  ::setpgid(child, child);  // here too: whoever is first
  output_end_ = ends[0];
  ::fcntl(output_end_, F_SETFL, O_NONBLOCK);
  return {};
}

void WorkerProcess::read_output() {
  char buffer[1 << 16];
  while (output_end_ >= 0) {
    const ssize_t count = ::read(output_end_, buffer, sizeof buffer);
    if (count > 0) {
      output_.append(buffer, static_cast<size_t>(count));
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    ::close(std::exchange(output_end_, -1));
  }
}

void WorkerProcess::look() {
  if (!running()) return;
  read_output();
  siginfo_t end{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid == 0) return;
  end_ = std::chrono::steady_clock::now();
  // Children that it left behind (engines compared in turn) go with it. It is not reaped yet, so its id is still its
  // own.
  ::kill(-pid_, SIGKILL);
  while (::waitpid(pid_, &wait_status_, 0) < 0 && errno == EINTR) {
  }
  ended_ = true;
  read_output();
  if (output_end_ >= 0) ::close(std::exchange(output_end_, -1));
}

void WorkerProcess::interrupt() const {
  if (running()) ::kill(-pid_, SIGINT);
}

bool WorkerProcess::succeeded() const {
  return ended_ && WIFEXITED(wait_status_) && WEXITSTATUS(wait_status_) == 0;
}

double WorkerProcess::seconds() const {
  return std::chrono::duration<double>((ended_ ? end_ : std::chrono::steady_clock::now()) - start_).count();
}

std::string WorkerProcess::how_it_ended() const {
  if (WIFSIGNALED(wait_status_))
    return fmt::format("signal {} ({})", WTERMSIG(wait_status_), ::strsignal(WTERMSIG(wait_status_)));
  return fmt::format("exit {}", WEXITSTATUS(wait_status_));
}

}  // namespace strobe::app
