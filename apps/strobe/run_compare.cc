#include "run_compare.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <sstream>

#include "base/file.h"

extern char** environ;

namespace strobe::app {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

struct Finished {
  int exit_code = 0;
  std::string output;
};

// Runs this program again and collects its stdout; stderr stays the user's.
Result<Finished> run_self(const std::vector<std::string>& arguments) {
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) return io_error_errno("pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  std::vector<char*> argv;
  std::string self = "/proc/self/exe";
  argv.push_back(self.data());
  std::vector<std::string> copies = arguments;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, self.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_ends[1]);
  if (failed != 0) {
    ::close(pipe_ends[0]);
    errno = failed;
    return io_error_errno("starting a process for the engine");
  }
  Finished result;
  char buffer[4096];
  for (;;) {
    const ssize_t count = ::read(pipe_ends[0], buffer, sizeof buffer);
    if (count > 0) result.output.append(buffer, static_cast<size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) break;
  }
  ::close(pipe_ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    return engine_error(
        fmt::format("its process was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status))));
  result.exit_code = WEXITSTATUS(status);
  return result;
}

// "torch:script" names a folder without a colon.
std::string folder_name(std::string engine) {
  std::replace(engine.begin(), engine.end(), ':', '-');
  return engine;
}

// The engines' files as one, each row with its engine.
Result<void> join_outputs(const RunFlags& flags, const Json& runs) {
  std::string csv;
  Json detections = Json::array();
  for (const Json& run : runs) {
    const auto engine = run.at("engine").get<std::string>();
    if (run.contains("trace")) {
      STROBE_ASSIGN(const std::string text, read_file(run.at("frames_csv").get<std::string>()));
      std::istringstream lines(text);
      std::string line;
      for (bool header = true; std::getline(lines, line); header = false) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (header && !csv.empty()) continue;
        csv += line + (header ? ",engine\n" : "," + engine + "\n");
      }
    }
    STROBE_ASSIGN(const std::string text, read_file(run.at("detections").get<std::string>()));
    for (Json& frame : Json::parse(text)) {
      frame["engine"] = engine;
      detections.push_back(std::move(frame));
    }
  }
  if (!csv.empty()) STROBE_TRY(write_file(fs::path(flags.output) / "frames.csv", csv));
  return write_file(fs::path(flags.output) / "detections.json", detections.dump(1) + "\n");
}

Result<std::vector<float>> read_floats(const fs::path& path) {
  STROBE_ASSIGN(const std::string bytes, read_file(path));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::copy_n(bytes.data(), values.size() * sizeof(float), reinterpret_cast<char*>(values.data()));
  return values;
}

double overlap(const Json& a, const Json& b) {
  const auto value = [](const Json& box, const char* key) { return box.at(key).get<double>(); };
  const double left = std::max(value(a, "x"), value(b, "x")), top = std::max(value(a, "y"), value(b, "y"));
  const double right = std::min(value(a, "x") + value(a, "w"), value(b, "x") + value(b, "w"));
  const double bottom = std::min(value(a, "y") + value(a, "h"), value(b, "y") + value(b, "h"));
  const double both = std::max(0.0, right - left) * std::max(0.0, bottom - top);
  const double all = value(a, "w") * value(a, "h") + value(b, "w") * value(b, "h") - both;
  return all > 0 ? both / all : 0;
}

// Boxes of `other` that have a partner in `reference`: same class, IoU >= 0.9, each partner once.
int64_t partners(const Json& reference, const Json& other) {
  std::vector<bool> taken(reference.size());
  int64_t count = 0;
  for (const Json& box : other) {
    for (size_t i = 0; i < reference.size(); ++i) {
      if (taken[i] || reference[i].at("label") != box.at("label") || overlap(reference[i], box) < 0.9) continue;
      taken[i] = true;
      ++count;
      break;
    }
  }
  return count;
}

fs::path dump_folder(const RunFlags& flags, const std::string& engine) {
  return fs::path(flags.output) / folder_name(engine) / "outputs";
}

Result<Json> compare_outputs(const RunFlags& flags, const Json& reference, const Json& run) {
  const auto engine = run.at("engine").get<std::string>();
  const fs::path ours = dump_folder(flags, engine);
  const fs::path theirs = dump_folder(flags, reference.at("engine").get<std::string>());
  double max_abs = 0, max_rel = 0;
  for (int output = 0; fs::exists(theirs / fmt::format("output_{}.f32", output)); ++output) {
    const std::string name = fmt::format("output_{}.f32", output);
    STROBE_ASSIGN(const auto a, read_floats(theirs / name));
    STROBE_ASSIGN(const auto b, read_floats(ours / name));
    if (a.size() != b.size())
      return Error(ErrorKind::kCheckFailed,
                   fmt::format("{}: output {} has {} values, the reference {}", engine, output, b.size(), a.size()));
    double scale = 0, distance = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      scale = std::max(scale, std::abs(static_cast<double>(a[i])));
      // A NaN differs from everything, so it must not slip through a comparison.
      const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
      distance = std::isnan(d) ? INFINITY : std::max(distance, d);
    }
    max_abs = std::max(max_abs, distance);
    if (distance > 0) max_rel = std::max(max_rel, scale > 0 ? distance / scale : INFINITY);
  }
  STROBE_ASSIGN(const std::string their_text, read_file(reference.at("detections").get<std::string>()));
  STROBE_ASSIGN(const std::string our_text, read_file(run.at("detections").get<std::string>()));
  const Json their_frames = Json::parse(their_text), our_frames = Json::parse(our_text);
  int64_t boxes = 0, agreeing = 0;
  for (size_t i = 0; i < std::min(their_frames.size(), our_frames.size()); ++i) {
    const Json& a = their_frames[i].at("boxes");
    const Json& b = our_frames[i].at("boxes");
    boxes += static_cast<int64_t>(std::max(a.size(), b.size()));
    agreeing += partners(a, b);
  }
  // f32 sums in another order differ by about 1e-6 of the scale a layer; lower precisions are allowed theirs.
  const double allowed = flags.precision == "f32" ? 1e-3 : 5e-2;
  const double share = boxes > 0 ? static_cast<double>(agreeing) / static_cast<double>(boxes) : 1.0;
  return Json{{"engine", engine},
              {"max_abs", max_abs},
              {"max_rel", max_rel},
              {"allowed_rel", allowed},
              {"boxes", boxes},
              {"boxes_agree", share},
              {"agree", max_rel <= allowed && share >= 0.98}};
}

}  // namespace

