#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "ask.h"
#include "command.h"
#include "exporters/exporter.h"
#include "perfetto_ui.h"
#include "temporary_folder.h"

namespace strobe::app {
namespace {

namespace fs = std::filesystem;

// The exported trace as an open file that has no name any more: nothing is left, however the program ends.
Result<int> export_unnamed(const trace::Timeline& timeline) {
  STROBE_ASSIGN(const auto folder, TemporaryFolder::make("strobe-view"));
  const fs::path path = folder->path() / "trace.pftrace";
  const Result<void> written = exporters::export_timeline(timeline, "perfetto", path);
  const int fd = written ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1;
  const Error failure = written ? io_error_errno(path.string()) : written.error();
  if (fd < 0) return failure;
  return fd;
}

// What ends the program waits until wait() asks for it.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  void wait() const {
    int signal = 0;
    sigwait(&signals_, &signal);
  }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t signals_{}, before_{};
};

void open_browser(const std::string& url, const EndSignals& signals) {
  const bool has_display = std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr;
  if (!has_display) return;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  posix_spawnattr_setsigmask(&attributes, &signals.before());
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::string program = "xdg-open", argument = url;
  char* arguments[] = {program.data(), argument.data(), nullptr};
  std::signal(SIGCHLD, SIG_IGN);
  pid_t child = 0;
  if (posix_spawnp(&child, "xdg-open", &actions, &attributes, arguments, environ) != 0)
    std::fputs("strobe: note: there is no xdg-open to start a browser with; open the address yourself\n", stderr);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
}

class ViewCommand : public Command {
 public:
  const char* name() const override { return "view"; }
  const char* summary() const override { return "A trace in the Perfetto UI, without a network"; }
  const char* group() const override { return "Look"; }
  const char* example() const override { return "strobe view out"; }

  void declare(CLI::App& app) override {
    constexpr int kMostPort = 65535;
    app.add_option("trace", trace_, "Trace file, output folder of a run, or another tool's trace")->required();
    app.add_option("--port", port_,
                   "Port of 127.0.0.1; default: " + std::to_string(ViewServer::kUsualPort) + ", or any that is free")
        ->check(CLI::Range(1, kMostPort));
    app.add_flag("--no-browser", no_browser_, "Only print the address");
  }

  Result<int> run() override {
    STROBE_ASSIGN(const fs::path ui, find_perfetto_ui());
    auto timeline = std::make_unique<trace::Timeline>();
    STROBE_ASSIGN(*timeline, open_any_trace(trace_));
    const EndSignals signals;
    STROBE_ASSIGN(const int fd, export_unnamed(*timeline));
    timeline.reset();
    fs::path name = fs::path(trace_).lexically_normal();
    if (!name.has_filename()) name = name.parent_path();
    STROBE_ASSIGN(const auto server, ViewServer::start(ui, fd, name.stem().string() + ".pftrace", port_));
    std::printf("%s\nCtrl-C ends.\n", server->url().c_str());
    std::fflush(stdout);
    if (!no_browser_) open_browser(server->url(), signals);
    signals.wait();
    return 0;
  }

 private:
  std::string trace_;
  int port_ = 0;
  bool no_browser_ = false;
};

}  // namespace

std::unique_ptr<Command> make_view_command() {
  return std::make_unique<ViewCommand>();
}

}  // namespace strobe::app
