#include "sensors/dds.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "base/plugin.h"
#include "sensors/dds_backend.h"

namespace strobe::sensors {

namespace {

constexpr const char* kPlugin = "libstrobe_dds.so";

// As void*, which strobe_dds_join_fn is to be made of.
Result<void*> open_plugin() {
  auto abi = load_plugin(kPlugin, "strobe_dds_abi");
  if (!abi && abi.error().kind() == ErrorKind::kNotFound) {
    return unsupported("DDS is not built in: install libfastrtps-dev libfastcdr-dev and build again (" +
                       abi.error().to_string() + ")");
  }
  if (!abi) {
    return unsupported("DDS cannot be used, Fast DDS is missing (apt install libfastrtps2.9): " +
                       abi.error().to_string());
  }
  if (const int found = reinterpret_cast<strobe_dds_abi_fn>(*abi)(); found != kDdsAbi) {
    return unsupported(fmt::format("{} is of another build: interface {}, expected {}", kPlugin, found, kDdsAbi));
  }
  return load_plugin(kPlugin, "strobe_dds_join");
}

}  // namespace

Result<int> dds_domain(const DdsOptions& options) {
  constexpr int kLast = 232;  // of which the ports still fit into 16 bits
  if (options.domain) {
    if (*options.domain < 0 || *options.domain > kLast)
      return usage_error(fmt::format("domain {}: expected 0 to {}", *options.domain, kLast));
    return *options.domain;
  }
  const char* text = std::getenv("ROS_DOMAIN_ID");
  if (text == nullptr || *text == '\0') return 0;
  const std::string_view view(text);
  int domain = -1;
  const auto [end, failed] = std::from_chars(view.data(), view.data() + view.size(), domain);
  if (failed != std::errc() || end != view.data() + view.size() || domain < 0 || domain > kLast)
    return usage_error(fmt::format("ROS_DOMAIN_ID '{}': expected 0 to {}", view, kLast));
  return domain;
}

Result<std::shared_ptr<DdsParticipant>> join_dds(const DdsOptions& options) {
  static const Result<void*> join = open_plugin();
  if (!join) return join.error();
  DdsSettings settings;
  STROBE_ASSIGN(settings.domain, dds_domain(options));
  settings.transport = options.transport;
  const char* local = std::getenv("ROS_LOCALHOST_ONLY");
  settings.this_host_only = options.this_host_only.value_or(local != nullptr && std::string_view(local) == "1");
  const std::unique_ptr<Result<std::shared_ptr<DdsParticipant>>> joined(
      reinterpret_cast<strobe_dds_join_fn>(*join)(&settings));
  return std::move(*joined);
}

}  // namespace strobe::sensors
