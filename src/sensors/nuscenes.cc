#include "sensors/nuscenes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/suggest.h"

namespace strobe::sensors {

using namespace nuscenes;

namespace {

// Annotations further apart in time than this many seconds a step say nothing about the velocity.
constexpr double kMaxStepSeconds = 1.5;

}  // namespace

Result<uint32_t> NuScenes::find_scene(std::string_view name) const {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < scenes.size(); ++i) {
    if (scenes[i].name == name || scenes[i].token == name) return i;
    names.emplace_back(scenes[i].name);
  }
  return not_found(fmt::format("{}: no scene \"{}\"; {}", (root_ / version_).string(), name, suggest(name, names)));
}

std::vector<uint32_t> NuScenes::samples_of(uint32_t scene) const {
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < samples.size(); ++i)
    if (samples[i].scene == scene) found.push_back(i);
  std::ranges::stable_sort(found, {}, [this](uint32_t i) { return samples[i].timestamp_us; });
  return found;
}

Result<std::vector<uint32_t>> NuScenes::data_of(uint32_t scene, const std::vector<std::string>& channels,
                                                bool sweeps) const {
  std::vector<uint32_t> found;
  std::set<std::string> present;
  for (uint32_t i = 0; i < sample_data.size(); ++i) {
    const SampleData& row = sample_data[i];
    if (samples[row.sample].scene != scene || (!sweeps && !row.is_key_frame)) continue;
    const std::string_view channel = sensor_of(row).channel;
    present.emplace(channel);
    if (channels.empty() || std::ranges::find(channels, channel) != channels.end()) found.push_back(i);
  }
  for (const std::string& channel : channels)
    if (!present.contains(channel))
      return not_found(fmt::format("{}: no channel \"{}\"; {}", scenes[scene].name, channel,
                                   suggest(channel, {present.begin(), present.end()})));
  std::ranges::stable_sort(found, {}, [this](uint32_t i) { return sample_data[i].timestamp_us; });
  return found;
}

std::span<const uint32_t> NuScenes::annotations_of(uint32_t sample) const {
  return std::span(annotations_by_sample_)
      .subspan(annotation_starts_[sample], annotation_starts_[sample + 1] - annotation_starts_[sample]);
}

uint32_t NuScenes::key_data(uint32_t sample, std::string_view channel) const {
  // The last one, should there be several.
  for (uint32_t i = key_data_starts_[sample + 1]; i > key_data_starts_[sample]; --i) {
    const uint32_t row = key_data_by_sample_[i - 1];
    if (sensor_of(sample_data[row]).channel == channel) return row;
  }
  return kNone;
}

Vector3 NuScenes::velocity(uint32_t annotation) const {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const Annotation& current = annotations[annotation];
  const bool has_previous = current.previous != kNone, has_next = current.next != kNone;
  const Annotation& first = has_previous ? annotations[current.previous] : current;
  const Annotation& last = has_next ? annotations[current.next] : current;
  // As floats of seconds, so that the last bit is that of everybody else's figures.
  const double seconds = 1e-6 * static_cast<double>(samples[last.sample].timestamp_us) -
                         1e-6 * static_cast<double>(samples[first.sample].timestamp_us);
  if ((!has_previous && !has_next) || seconds > (has_previous && has_next ? 2 * kMaxStepSeconds : kMaxStepSeconds))
    return {kNan, kNan, kNan};
  const Vector3 way = last.centre - first.centre;
  return {way.x / seconds, way.y / seconds, way.z / seconds};
}

std::vector<MovedBox> NuScenes::between(uint32_t before, uint32_t after, int64_t time_us, bool keep_new) const {
  const int64_t t0 = samples[before].timestamp_us, t1 = samples[after].timestamp_us;
  const int64_t t = std::clamp(time_us, t0, std::max(t0, t1));
  const double share = t1 > t0 ? static_cast<double>(t - t0) / static_cast<double>(t1 - t0) : 1;
  std::vector<MovedBox> out;
  for (const uint32_t row : annotations_of(after)) {
    const Annotation& now = annotations[row];
    uint32_t old = kNone;
    for (const uint32_t candidate : annotations_of(before))
      if (annotations[candidate].instance == now.instance) old = candidate;
    if (old == kNone && !keep_new) continue;
    Box box = now.box();
    if (old != kNone) {
      const Annotation& then = annotations[old];
      box.pose.translation = then.centre + (now.centre - then.centre) * share;
      box.pose.rotation = slerp(then.rotation, now.rotation, share);
    }
    out.push_back({row, box});
  }
  return out;
}

std::vector<MovedBox> NuScenes::boxes_at(const SampleData& data) const {
  const Sample& sample = samples[data.sample];
  if (!data.is_key_frame && sample.previous != kNone)
    return between(sample.previous, data.sample, data.timestamp_us, true);
  std::vector<MovedBox> out;
  for (const uint32_t row : annotations_of(data.sample)) out.push_back({row, annotations[row].box()});
  return out;
}

std::vector<MovedBox> NuScenes::boxes_at(uint32_t scene, int64_t time_us) const {
  const std::vector<uint32_t> frames = samples_of(scene);
  if (frames.empty()) return {};
  const auto after =
      std::ranges::upper_bound(frames, time_us, {}, [this](uint32_t i) { return samples[i].timestamp_us; });
  if (after != frames.begin() && after != frames.end()) return between(*(after - 1), *after, time_us, false);
  std::vector<MovedBox> out;
  for (const uint32_t row : annotations_of(after == frames.begin() ? frames.front() : frames.back()))
    out.push_back({row, annotations[row].box()});
  return out;
}

}  // namespace strobe::sensors
