#include "analyze/work_owners.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "analyze/notes.h"
#include "base/tenant_words.h"

namespace strobe::analyze {

namespace words = tenant_words;
using trace::kNone;
using trace::StringId;
using trace::Timeline;

namespace {

// Of all pipelines: those of several workers in one trace have facts of their own ("worker.NAME.pipeline.stages").
std::vector<uint8_t> is_stage_name(const Timeline& timeline) {
  std::vector<uint8_t> is(timeline.strings.size());
  for (const auto& [key, names] : timeline.facts) {
    if (!key.ends_with("pipeline.stages")) continue;
    for (size_t begin = 0; begin <= names.size();) {
      const size_t end = std::min(names.find(',', begin), names.size());
      if (const int64_t id = timeline.strings.find(names.substr(begin, end - begin)); id > 0)
        is[static_cast<size_t>(id)] = 1;
      begin = end + 1;
    }
  }
  return is;
}

// Each range's own, or that of the outermost one around it.
template <typename Own>
std::vector<int32_t> from_outside(const trace::Ranges& ranges, Own own) {
  std::vector<int32_t> found(ranges.size(), kNone);
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.parent[i] != kNone) found[i] = found[static_cast<size_t>(ranges.parent[i])];
    if (found[i] == kNone && ranges.kind[i] == trace::RangeKind::kAnnotation) found[i] = own(i);
  }
  return found;
}

}  // namespace

Result<WorkBy> parse_work_by(const std::string& name) {
  if (name.empty()) return WorkBy::kNobody;
  if (name == "stage") return WorkBy::kStage;
  if (name == "tenant") return WorkBy::kTenant;
  return usage_error("--by " + name + ": expected stage or tenant");
}

WorkOwners::WorkOwners(const Timeline& timeline, WorkBy by) : timeline_(timeline) {
  if (by == WorkBy::kStage) find_stages();
  if (by == WorkBy::kTenant) find_tenants();
}

int32_t WorkOwners::named(const std::string& name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<int32_t>(found - names_.begin());
  names_.push_back(name);
  return static_cast<int32_t>(names_.size() - 1);
}

void WorkOwners::find_stages() {
  const trace::Ranges& ranges = timeline_.ranges;
  const std::vector<uint8_t> is_name = is_stage_name(timeline_);
  const int64_t domain = timeline_.strings.find(words::kTenantDomain);
  std::vector<int32_t> of_name(timeline_.strings.size(), kNone);
  of_range_ = from_outside(ranges, [&](size_t i) {
    const StringId name = ranges.name[i];
    const bool of_tenant = domain != kNone && ranges.domain_of(i) == domain;
    if (!of_tenant && is_name[name] == 0) return int32_t{kNone};
    if (of_name[name] == kNone) of_name[name] = named(std::string(timeline_.strings[name]));
    return of_name[name];
  });
}

void WorkOwners::find_tenants() {
  const trace::Ranges& ranges = timeline_.ranges;
  const int64_t domain = timeline_.strings.find(words::kTenantDomain);
  std::vector<int32_t> of_category(timeline_.strings.size(), kNone);
  of_range_ = from_outside(ranges, [&](size_t i) {
    if (domain == kNone || ranges.domain_of(i) != domain) return int32_t{kNone};
    int32_t& tenant = of_category[ranges.category_of(i)];
    if (tenant == kNone) tenant = named(std::string(timeline_.strings[ranges.category_of(i)]));
    return tenant;
  });
  std::map<int32_t, std::set<std::string>> tenants;  // by process
  const std::string begin = words::kTenantFact, end = ".pid";
  for (auto it = timeline_.facts.lower_bound(begin); it != timeline_.facts.end() && it->first.starts_with(begin);
       ++it) {
    const auto& [key, value] = *it;
    int32_t pid = 0;
    if (!key.ends_with(end) || key.size() <= begin.size() + end.size()) continue;
    if (std::from_chars(value.data(), value.data() + value.size(), pid).ec != std::errc()) continue;
    tenants[pid].insert(key.substr(begin.size(), key.size() - begin.size() - end.size()));
  }
  std::map<StringId, int> processes;  // by name
  for (const trace::Process& process : timeline_.processes) ++processes[process.name];
  const auto text_of = [&](int32_t pid) -> std::string {
    if (const auto found = tenants.find(pid); found != tenants.end() && found->second.size() == 1)
      return *found->second.begin();
    const auto process = std::find_if(timeline_.processes.begin(), timeline_.processes.end(),
                                      [pid](const trace::Process& one) { return one.pid == pid; });
    const std::string number = std::to_string(pid);
    if (process == timeline_.processes.end() || timeline_.strings[process->name].empty()) return "process " + number;
    const std::string name(timeline_.strings[process->name]);
    return processes[process->name] == 1 ? name : name + " " + number;
  };
  std::map<int32_t, int32_t> of_process;
  for (const trace::Lane& lane : timeline_.lanes) {
    const auto [found, is_new] = of_process.try_emplace(lane.pid, kNone);
    if (is_new) found->second = named(text_of(lane.pid));
    of_lane_.push_back(found->second);
  }
}

int32_t WorkOwners::of(const DeviceRow& row) const {
  if (row.launch != kNone && !of_range_.empty())
    if (const int32_t owner = of_range_[static_cast<size_t>(row.launch)]; owner != kNone) return owner;
  if (of_lane_.empty()) return kNone;
  return of_lane_[static_cast<size_t>(timeline_.ranges.lane[static_cast<size_t>(row.range)])];
}

Cell WorkOwners::cell(int32_t owner) const {
  return owner == kNone ? Cell() : Cell(name(owner));
}

void WorkOwners::note_unowned(WorkBy by, uint64_t operations, Table& table) {
  if (by == WorkBy::kStage && operations > 0)
    table.notes.push_back(count_of(operations, "operation belongs", "operations belong") +
                          " to no stage: warm-up, what runs alone after the run, or the call is not in the trace");
}

Column WorkOwners::column(WorkBy by) {
  if (by == WorkBy::kStage) return {"stage", "stage around the launch call; missing: none, or the call is not known"};
  return {"tenant", "tenant that asked for it; work outside of tenants' frames: the process"};
}

}  // namespace strobe::analyze
