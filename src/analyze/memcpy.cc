#include "analyze/memcpy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "analyze/cells.h"
#include "analyze/device_work.h"
#include "analyze/notes.h"

namespace strobe::analyze {

using trace::RangeKind;
using trace::Timeline;

namespace {

constexpr uint8_t kSetDirection = 255;
constexpr uint8_t kPageable = 0;

struct Key {
  int32_t owner, device;
  uint8_t direction, source, target;
  auto operator<=>(const Key&) const = default;
};

struct Group {
  int64_t count = 0, total_ns = 0, max_ns = 0;
  int64_t bytes = 0, timed_bytes_ns = 0;  // the time of those whose size is known
  int64_t unknown_size = 0;
  Intervals intervals;
};

bool between_host_and_device(uint8_t direction) {
  return direction == 1 || direction == 2;
}

// By device: the time in which a kernel ran.
std::vector<Intervals> compute_time(const Timeline& timeline, const Devices& devices,
                                    const std::vector<DeviceRow>& rows) {
  std::vector<Intervals> compute(devices.count());
  for (const DeviceRow& row : rows) {
    const auto i = static_cast<size_t>(row.range);
    const RangeKind kind = timeline.ranges.kind[i];
    const int32_t device = devices.of_lane(timeline.ranges.lane[i]);
    if ((kind == RangeKind::kKernel || kind == RangeKind::kGraph) && device != trace::kNone)
      compute[static_cast<size_t>(device)].push_back({timeline.ranges.start_ns[i], timeline.ranges.end_ns[i]});
  }
  for (Intervals& intervals : compute) intervals = merged(std::move(intervals));
  return compute;
}

double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

const char* copy_kind_name(uint8_t copy_kind) {
  constexpr std::array kNames{
      "unknown",        "host to device",         "device to host",         "host to array",           "array to host",
      "array to array", "array to device",        "device to array",        "device to device",        "host to host",
      "peer to peer",   "unified host to device", "unified device to host", "unified device to device"};
  return copy_kind < kNames.size() ? kNames[copy_kind] : kNames[0];
}

const char* memory_kind_name(uint8_t memory_kind) {
  constexpr std::array kNames{"pageable", "pinned",        "device",         "array",
                              "managed",  "device static", "managed static", "unknown"};
  return memory_kind < kNames.size() ? kNames[memory_kind] : kNames[7];
}

Table memcpy_table(const Timeline& timeline, WorkBy by) {
  std::vector<Column> columns{{"device", "number of the device", 0},
                              {"direction", "from where to where; set: memory was filled"},
                              {"source", "kind of memory that was read"},
                              {"target", "kind of memory that was written"},
                              {"count", "how many", 0},
                              {"bytes", "of those whose size is known", 0},
                              {"total_ns", "sum of their times", 0},
                              {"mean_ns", "mean", 0},
                              {"max_ns", "longest", 0},
                              {"gb_per_s", "10^9 bytes a second while they ran, of those whose size is known"},
                              {"share", "of the time of all copies and sets"},
                              {"overlap_ns", "time in which one of them and a kernel ran on the same device", 0},
                              {"overlap_share", "of the time in which at least one of them ran"}};
  if (by != WorkBy::kNobody) columns.insert(columns.begin(), WorkOwners::column(by));
  Table table("Copies", std::move(columns));
  const WorkOwners owners(timeline, by);
  const Devices devices(timeline);
  const std::vector<DeviceRow> rows = device_rows(timeline);
  const std::vector<Intervals> compute = compute_time(timeline, devices, rows);
  std::map<Key, Group> groups;
  int64_t all_ns = 0, host_ns = 0, pageable_ns = 0, pageable_count = 0, unknown_kind = 0;
  for (const DeviceRow& row : rows) {
    const auto i = static_cast<size_t>(row.range);
    const RangeKind kind = timeline.ranges.kind[i];
    if (kind != RangeKind::kCopy && kind != RangeKind::kSet) continue;
    const trace::DeviceOp* op = row.op == trace::kNone ? nullptr : &timeline.device_ops[static_cast<size_t>(row.op)];
    const trace::DeviceOp nothing;
    const trace::DeviceOp& known = op ? *op : nothing;
    const bool is_set = kind == RangeKind::kSet;
    const Key key{owners.of(row), devices.of_lane(timeline.ranges.lane[i]), is_set ? kSetDirection : known.copy_kind,
                  is_set ? uint8_t{7} : known.source_kind, known.target_kind};
    Group& group = groups[key];
    const int64_t duration = timeline.ranges.end_ns[i] - timeline.ranges.start_ns[i];
    ++group.count;
    group.total_ns += duration;
    group.max_ns = std::max(group.max_ns, duration);
    group.intervals.push_back({timeline.ranges.start_ns[i], timeline.ranges.end_ns[i]});
    if (known.bytes >= 0) {
      group.bytes += known.bytes;
      group.timed_bytes_ns += duration;
    } else {
      ++group.unknown_size;
    }
    all_ns += duration;
    if (!between_host_and_device(key.direction)) continue;
    const uint8_t host_memory = key.direction == 1 ? key.source : key.target;
    host_ns += duration;
    if (host_memory == kPageable) {
      pageable_ns += duration;
      ++pageable_count;
    }
    unknown_kind += host_memory == 7 ? 1 : 0;
  }
  std::vector<std::pair<const Key*, Group*>> order;
  for (auto& [key, group] : groups) order.emplace_back(&key, &group);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second->total_ns > b.second->total_ns; });
  int64_t unknown_size = 0;
  for (auto& [key, group] : order) {
    const Intervals busy = merged(std::move(group->intervals));
    Cell device;
    int64_t overlap = 0;
    if (key->device != trace::kNone) {
      device = devices.number(static_cast<size_t>(key->device));
      overlap = length(intersection(busy, compute[static_cast<size_t>(key->device)]));
    }
    const bool is_set = key->direction == kSetDirection;
    unknown_size += group->unknown_size;
    Cell bytes, source;
    if (group->unknown_size < group->count) bytes = group->bytes;
    if (!is_set) source = std::string(memory_kind_name(key->source));
    std::vector<Cell> cells;
    if (by != WorkBy::kNobody) cells.push_back(owners.cell(key->owner));
    for (Cell& cell :
         std::vector<Cell>{device, std::string(is_set ? "set" : copy_kind_name(key->direction)), source,
                           std::string(memory_kind_name(key->target)), group->count, bytes, group->total_ns,
                           static_cast<double>(group->total_ns) / static_cast<double>(group->count), group->max_ns,
                           cell_if(group->timed_bytes_ns > 0 && group->unknown_size < group->count,
                                   ratio(group->bytes, group->timed_bytes_ns)),
                           cell_if(all_ns > 0, ratio(group->total_ns, all_ns)), overlap,
                           cell_if(length(busy) > 0, ratio(overlap, length(busy)))})
      cells.push_back(std::move(cell));
    table.add_row(std::move(cells));
  }
  if (groups.empty()) table.notes.push_back("no copy in this trace");
  uint64_t unowned = 0;
  for (const auto& [key, group] : groups) unowned += key.owner == trace::kNone ? static_cast<uint64_t>(group.count) : 0;
  WorkOwners::note_unowned(by, unowned, table);
  if (pageable_count > 0)
    table.notes.push_back(fmt::format("pageable memory: {} and {:.1f} % of the time of copies between host and device",
                                      count_of(static_cast<uint64_t>(pageable_count), "copy", "copies"),
                                      100 * ratio(pageable_ns, host_ns)));
  if (unknown_kind > 0)
    table.notes.push_back("the kind of host memory is not known of " +
                          count_of(static_cast<uint64_t>(unknown_kind), "copy", "copies"));
  if (unknown_size > 0)
    table.notes.push_back("the size is not known of " +
                          count_of(static_cast<uint64_t>(unknown_size), "operation", "operations"));
  note_losses(timeline, table);
  return table;
}

