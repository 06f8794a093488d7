#include "bench/children.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

extern char** environ;

namespace strobe::bench {
namespace {

constexpr int kEndings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr int64_t kAgainMs = 3000, kKillMs = 15'000, kLookMs = 1000;
constexpr int kSignalBase = 128;

int64_t now_ms() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::milliseconds(1);
}

std::string signal_text(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

struct Child {
  pid_t pid = 0;
  bool running = false, recorded = false;
  int64_t start_ms = 0;
  // How it is being ended.
  int signal = 0;
  int64_t asked_ms = 0;
  bool asked_again = false, killed = false;
  std::string why;

  void send(int what) const {
    // `strobe record` passes a signal on to its program; the group would get it twice.
    ::kill(recorded && what != SIGKILL ? pid : -pid, what);
  }
  void ask(int what, const std::string& reason, int64_t now) {
    if (asked_ms != 0) return;
    signal = what;
    asked_ms = now;
    why = reason;
    send(what);
  }
  void press(int64_t now) {
    if (asked_ms == 0 || killed) return;
    if (!asked_again && now - asked_ms >= kAgainMs) {
      asked_again = true;
      send(recorded ? SIGTERM : signal);
    }
    if (now - asked_ms >= kKillMs) kill();
  }
  void kill() {
    killed = true;
    send(SIGKILL);
  }
};

[[noreturn]] void become(const std::vector<char*>& words, const std::vector<char*>& variables, int log, pid_t parent,
                         const sigset_t& mask, int report) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kSignalBase + SIGTERM);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execvpe(words[0], words.data(), variables.data());
  const int why = errno;
  [[maybe_unused]] const ssize_t ignored = ::write(report, &why, sizeof why);
  ::_exit(127);
}

Result<Child> start(const PlannedProcess& planned, const sigset_t& mask) {
  std::vector<std::string> texts;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (planned.environment.count(text.substr(0, text.find('='))) == 0) texts.push_back(text);
  }
  for (const auto& [name, value] : planned.environment) texts.push_back(name + "=" + value);
  std::vector<char*> words, variables;
  for (const auto& word : planned.command) words.push_back(const_cast<char*>(word.c_str()));
  for (auto& text : texts) variables.push_back(text.data());
  words.push_back(nullptr);
  variables.push_back(nullptr);
  const std::string log_path = (planned.folder / "log.txt").string();
  const int log = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0644);
  if (log < 0) return io_error_errno("cannot write " + log_path);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) {
    const Error error = io_error_errno("cannot make a pipe");
    ::close(log);
    return error;
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(words, variables, log, parent, mask, report[1]);
  const int fork_failed = errno;
  ::close(log);
  ::close(report[1]);
  int why = 0;
  const bool failed = pid > 0 && ::read(report[0], &why, sizeof why) == sizeof why;
  ::close(report[0]);
  if (pid < 0) return io_error(std::string("cannot start a process: ") + std::strerror(fork_failed));
  if (failed) {
    ::waitpid(pid, nullptr, 0);
    return io_error(planned.command[0] + ": cannot be started: " + std::strerror(why));
  }
  return Child{.pid = pid, .running = true, .recorded = planned.recorded, .start_ms = now_ms(), .why = {}};
}

std::string reason_of(const Child& child, int status) {
  if (!child.why.empty()) return child.why;
  if (WIFSIGNALED(status)) return "was killed by " + signal_text(WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  // How `strobe record` and shells pass on a signal.
  if (code > kSignalBase && code < kSignalBase + NSIG && ::sigabbrev_np(code - kSignalBase) != nullptr)
    return "was killed by " + signal_text(code - kSignalBase) + " (exit code " + std::to_string(code) + ")";
  return "ended with exit code " + std::to_string(code);
}

class Crowd {
 public:
  Crowd(const std::vector<PlannedProcess>& planned, const HeldSignals& signals, const ChildrenOptions& options)
      : planned_(planned), signals_(signals), options_(options), children_(planned.size()) {
    end_.processes.resize(planned.size());
  }

  ChildrenEnd run() {
    for (size_t i = 0; i < planned_.size() && end_.interrupted == 0; ++i) {
      auto child = start(planned_[i], signals_.before());
      if (child) {
        children_[i] = *child;
        end_.processes[i].started = true;
      } else {
        end_.processes[i].reason = child.error().to_string();
        if (options_.ended) options_.ended(planned_[i], end_.processes[i]);
      }
      while (const int signal = signals_.wait(0)) take(signal);
    }
    while (reap()) {
      const int64_t now = now_ms();
      int64_t wait = kLookMs;
      for (auto& child : children_) {
        if (!child.running) continue;
        if (options_.timeout_s > 0) {
          const auto limit_ms = static_cast<int64_t>(options_.timeout_s * 1000);
          const int64_t left = child.start_ms + limit_ms - now;
          if (left <= 0) child.ask(SIGTERM, "did not end within " + seconds_text(options_.timeout_s) + " s", now);
          if (left > 0) wait = std::min(wait, left);
        }
        child.press(now);
      }
      if (const int signal = signals_.wait(wait)) take(signal);
    }
    for (auto& process : end_.processes)
      if (!process.started && process.reason.empty()) process.reason = "was not started: interrupted";
    return std::move(end_);
  }

 private:
  static std::string seconds_text(double seconds) {
    std::string text = std::to_string(seconds);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
  }

  void take(int signal) {
    if (signal == SIGCHLD) return;
    const bool again = end_.interrupted != 0;
    end_.interrupted = signal;
    for (auto& child : children_) {
      if (!child.running) continue;
      if (again) child.kill();
      if (!again) child.ask(signal, "was interrupted", now_ms());
    }
  }

  // Whether any still runs.
  bool reap() {
    bool any = false;
    for (size_t i = 0; i < children_.size(); ++i) {
      Child& child = children_[i];
      if (!child.running) continue;
      int status = 0;
      const pid_t gone = ::waitpid(child.pid, &status, WNOHANG);
      if (gone == 0 || (gone < 0 && errno == EINTR)) {
        any = true;
        continue;
      }
      child.running = false;
      // What it left in its group would outlive the benchmark and disturb the next one.
      ::kill(-child.pid, SIGKILL);
      ProcessEnd& end = end_.processes[i];
      end.seconds = static_cast<double>(now_ms() - child.start_ms) / 1000;
      end.finished = gone == child.pid && WIFEXITED(status) && WEXITSTATUS(status) == 0 && child.why.empty();
      if (!end.finished) end.reason = reason_of(child, status);
      if (options_.ended) options_.ended(planned_[i], end);
    }
    return any;
  }

  const std::vector<PlannedProcess>& planned_;
  const HeldSignals& signals_;
  const ChildrenOptions& options_;
  std::vector<Child> children_;
  ChildrenEnd end_;
};

}  // namespace

HeldSignals::HeldSignals() {
  ::sigemptyset(&held_);
  for (const int signal : kEndings) ::sigaddset(&held_, signal);
  ::sigaddset(&held_, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
}

HeldSignals::~HeldSignals() {
  // What came late must not end this process before it has written what it has.
  while (wait(0) != 0) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int HeldSignals::wait(int64_t milliseconds) const {
  const timespec time{milliseconds / 1000, (milliseconds % 1000) * 1'000'000};
  const int signal = ::sigtimedwait(&held_, nullptr, &time);
  return signal > 0 ? signal : 0;
}

Result<ChildrenEnd> run_children(const std::vector<PlannedProcess>& planned, const HeldSignals& signals,
                                 const ChildrenOptions& options) {
  return Crowd(planned, signals, options).run();
}

}  // namespace strobe::bench
