#include "collect/program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>

#include "collect/proc_reader.h"

extern char** environ;

namespace strobe::collect {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};

int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Signals come as reads of a file, so that one thread can wait for them and for the next sample.
class Signals {
 public:
  Signals() {
    ::sigemptyset(&mask_);
    for (const int signal : kForwarded) ::sigaddset(&mask_, signal);
    ::sigaddset(&mask_, SIGCHLD);
    ::pthread_sigmask(SIG_BLOCK, &mask_, &before_);
    file_ = ::signalfd(-1, &mask_, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() {
    // What came late must not end this process: the trace is still to be written.
    signalfd_siginfo info{};
    while (next(info)) {
    }
    ::close(file_);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  // The mask that the program had before.
  const sigset_t& before() const { return before_; }
  bool next(signalfd_siginfo& info) const { return ::read(file_, &info, sizeof info) == sizeof info; }
  void wait_until(int64_t time_ns) const {
    pollfd waiting{file_, POLLIN, 0};
    const int64_t left = std::max<int64_t>(0, time_ns - now_ns());
    const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
    ::ppoll(&waiting, 1, time_ns == 0 ? nullptr : &timeout, nullptr);
  }

 private:
  sigset_t mask_{}, before_{};
  int file_ = -1;
};

[[noreturn]] void become(const std::vector<char*>& words, const std::vector<char*>& variables, const sigset_t& mask,
                         int report) {
  // This program ignores two signals for itself; the other one starts as it would have.
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execvpe(words[0], words.data(), variables.data());
  const int why = errno;
  [[maybe_unused]] const ssize_t ignored = ::write(report, &why, sizeof why);
  ::_exit(127);
}

Result<pid_t> start(const std::vector<std::string>& command, const std::map<std::string, std::string>& changes,
                    const sigset_t& mask) {
  std::map<std::string, std::string> environment;
  std::vector<std::string> texts;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (changes.count(text.substr(0, text.find('='))) == 0) texts.push_back(text);
  }
  for (const auto& [name, value] : changes) texts.push_back(name + "=" + value);
  std::vector<char*> words, variables;
  for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
  for (auto& text : texts) variables.push_back(text.data());
  words.push_back(nullptr);
  variables.push_back(nullptr);

  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return io_error_errno("cannot make a pipe");
  const pid_t pid = ::fork();
  if (pid == 0) become(words, variables, mask, report[1]);
  const int fork_failed = errno;
  ::close(report[1]);
  int why = 0;
  const bool failed = pid > 0 && ::read(report[0], &why, sizeof why) == sizeof why;
  ::close(report[0]);
  if (pid < 0) return io_error(std::string("cannot start a process: ") + std::strerror(fork_failed));
  if (failed) {
    ::waitpid(pid, nullptr, 0);
    if (why == ENOENT) return not_found(command[0] + ": no such program");
    return io_error(command[0] + ": cannot be started: " + std::strerror(why));
  }
  return pid;
}

// Everything that descends from this process, itself not.
std::vector<int32_t> descendants() {
  std::vector<int32_t> pids;
  numbers_in("/proc", pids);
  std::map<int32_t, int32_t> parents;
  for (const int32_t pid : pids) {
    ProcFile file("/proc/" + std::to_string(pid) + "/stat");
    ProcessStat stat;
    const char* text = file.read();
    if (text != nullptr && parse_stat(text, stat) && stat.state != 'Z') parents[pid] = stat.parent;
  }
  std::vector<int32_t> found;
  const int32_t self = ::getpid();
  for (const auto& [pid, parent] : parents) {
    int32_t at = parent;
    for (int steps = 0; at != self && at > 1 && steps < 1000; ++steps) {
      const auto up = parents.find(at);
      at = up == parents.end() ? 0 : up->second;
    }
    if (at == self) found.push_back(pid);
  }
  return found;
}

class Supervisor {
 public:
  Supervisor(const ProgramOptions& options, const std::vector<std::unique_ptr<Collector>>& collectors)
      : options_(options), collectors_(collectors) {}

  Result<ProgramEnd> run() {
    std::map<std::string, std::string> changes;
    for (const auto& collector : collectors_) STROBE_TRY(collector->prepare(changes));
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    const int64_t start_ns = now_ns();
    STROBE_ASSIGN(program_, start(options_.command, changes, signals_.before()));
    for (const auto& collector : collectors_) collector->started(program_, options_.command, start_ns);
    while (!done()) {
      int64_t next = 0;
      for (const auto& collector : collectors_) {
        const auto wanted = collector->sample();
        if (wanted && (next == 0 || *wanted < next)) next = *wanted;
      }
      signals_.wait_until(next);
      signalfd_siginfo info{};
      while (signals_.next(info)) take(info);
      reap();
    }
    if (!no_children_) end_.left = descendants().size();
    return end_;
  }

 private:
  bool done() const { return no_children_ || (ended_ && (!options_.wait_for_all || give_up_)); }

  void take(const signalfd_siginfo& info) {
    const auto signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) return;
    const bool stops = signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
    if (stops && ended_) {
      give_up_ = true;  // what the program left behind runs on
      return;
    }
    if (stops && ++interrupts_ > 1) {
      end_.killed = true;
      for (const int32_t pid : descendants()) ::kill(pid, SIGKILL);
      return;
    }
    // The terminal sends to the whole group, so the program has it already.
    if (info.ssi_code != SI_KERNEL) ::kill(program_, signal);
  }

  void reap() {
    for (;;) {
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
        no_children_ = errno == ECHILD;
        return;
      }
      if (info.si_pid == 0) return;
      for (const auto& collector : collectors_) collector->died(info.si_pid);
      int status = 0;
      rusage used{};
      if (::wait4(info.si_pid, &status, 0, &used) != info.si_pid) return;
      for (const auto& collector : collectors_) collector->reaped(info.si_pid, status, used);
      if (info.si_pid != program_) continue;
      end_.wait_status = status;
      ended_ = true;
      if (!options_.wait_for_all || options_.quiet) continue;
      if (const size_t left = descendants().size(); left > 0)
        std::fprintf(stderr,
                     "strobe: the program ended; recording goes on for %zu processes that it left behind "
                     "(Ctrl-C ends the recording, not them)\n",
                     left);
    }
  }

  const ProgramOptions& options_;
  const std::vector<std::unique_ptr<Collector>>& collectors_;
  Signals signals_;
  ProgramEnd end_;
  pid_t program_ = 0;
  int interrupts_ = 0;
  bool ended_ = false, give_up_ = false, no_children_ = false;
};

}  // namespace

Result<ProgramEnd> run_program(const ProgramOptions& options,
                               const std::vector<std::unique_ptr<Collector>>& collectors) {
  Supervisor supervisor(options, collectors);
  return supervisor.run();
}

}  // namespace strobe::collect