namespace {

// Of one owner on one device.
struct Share {
  int32_t owner, device;
  Intervals compute, copies;
};

Table overlap_by(const Timeline& timeline, WorkBy by) {
  Table table("Copies beside kernels", {WorkOwners::column(by),
                                        {"device", "number of the device", 0},
                                        {"compute_ns", "time in which at least one of its kernels ran", 0},
                                        {"copy_ns", "time in which at least one of its copies or sets ran", 0},
                                        {"both_ns", "time in which one of its copies and a kernel of anybody ran", 0},
                                        {"own_ns", "of that, beside a kernel of its own", 0},
                                        {"busy_ns", "time in which one of its kernels or copies ran", 0},
                                        {"copy_hidden", "both_ns / copy_ns"}});
  const Devices devices(timeline);
  const WorkOwners owners(timeline, by);
  const std::vector<DeviceRow> rows = device_rows(timeline);
  const std::vector<Intervals> compute = compute_time(timeline, devices, rows);
  std::map<std::pair<int32_t, int32_t>, Share> shares;
  uint64_t unowned = 0;
  for (const DeviceRow& row : rows) {
    const auto i = static_cast<size_t>(row.range);
    const RangeKind kind = timeline.ranges.kind[i];
    const int32_t device = devices.of_lane(timeline.ranges.lane[i]);
    if (device == trace::kNone) continue;
    const int32_t owner = owners.of(row);
    unowned += owner == trace::kNone ? 1 : 0;
    Share& share = shares.try_emplace({owner, device}, Share{owner, device, {}, {}}).first->second;
    const bool moves = kind == RangeKind::kCopy || kind == RangeKind::kSet;
    (moves ? share.copies : share.compute).push_back({timeline.ranges.start_ns[i], timeline.ranges.end_ns[i]});
  }
  std::vector<std::pair<int64_t, std::vector<Cell>>> found;  // by busy time
  for (auto& [key, share] : shares) {
    const Intervals own = merged(std::move(share.compute)), copies = merged(std::move(share.copies));
    const int64_t copy_ns = length(copies), own_ns = length(intersection(copies, own));
    const int64_t both_ns = length(intersection(copies, compute[static_cast<size_t>(share.device)]));
    const int64_t busy_ns = length(own) + copy_ns - own_ns;
    found.push_back({busy_ns,
                     {owners.cell(share.owner), devices.number(static_cast<size_t>(share.device)), length(own), copy_ns,
                      both_ns, own_ns, busy_ns, cell_if(copy_ns > 0, ratio(both_ns, copy_ns))}});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [busy, cells] : found) table.add_row(std::move(cells));
  WorkOwners::note_unowned(by, unowned, table);
  if (devices.count() == 0) table.notes.push_back("no device in this trace");
  note_losses(timeline, table);
  return table;
}

}  // namespace

