#include "tenants/transform_tree.h"

#include <iterator>

namespace strobe::tenants {

namespace {

// tf2 knows frames without the slash that older programs write before them.
std::string plain(const std::string& frame) {
  return frame.starts_with('/') ? frame.substr(1) : frame;
}

}  // namespace

void TransformTree::add(const sensors::ros::TfMessage& message, bool is_static) {
  for (const sensors::ros::TransformStamped& transform : message.transforms) {
    Link& link = links_[plain(transform.child_frame_id)];
    const std::string parent = plain(transform.header.frame_id);
    if (link.parent != parent || is_static || link.is_static) link.at.clear();
    link.parent = parent;
    link.is_static = is_static;
    sensors::Pose pose = transform.transform;
    pose.rotation = pose.rotation.normalised();
    link.at[is_static ? 0 : transform.header.stamp.ns()] = pose;
  }
}

sensors::Pose TransformTree::at_time(const Link& link, int64_t time_ns) {
  const auto after = link.at.lower_bound(time_ns);
  if (link.is_static || after == link.at.begin()) return link.at.begin()->second;
  if (after == link.at.end()) return link.at.rbegin()->second;
  if (after->first == time_ns) return after->second;
  const auto before = std::prev(after);
  const double share = static_cast<double>(time_ns - before->first) / static_cast<double>(after->first - before->first);
  const sensors::Pose &a = before->second, &b = after->second;
  return {a.translation * (1 - share) + b.translation * share, slerp(a.rotation, b.rotation, share)};
}

std::optional<TransformTree::Place> TransformTree::place(const std::string& frame, int64_t time_ns) const {
  Place place{plain(frame), {}};
  size_t steps = 0;
  for (auto link = links_.find(place.root); link != links_.end(); link = links_.find(place.root)) {
    if (++steps > links_.size()) return std::nullopt;
    place.pose = at_time(link->second, time_ns) * place.pose;
    place.root = link->second.parent;
  }
  if (steps > 0) return place;
  for (const auto& [child, link] : links_)
    if (link.parent == place.root) return place;
  return std::nullopt;
}

}  // namespace strobe::tenants
