#include "bench/tool.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <sstream>

#include "strobe/bench/clocks.h"

namespace strobe::bench {
namespace {

// False: the time is over.
bool read_to_end(int file, int timeout_s, std::string& text) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_s);
  for (;;) {
    const auto left = (until - std::chrono::steady_clock::now()) / std::chrono::milliseconds(1);
    if (left <= 0) return false;
    pollfd waiting{file, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char buffer[4096];
    const ssize_t count = ::read(file, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    text.append(buffer, static_cast<size_t>(count));
  }
}

std::string trimmed(std::string text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

std::optional<std::string> run_tool(const std::vector<std::string>& command, int timeout_s) {
  std::vector<char*> words;
  for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const pid_t pid = ::fork();
  if (pid == 0) {
    // Away from the terminal's group: an interruption is ours to handle.
    ::setpgid(0, 0);
    const int nothing = ::open("/dev/null", O_RDWR);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(nothing, STDERR_FILENO);
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string text;
  const bool in_time = pid > 0 && read_to_end(ends[0], timeout_s, text);
  ::close(ends[0]);
  if (pid < 0) return std::nullopt;
  if (!in_time) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return text;
}

std::vector<std::vector<std::string>> query_gpus(const std::string& fields, int gpu) {
  std::vector<std::string> command{"nvidia-smi", "--query-gpu=" + fields, "--format=csv,nounits,noheader"};
  if (gpu != kAllGpus) command.insert(command.begin() + 1, {"-i", std::to_string(gpu)});
  const auto answer = run_tool(command);
  std::vector<std::vector<std::string>> rows;
  if (!answer) return rows;
  std::istringstream lines(*answer);
  for (std::string line; std::getline(lines, line);) {
    if (trimmed(line).empty()) continue;
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(trimmed(cell));
    rows.push_back(std::move(cells));
  }
  return rows;
}

}  // namespace strobe::bench
