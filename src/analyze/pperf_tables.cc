#include "analyze/pperf_tables.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "analyze/tenant_trace.h"
#include "base/statistics.h"
#include "base/tenant_words.h"

namespace strobe::analyze {

using trace::Timeline;

namespace {

double ms(int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

std::string fact(const Timeline& timeline, const std::string& key) {
  const auto found = timeline.facts.find(key);
  return found == timeline.facts.end() ? std::string() : found->second;
}

WorkKind kind_of(const trace::DeviceOp& op, trace::RangeKind kind) {
  if (kind != trace::RangeKind::kCopy) return kind == trace::RangeKind::kSet ? WorkKind::kOtherCopy : WorkKind::kKernel;
  switch (op.copy_kind) {
    case 1:
      return WorkKind::kHostToDevice;
    case 2:
      return WorkKind::kDeviceToHost;
    case 8:
      return WorkKind::kDeviceToDevice;
    default:
      return WorkKind::kOtherCopy;
  }
}

std::string copy_name(WorkKind kind, trace::RangeKind range) {
  if (range == trace::RangeKind::kSet) return "memset";
  constexpr const char* kNames[] = {"", "host2device", "device2host", "device2device", "memcpy"};
  return kNames[static_cast<size_t>(kind)];
}

// How tenants are called in the tables: by their model, by their own name where several have it.
struct ModelNames {
  std::map<std::string, std::pair<std::string, std::string>> by_tenant;  // model, type

  explicit ModelNames(const Timeline& timeline) {
    std::map<std::string, int> times;
    std::string names = fact(timeline, tenant_words::kTenants);
    for (size_t begin = 0; begin < names.size();) {
      const size_t end = std::min(names.find(',', begin), names.size());
      const std::string tenant = names.substr(begin, end - begin), prefix = "tenant." + tenant + ".";
      std::string model = fact(timeline, prefix + "model_name");
      if (model.empty()) model = fact(timeline, prefix + "model");
      ++times[model];
      by_tenant[tenant] = {model, fact(timeline, prefix + "model_type")};
      begin = end + 1;
    }
    for (auto& [tenant, named] : by_tenant)
      if (named.first.empty() || times[named.first] > 1) named.first = tenant;
  }
};

// Tokens of frames by tenant's category and number.
std::map<std::pair<trace::StringId, int64_t>, trace::StringId> tokens_of(const Timeline& timeline) {
  std::map<std::pair<trace::StringId, int64_t>, trace::StringId> tokens;
  const auto& [ranges, arguments] = std::tie(timeline.ranges, timeline.arguments);
  const int64_t key = timeline.strings.find(tenant_words::kToken);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments.key[i] != key) continue;
    const auto range = static_cast<size_t>(arguments.range[i]);
    if (const auto* text = std::get_if<trace::StringId>(&arguments.value[i]))
      tokens[{ranges.category_of(range), ranges.frame[range]}] = *text;
  }
  return tokens;
}

std::vector<ModelWork> work_of_device(const Timeline& timeline) {
  const trace::Ranges& ranges = timeline.ranges;
  const ModelNames names(timeline);
  const auto tokens = tokens_of(timeline);
  const int64_t tenant_domain = timeline.strings.find(tenant_words::kTenantDomain);
  std::vector<ModelWork> all;
  for (const trace::DeviceOp& op : timeline.device_ops) {
    const auto row = static_cast<size_t>(op.range);
    const trace::RangeKind range_kind = ranges.kind[row];
    if (range_kind == trace::RangeKind::kSync) continue;
    ModelWork work;
    work.kind = kind_of(op, range_kind);
    work.name = work.kind == WorkKind::kKernel ? std::string(timeline.strings[ranges.name[row]])
                                               : copy_name(work.kind, range_kind);
    work.start_ns = ranges.start_ns[row];
    work.end_ns = ranges.end_ns[row];
    work.bytes = std::max<int64_t>(0, op.bytes);
    work.frame = ranges.frame[row];
    std::string tenant;
    int32_t lane = ranges.lane[row];
    if (op.launch != trace::kNone) lane = ranges.lane[static_cast<size_t>(op.launch)];
    for (int32_t around = op.launch; around != trace::kNone; around = ranges.parent[static_cast<size_t>(around)]) {
      const auto at = static_cast<size_t>(around);
      const bool speaks =
          ranges.kind[at] == trace::RangeKind::kAnnotation || ranges.kind[at] == trace::RangeKind::kOperator;
      if (speaks && work.layer.empty()) work.layer = timeline.strings[ranges.name[at]];
      if (ranges.domain_of(at) != tenant_domain) continue;
      tenant = timeline.strings[ranges.category_of(at)];
      work.frame = ranges.frame[at];
      if (const auto token = tokens.find({ranges.category_of(at), work.frame}); token != tokens.end())
        work.input = timeline.strings[token->second];
      break;
    }
    if (const auto named = names.by_tenant.find(tenant); named != names.by_tenant.end()) {
      work.model = named->second.first;
      work.model_type = named->second.second;
    } else {
      work.model = fact(timeline, "model");
      const int32_t pid = timeline.lanes[static_cast<size_t>(lane)].pid;
      for (const trace::Process& process : timeline.processes) {
        if (!work.model.empty() || process.pid != pid) continue;
        const std::string_view name = timeline.strings[process.name];
        work.model = (name.empty() ? "process" : std::string(name)) + " " + std::to_string(pid);
      }
    }
    if (work.input.empty() && work.frame != trace::kNoFrame) work.input = std::to_string(work.frame);
    all.push_back(std::move(work));
  }
  return all;
}

std::vector<ModelWork> work_of_tenants(const Timeline& timeline) {
  std::vector<ModelWork> all;
  const auto trace = tenant_trace(timeline);
  if (!trace) return all;
  const ModelNames names(timeline);
  for (const TenantOperation& operation : trace->operations) {
    if (operation.stage == trace::kNone || operation.resource == trace::kNone || operation.is_push) continue;
    const TenantResource& resource = trace->resources[static_cast<size_t>(operation.resource)];
    // Run queues are the threads' own, queues and locks no device.
    if (resource.kind == ResourceKind::kCores || resource.kind == ResourceKind::kQueue ||
        resource.name.starts_with("lock:"))
      continue;
    const TenantStage& stage = trace->stages[static_cast<size_t>(operation.stage)];
    const TenantFrame& frame = trace->frames[static_cast<size_t>(stage.frame)];
    ModelWork work;
    std::tie(work.model, work.model_type) = names.by_tenant.at(trace->tenants[static_cast<size_t>(stage.tenant)].name);
    work.input = frame.token != 0 ? std::string(timeline.strings[frame.token]) : std::to_string(frame.id);
    work.layer = timeline.strings[stage.name];
    work.name = timeline.strings[operation.name];
    work.frame = frame.id;
    work.start_ns = operation.start_ns;
    work.end_ns = operation.end_ns;
    all.push_back(std::move(work));
  }
  return all;
}

bool is_copy(const ModelWork& work) {
  return work.kind != WorkKind::kKernel && work.name != "memset";
}

// Mean of the intervals between starts; of four or more, those between their quartiles.
Cell mean_interval(const std::vector<int64_t>& starts) {
  std::vector<double> gaps;
  for (size_t i = 1; i < starts.size(); ++i) gaps.push_back(ms(starts[i] - starts[i - 1]));
  if (gaps.empty()) return {};
  constexpr size_t kFewestForMiddle = 4;
  if (gaps.size() < kFewestForMiddle) return mean(gaps);
  std::sort(gaps.begin(), gaps.end());
  const double low = quantile_sorted(gaps, 0.25), high = quantile_sorted(gaps, 0.75);
  std::vector<double> middle;
  for (const double gap : gaps)
    if (gap >= low && gap <= high) middle.push_back(gap);
  return middle.empty() ? mean(gaps) : mean(middle);
}

}  // namespace

