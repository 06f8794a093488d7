#include "in_child.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace strobe::app {

namespace {

constexpr char kComplete = '\x04';  // ends a complete answer

[[noreturn]] void answer_and_exit(int fd, const std::function<std::string()>& work) {
  std::string text;
  try {
    text = work() + kComplete;
  } catch (...) {
    // An incomplete answer says it all.
  }
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t count = ::write(fd, rest.data(), rest.size());
    if (count <= 0) break;
    rest.remove_prefix(static_cast<size_t>(count));
  }
  // The library's threads and destructors are none of our business any more.
  ::_exit(0);
}

// Reads to the end; false when the time is over.
bool read_all(int fd, int timeout_s, std::string& text) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_s);
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char buffer[4096];
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    text.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace

Result<std::string> in_child(const std::function<std::string()>& work, int timeout_s) {
  int ends[2];
  if (::pipe(ends) != 0) return io_error_errno("pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return io_error_errno("fork");
  if (child == 0) {
    ::close(ends[0]);
    answer_and_exit(ends[1], work);
  }
  ::close(ends[1]);
  std::string text;
  const bool in_time = read_all(ends[0], timeout_s, text);
  ::close(ends[0]);
  if (!in_time) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) return engine_error("no answer within " + std::to_string(timeout_s) + " s");
  if (!text.empty() && text.back() == kComplete) {
    text.pop_back();
    return text;
  }
  if (WIFSIGNALED(status))
    return engine_error("stopped by signal " + std::to_string(WTERMSIG(status)) + " (" + ::strsignal(WTERMSIG(status)) +
                        ")");
  return engine_error("ended without an answer, exit code " + std::to_string(WEXITSTATUS(status)));
}

}  // namespace strobe::app
