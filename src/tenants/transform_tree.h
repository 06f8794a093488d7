// The transforms of a ROS 2 graph (tf2's messages), asked for any two frames at any time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "sensors/geometry.h"
#include "sensors/ros_messages.h"

namespace strobe::tenants {

class TransformTree {
 public:
  // is_static: of /tf_static, true at any time. A frame has one parent; a later message's counts.
  void add(const sensors::ros::TfMessage& message, bool is_static);

  // Where the frame stands in the root of its tree: transforms between two stamps are interpolated (linearly, by
  // slerp), before the first and after the last one those hold. Nothing for a frame that is in no transform, or one
  // whose parents go round in a circle.
  struct Place {
    std::string root;
    sensors::Pose pose;
  };
  std::optional<Place> place(const std::string& frame, int64_t time_ns) const;

 private:
  struct Link {
    std::string parent;
    std::map<int64_t, sensors::Pose> at;  // by stamp, ns; a static one: at 0 alone
    bool is_static = false;
  };
  static sensors::Pose at_time(const Link& link, int64_t time_ns);

  std::map<std::string, Link> links_;  // by child
};

}  // namespace strobe::tenants