std::vector<ModelWork> model_work(const Timeline& timeline) {
  std::vector<ModelWork> all = work_of_device(timeline);
  if (all.empty() && is_tenant_trace(timeline)) all = work_of_tenants(timeline);
  std::stable_sort(all.begin(), all.end(),
                   [](const ModelWork& a, const ModelWork& b) { return a.start_ns < b.start_ns; });
  return all;
}

std::vector<std::string> models_of(const std::vector<ModelWork>& work) {
  std::vector<std::string> models;
  for (const ModelWork& one : work)
    if (std::find(models.begin(), models.end(), one.model) == models.end()) models.push_back(one.model);
  return models;
}

Table kernel_timings(const std::vector<ModelWork>& work) {
  Table table("Kernel timings", {{"Input", "token of the input", 0},
                                 {"Model", "", 0},
                                 {"Layer", "", 0},
                                 {"Kernel Name", "", 0},
                                 {"Start Timestamp", "ns", 0},
                                 {"End Timestamp", "ns", 0},
                                 {"Elapsed Time", "ms", 6}});
  for (const ModelWork& one : work)
    table.add_row({one.input, one.model, one.layer, one.name, one.start_ns, one.end_ns, ms(one.end_ns - one.start_ns)});
  return table;
}

Table memcpy_intervals(const std::vector<ModelWork>& work) {
  Table table("Copies by model", {{"model_name", "", 0},
                                  {"total_host2device", "", 0},
                                  {"total_device2host", "", 0},
                                  {"mean_interval_host2device", "ms", 6},
                                  {"mean_interval_device2host", "ms", 6},
                                  {"mean_interval_all_memcpy", "ms", 6},
                                  {"total_memcpy_operations", "", 0},
                                  {"model_type", "", 0}});
  for (const std::string& model : models_of(work)) {
    std::vector<int64_t> to_device, to_host, all;
    std::string type;
    for (const ModelWork& one : work) {
      if (one.model != model || !is_copy(one)) continue;
      type = one.model_type;
      all.push_back(one.start_ns);
      if (one.kind == WorkKind::kHostToDevice) to_device.push_back(one.start_ns);
      if (one.kind == WorkKind::kDeviceToHost) to_host.push_back(one.start_ns);
    }
    if (all.empty()) continue;
    table.add_row({model, static_cast<int64_t>(to_device.size()), static_cast<int64_t>(to_host.size()),
                   mean_interval(to_device), mean_interval(to_host), mean_interval(all),
                   static_cast<int64_t>(all.size()), type});
  }
  return table;
}