CompareOutcome run_each_engine(const RunFlags& flags, const std::vector<std::string>& arguments,
                               const std::atomic<bool>& stop) {
  CompareOutcome outcome;
  for (const std::string& engine : flags.engines) {
    std::vector<std::string> all{"run"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const fs::path folder = fs::path(flags.output) / folder_name(engine);
    for (const std::string& own : {"--engine=" + engine, "--output=" + folder.string(), std::string("--format=json")})
      all.push_back(own);
    if (flags.verify) all.push_back("--dump-outputs=" + dump_folder(flags, engine).string());
    auto finished = run_self(all);
    if (!finished) {
      outcome.ended = std::move(finished).error().at("engine " + engine);
      break;
    }
    const Json printed = Json::parse(finished->output, nullptr, false);
    if (!printed.is_discarded() && printed.contains("runs"))
      for (const Json& run : printed["runs"]) outcome.runs.push_back(run);
    if (finished->exit_code != 0) {
      outcome.exit_code = finished->exit_code;  // its own line has told what happened
      break;
    }
    if (stop) break;
  }
  if (!outcome.runs.empty()) {
    const Json& first = outcome.runs.front();
    for (Json& run : outcome.runs) {
      const Json ours = run.value("end_to_end_fps", Json()), base = first.value("end_to_end_fps", Json());
      if (ours.is_number() && base.is_number() && base.get<double>() > 0)
        run["speed_up"] = ours.get<double>() / base.get<double>();
    }
    if (auto joined = join_outputs(flags, outcome.runs); !joined && outcome.ended)
      outcome.ended = std::move(joined).error();
  }
  return outcome;
}

Result<Json> verify_runs(const RunFlags& flags, const Json& runs) {
  Json report = {{"reference", runs.front().at("engine")}, {"engines", Json::array()}, {"agree", true}};
  for (size_t i = 1; i < runs.size(); ++i) {
    STROBE_ASSIGN(Json row, compare_outputs(flags, runs.front(), runs[i]));
    if (!row.at("agree").get<bool>()) report["agree"] = false;
    report["engines"].push_back(std::move(row));
  }
  return report;
}

}  // namespace strobe::app
