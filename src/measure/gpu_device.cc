#include "measure/gpu_device.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "engines/loader.h"
#include "gpu/device_watch.h"
#include "measure/child.h"

namespace strobe::measure {

namespace {

using Json = nlohmann::json;

constexpr double kTimeout_s = 120;  // a framework's first look at a GPU takes some

Result<Json> look(const std::vector<std::string>& engines, const std::string& device, int number) {
  for (const std::string& spec : engines) {
    STROBE_ASSIGN(const auto engine, engines::open_engine(spec));
    STROBE_TRY(engine->precisions_on(device));
  }
  Json found{{"facts", Json::object()}, {"free", -1}};
  const auto watch = gpu::DeviceWatch::open(number);
  if (!watch) return found;
  for (const auto& [key, value] : (*watch)->facts()) found["facts"][device + "." + key] = value;
  found["free"] = (*watch)->memory().free;
  return found;
}

}  // namespace

Result<std::optional<int>> gpu_number(const std::string& device) {
  if (device == "cpu") return std::optional<int>();
  constexpr std::string_view kCuda = "cuda:";
  constexpr int kMost = 127;
  int number = -1;
  const char* const end = device.data() + device.size();
  if (device.starts_with(kCuda) && device.size() > kCuda.size()) {
    const auto read = std::from_chars(device.data() + kCuda.size(), end, number);
    if (read.ec != std::errc() || read.ptr != end) number = -1;
  }
  if (number < 0 || number > kMost) return usage_error(fmt::format("device '{}': expected cpu or cuda:N", device));
  return std::optional<int>(number);
}

Result<GpuLook> look_at_gpu(const std::vector<std::string>& engines, const std::string& device,
                            const std::filesystem::path& log, const std::atomic<bool>* stop) {
  STROBE_ASSIGN(const std::optional<int> number, gpu_number(device));
  std::error_code ignored;
  const bool had_log = std::filesystem::exists(log, ignored);
  ChildOptions options;
  options.stop = stop;
  options.log = log;
  options.timeout_s = kTimeout_s;
  const auto work = [&]() -> std::string {
    const auto found = look(engines, device, *number);
    if (found) return found->dump(-1, ' ', false, Json::error_handler_t::replace);
    return Json{{"kind", static_cast<int>(found.error().kind())}, {"error", found.error().to_string()}}.dump();
  };
  STROBE_ASSIGN(const ChildEnd end, run_in_child(work, options));
  if (end.how == ChildEnd::How::kStopped) return Error(ErrorKind::kInterrupted, "interrupted; call it again to go on");
  if (end.how != ChildEnd::How::kAnswered)
    return engine_error(
        fmt::format("device {}: {}{}", device, end.to_string(), end.last_line.empty() ? "" : ": " + end.last_line));
  const Json answer = Json::parse(end.answer, nullptr, /*allow_exceptions=*/false);
  if (answer.contains("error")) {
    if (!had_log) std::filesystem::remove(log, ignored);
    return Error(static_cast<ErrorKind>(answer.at("kind").get<int>()), answer.at("error").get<std::string>());
  }
  GpuLook found;
  found.facts = answer.at("facts").get<std::map<std::string, std::string>>();
  found.free_bytes = answer.at("free");
  return found;
}

}  // namespace strobe::measure