Table e2e_kernels(const std::vector<ModelWork>& work, const std::string& primary, const std::string& contention) {
  Table table("Kernels of " + contention + " during frames of " + primary,
              {{"model", "the other one", 0},
               {"kernels_in_range", "its kernels and copies that overlap the frame's", 0},
               {"sum_e2e_time_in_range", "ms, of those", 6},
               {"memcpy_kernels_in_range", "its copies within 5 ms of one of the frame's", 0},
               {"unique_kernel_types", "", 0},
               {"kernel_types", "", 0},
               {"error", "", 0},
               {"input_token", "", 0},
               {"primary_e2e_time", "ms, first start to last end on the device", 6},
               {"primary_start_timestamp", "ns", 0},
               {"primary_end_timestamp", "ns", 0}});
  struct Window {
    const ModelWork* first = nullptr;
    int64_t start = INT64_MAX, end = INT64_MIN;
    std::vector<int64_t> copies;
  };
  std::map<int64_t, Window> windows;  // by frame; a frame without a number is no frame
  std::vector<const ModelWork*> others;
  int64_t longest = 0;
  for (const ModelWork& one : work) {
    if (one.model == contention) {
      others.push_back(&one);
      longest = std::max(longest, one.end_ns - one.start_ns);
    }
    if (one.model != primary || one.frame == trace::kNoFrame) continue;
    Window& window = windows[one.frame];
    if (window.first == nullptr) window.first = &one;
    window.start = std::min(window.start, one.start_ns);
    window.end = std::max(window.end, one.end_ns);
    if (is_copy(one)) window.copies.push_back(one.start_ns);
  }
  const auto from = [&](int64_t time) {
    return std::lower_bound(others.begin(), others.end(), time,
                            [](const ModelWork* one, int64_t at) { return one->start_ns < at; });
  };
  for (const auto& [frame, window] : windows) {
    int64_t kernels = 0, copies = 0;
    double sum = 0;
    std::set<std::string> types;
    for (auto other = from(window.start - longest); other != others.end() && (*other)->start_ns < window.end; ++other) {
      if ((*other)->end_ns <= window.start) continue;
      ++kernels;
      sum += ms((*other)->end_ns - (*other)->start_ns);
      types.insert((*other)->name);
    }
    std::set<const ModelWork*> near;
    for (const int64_t copy : window.copies)
      for (auto other = from(copy - kNearCopy_ns); other != others.end() && (*other)->start_ns <= copy + kNearCopy_ns;
           ++other)
        if (is_copy(**other)) near.insert(*other);
    copies = static_cast<int64_t>(near.size());
    std::string joined;
    for (const std::string& type : types) joined += (joined.empty() ? "" : ";") + type;
    table.add_row({contention, kernels, sum, copies, static_cast<int64_t>(types.size()), joined, std::string(),
                   window.first->input, ms(window.end - window.start), window.start, window.end});
  }
  return table;
}

std::map<int32_t, RangeDeviceTimes> range_device_times(const Timeline& timeline) {
  const trace::Ranges& ranges = timeline.ranges;
  struct Kernels {
    std::vector<std::pair<int64_t, int64_t>> intervals;
    int64_t internal = 0, external = 0;
  };
  std::map<int32_t, Kernels> by_range;
  for (const trace::DeviceOp& op : timeline.device_ops) {
    const auto row = static_cast<size_t>(op.range);
    const WorkKind kind = kind_of(op, ranges.kind[row]);
    const bool runs = ranges.kind[row] == trace::RangeKind::kKernel || ranges.kind[row] == trace::RangeKind::kGraph;
    for (int32_t around = op.launch; around != trace::kNone; around = ranges.parent[static_cast<size_t>(around)]) {
      Kernels& all = by_range[around];
      if (runs) all.intervals.emplace_back(ranges.start_ns[row], ranges.end_ns[row]);
      if (kind == WorkKind::kDeviceToDevice) all.internal += std::max<int64_t>(0, op.bytes);
      if (kind == WorkKind::kHostToDevice || kind == WorkKind::kDeviceToHost)
        all.external += std::max<int64_t>(0, op.bytes);
    }
  }
  std::map<int32_t, RangeDeviceTimes> out;
  for (auto& [range, all] : by_range) {
    RangeDeviceTimes times{.internal_bytes = all.internal, .external_bytes = all.external};
    std::sort(all.intervals.begin(), all.intervals.end());
    int64_t covered = INT64_MIN, busy = 0;
    for (const auto& [start, end] : all.intervals) {
      busy += std::max<int64_t>(0, end - std::max(start, covered));
      covered = std::max(covered, end);
    }
    if (!all.intervals.empty()) times.turnaround_ms = ms(covered - all.intervals.front().first);
    times.computation_ms = ms(busy);
    times.wait_ms = std::max(0.0, times.turnaround_ms - times.computation_ms);
    out[range] = times;
  }
  return out;
}

}  // namespace strobe::analyze
