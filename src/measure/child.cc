#include "measure/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/file.h"

namespace strobe::measure {

namespace {

constexpr char kComplete = '\x04';  // ends a complete answer
constexpr int kLook_ms = 200;
constexpr int64_t kKib = 1024;

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

void prefer_as_victim() {
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  (void)!::write(file, "1000", 4);
  ::close(file);
}

[[noreturn]] void be_child(int answer, const ChildOptions& options, const std::function<std::string()>& work,
                           pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(3);
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT}) ::signal(signal, SIG_IGN);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  prefer_as_victim();
  const char* log = options.log.empty() ? "/dev/null" : options.log.c_str();
  const int file = ::open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file >= 0) {
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
  }
  int code = 0;
  try {
    write_all(answer, work() + kComplete);
  } catch (const std::exception& fault) {
    write_all(STDERR_FILENO, fault.what());
    code = 3;
  } catch (...) {
    code = 3;
  }
  // The libraries' threads and destructors are none of our business any more.
  ::_exit(code);
}

std::string last_line_of(const std::filesystem::path& log) {
  if (log.empty()) return {};
  const auto text = read_file(log);
  if (!text) return {};
  const size_t end = text->find_last_not_of(" \r\n");
  if (end == std::string::npos) return {};
  const size_t begin = text->rfind('\n', end);
  return text->substr(begin == std::string::npos ? 0 : begin + 1,
                      end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

using Clock = std::chrono::steady_clock;

// Until the pipe's other end closes, the time is over, or it is to stop.
ChildEnd::How listen(int fd, const ChildOptions& options, Clock::time_point begin, std::string& text) {
  for (;;) {
    if (options.stop != nullptr && *options.stop) return ChildEnd::How::kStopped;
    const double left_s = options.timeout_s - std::chrono::duration<double>(Clock::now() - begin).count();
    if (left_s <= 0) return ChildEnd::How::kTimeout;
    if (options.waiting) options.waiting();
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, std::clamp(static_cast<int>(left_s * 1e3), 1, kLook_ms));
    if (ready <= 0) continue;
    char buffer[4096];
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return ChildEnd::How::kAnswered;
    text.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace

std::string ChildEnd::to_string() const {
  switch (how) {
    case How::kAnswered:
      return "answered";
    case How::kTimeout:
      return "timeout";
    case How::kStopped:
      return "stopped";
    case How::kKilled:
      return fmt::format("stopped by signal {} ({})", code, ::strsignal(code));
    case How::kExited:
      return fmt::format("ended without an answer, exit code {}", code);
  }
  return "?";
}

Result<ChildEnd> run_in_child(const std::function<std::string()>& work, const ChildOptions& options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return io_error_errno("pipe");
  std::fflush(nullptr);
  const auto begin = Clock::now();
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    Error error = io_error_errno("fork");
    ::close(ends[0]);
    ::close(ends[1]);
    return error;
  }
  if (child == 0) {
    ::close(ends[0]);
    be_child(ends[1], options, work, parent);
  }
  ::close(ends[1]);
  ChildEnd end;
  end.how = listen(ends[0], options, begin, end.answer);
  ::close(ends[0]);
  if (end.how != ChildEnd::How::kAnswered) ::kill(child, SIGKILL);
  int status = 0;
  rusage use{};
  while (::wait4(child, &status, 0, &use) < 0 && errno == EINTR) {
  }
  end.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  end.peak_bytes = use.ru_maxrss * kKib;
  if (end.how != ChildEnd::How::kAnswered) return end;
  if (!end.answer.empty() && end.answer.back() == kComplete) {
    end.answer.pop_back();
    return end;
  }
  end.how = WIFSIGNALED(status) ? ChildEnd::How::kKilled : ChildEnd::How::kExited;
  end.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  end.last_line = last_line_of(options.log);
  return end;
}

}  // namespace strobe::measure