Table memcpy_overlap(const Timeline& timeline, WorkBy by) {
  if (by != WorkBy::kNobody) return overlap_by(timeline, by);
  Table table("Copies beside kernels", {{"device", "number of the device", 0},
                                        {"compute_ns", "time in which at least one kernel ran", 0},
                                        {"copy_ns", "time in which at least one copy or set ran", 0},
                                        {"both_ns", "time in which both did", 0},
                                        {"busy_ns", "time in which either did", 0},
                                        {"copy_hidden", "both_ns / copy_ns"}});
  const Devices devices(timeline);
  const std::vector<DeviceRow> rows = device_rows(timeline);
  const std::vector<Intervals> compute = compute_time(timeline, devices, rows);
  std::vector<Intervals> copies(devices.count());
  for (const DeviceRow& row : rows) {
    const auto i = static_cast<size_t>(row.range);
    const RangeKind kind = timeline.ranges.kind[i];
    const int32_t device = devices.of_lane(timeline.ranges.lane[i]);
    if ((kind == RangeKind::kCopy || kind == RangeKind::kSet) && device != trace::kNone)
      copies[static_cast<size_t>(device)].push_back({timeline.ranges.start_ns[i], timeline.ranges.end_ns[i]});
  }
  for (size_t device = 0; device < devices.count(); ++device) {
    const Intervals copy = merged(std::move(copies[device]));
    const int64_t compute_ns = length(compute[device]), copy_ns = length(copy);
    const int64_t both = length(intersection(copy, compute[device]));
    table.add_row({devices.number(device), compute_ns, copy_ns, both, compute_ns + copy_ns - both,
                   cell_if(copy_ns > 0, ratio(both, copy_ns))});
  }
  if (devices.count() == 0) table.notes.push_back("no device in this trace");
  note_losses(timeline, table);
  return table;
}

}  // namespace strobe::analyze
