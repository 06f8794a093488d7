#include "simulate/write_trace.h"

#include <algorithm>
#include <cmath>

#include "base/tenant_words.h"
#include "simulate/laws.h"

namespace strobe::simulate {

namespace words = tenant_words;
using trace::kNone;
using trace::StringId;
using trace::Timeline;

namespace {

// Stamps before 0 would come of noise.
constexpr double kLeadNs = 1e6;

class Writer {
 public:
  Writer(const Scenario& scenario, const Log& log)
      : scenario_(scenario), log_(log), random_(mixed(scenario.seed, text_seed("recorder"))) {}

  Timeline write() {
    add_facts();
    add_lanes();
    order_operations();
    add_stages();
    add_frames();
    add_others();
    add_flows();
    add_counters();
    out_.duration_ns = latest_;
    out_.finish();
    return std::move(out_);
  }

 private:
  void add_facts();
  void add_lanes();
  void order_operations();
  void add_stages();
  void add_operation(const OperationLog& operation, const std::vector<int64_t>& stamps, int32_t lane);
  void add_frames();
  void add_others();
  void add_flows();
  void add_counters();
  std::string resource_fact(const Resource& resource) const;

  int64_t stamp(double time, int32_t tenant) {
    double noisy = time + kLeadNs;
    const Damage& damage = scenario_.damage;
    if (damage.sigma_ns > 0) noisy += damage.sigma_ns * random_.normal();
    if (tenant >= 0 && tenant == damage.wrong_tenant) noisy += damage.offset_ns;
    const int64_t whole = std::max<int64_t>(0, std::llround(noisy));
    latest_ = std::max(latest_, whole);
    return whole;
  }
  StringId word(const std::string& text) { return out_.strings.intern(text); }
  int32_t range(StringId name, int32_t lane, int64_t start, int64_t end, int64_t frame, bool is_async, bool is_open,
                StringId category, StringId domain) {
    trace::Ranges& ranges = out_.ranges;
    ranges.name.push_back(name);
    ranges.lane.push_back(lane);
    ranges.start_ns.push_back(start);
    ranges.end_ns.push_back(end);
    ranges.frame.push_back(frame);
    ranges.parent.push_back(kNone);
    ranges.is_async.push_back(is_async ? 1 : 0);
    ranges.open.push_back(is_open ? 1 : 0);
    ranges.category.push_back(category);
    ranges.domain.push_back(domain);
    return static_cast<int32_t>(ranges.size() - 1);
  }
  void argument(int32_t row, StringId key, std::variant<int64_t, double, StringId> value) {
    out_.arguments.range.push_back(row);
    out_.arguments.key.push_back(key);
    out_.arguments.value.push_back(value);
  }
  void mark(const char* name, int32_t tenant, int64_t time, int64_t frame, const char* reason) {
    trace::Marks& marks = out_.marks;
    marks.time_ns.push_back(time);
    marks.name.push_back(word(name));
    marks.lane.push_back(first_lane_[static_cast<size_t>(tenant)]);
    marks.frame.push_back(frame);
    marks.category.push_back(tenants_[static_cast<size_t>(tenant)]);
    marks.domain.push_back(tenant_domain_);
    if (!reason) return;
    out_.mark_arguments.mark.push_back(static_cast<int32_t>(marks.size() - 1));
    out_.mark_arguments.key.push_back(word(words::kReason));
    out_.mark_arguments.value.emplace_back(word(reason));
  }

  const Scenario& scenario_;
  const Log& log_;
  Random random_;
  Timeline out_;
  int64_t latest_ = 0;
  std::vector<StringId> tenants_, resources_, classes_;
  std::vector<int32_t> first_lane_;
  StringId tenant_domain_ = 0, operation_domain_ = 0;
  std::vector<uint32_t> by_stage_, first_;  // operations of each stage, in time order
  std::vector<int32_t> stage_rows_;
  std::vector<int64_t> stage_starts_, stage_ends_;
};

std::string Writer::resource_fact(const Resource& resource) const {
  const std::string count = std::to_string(resource.capacity);
  if (resource.kind == Resource::Kind::kShared) return "shared";
  if (resource.kind == Resource::Kind::kCores) return "cores=" + count;
  std::string text = "exclusive=" + count + ";policy=" + resource.policy + ";unit=" +
                     (!resource.by_stage   ? "layer"
                      : resource.gives_way ? "give-way"
                                           : "stage");
  if (resource.quantum_ns > 0) text += ";quantum_ns=" + std::to_string(std::llround(resource.quantum_ns));
  if (resource.switch_ns > 0) text += ";switch_ns=" + std::to_string(std::llround(resource.switch_ns));
  return text;
}

std::string decimal(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

void Writer::add_facts() {
  auto& facts = out_.facts;
  std::string names;
  for (const Tenant& tenant : scenario_.tenants) names += (names.empty() ? "" : ",") + tenant.name;
  facts[words::kTenants] = names;
  facts[words::kPolicy] = scenario_.policy;
  facts[words::kIsolation] = "simulated";
  facts[words::kClockSigmaNs] = decimal(scenario_.damage.sigma_ns);
  facts["simulate.seed"] = std::to_string(scenario_.seed);
  for (const Resource& resource : scenario_.resources)
    facts[words::kResourceFact + resource.name] = resource_fact(resource);
  for (const Tenant& tenant : scenario_.tenants) {
    const std::string head = words::kTenantFact + tenant.name + ".";
    facts[head + "priority"] = decimal(tenant.priority);
    constexpr double kSecond = 1e9, kMs = 1e6;
    if (tenant.arrivals.kind != Arrivals::Kind::kTrace)
      facts[head + "rate_hz"] =
          decimal(kSecond / tenant.arrivals.period_ns * static_cast<double>(tenant.arrivals.burst));
    if (tenant.deadline_ns > 0) facts[head + "deadline_ms"] = decimal(tenant.deadline_ns / kMs);
    if (tenant.queue_depth > 0) facts[head + "queue_depth"] = std::to_string(tenant.queue_depth);
    facts[head + "drop"] = tenant.drop == Drop::kNever ? "never" : tenant.drop == Drop::kOldest ? "oldest" : "newest";
    if (tenant.cpu >= 0) facts[head + "cpu"] = scenario_.resources[static_cast<size_t>(tenant.cpu)].name;
    if (!tenant.model.empty()) facts[head + "model"] = tenant.model;
    if (!tenant.model_type.empty()) facts[head + "model_type"] = tenant.model_type;
    facts[head + "threads"] = std::to_string(tenant.workers);
  }
  for (size_t i = 0; i < scenario_.interference.size(); ++i)
    for (size_t k = 0; k < scenario_.interference.size(); ++k)
      facts[words::kInterferenceFact + scenario_.classes[i] + "." + scenario_.classes[k]] =
          decimal(scenario_.interference[i][k]);
  if (scenario_.saturation > 0) facts[words::kSaturation] = decimal(scenario_.saturation);
}

void Writer::add_lanes() {
  tenant_domain_ = word(words::kTenantDomain);
  operation_domain_ = word(words::kOperationDomain);
  for (const std::string& name : resource_names(scenario_)) resources_.push_back(word(name));
  for (const std::string& name : scenario_.classes) classes_.push_back(word(name));
  constexpr int32_t kFirstPid = 100;
  out_.lanes.push_back({trace::Lane::Kind::kThread, kFirstPid - 1, kFirstPid - 1, word("coordinator"), kNone, kNone});
  out_.processes.push_back({kFirstPid - 1, word("coordinator")});
  const auto lead = static_cast<int64_t>(kLeadNs);
  range(word(words::kWindow), 0, lead / 2, lead + std::llround(scenario_.duration_ns), trace::kNoFrame, false, false, 0,
        word(words::kWindowDomain));
  out_.lanes.resize(static_cast<size_t>(log_.workers) + 1);
  for (size_t i = 0; i < scenario_.tenants.size(); ++i) {
    const Tenant& tenant = scenario_.tenants[i];
    tenants_.push_back(word(tenant.name));
    const int32_t pid = kFirstPid + static_cast<int32_t>(i);
    out_.processes.push_back({pid, tenants_.back()});
    first_lane_.push_back(log_.worker_of[i].front() + 1);
    for (size_t k = 0; k < log_.worker_of[i].size(); ++k)
      out_.lanes[static_cast<size_t>(log_.worker_of[i][k]) + 1] = {trace::Lane::Kind::kThread,
                                                                   pid,
                                                                   pid * 100 + static_cast<int32_t>(k),
                                                                   word(tenant.name + " " + std::to_string(k)),
                                                                   kNone,
                                                                   kNone};
  }
}

void Writer::order_operations() {
  first_.assign(log_.stages.size() + 1, 0);
  for (const OperationLog& operation : log_.operations) ++first_[static_cast<size_t>(operation.stage) + 1];
  for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
  by_stage_.resize(log_.operations.size());
  for (size_t i = 0; i < log_.operations.size(); ++i)
    by_stage_[next[static_cast<size_t>(log_.operations[i].stage)]++] = static_cast<uint32_t>(i);
}

// stamps: ready, start, end.
void Writer::add_operation(const OperationLog& operation, const std::vector<int64_t>& stamps, int32_t lane) {
  const StageLog& stage = log_.stages[static_cast<size_t>(operation.stage)];
  const FrameLog& frame = log_.frames[static_cast<size_t>(stage.frame)];
  const StageLaw& law = scenario_.tenants[static_cast<size_t>(frame.tenant)].stages[static_cast<size_t>(stage.law)];
  const bool is_push = operation.law < 0;
  const OperationLaw* what = is_push ? nullptr : &law.operations[static_cast<size_t>(operation.law)];
  const int32_t row =
      range(word(is_push ? words::kPush : what->name), lane, stamps[1], stamps[2], frame.id, false, false,
            is_push ? word("cpu") : classes_[static_cast<size_t>(what->kind)], operation_domain_);
  argument(row, word(words::kResource), resources_[static_cast<size_t>(operation.resource)]);
  if (stamps[1] > stamps[0]) argument(row, word(words::kWaitedNs), stamps[1] - stamps[0]);
  if (operation.slice > 0) argument(row, word(words::kSlice), int64_t{operation.slice});
  if (is_push || scenario_.resources[static_cast<size_t>(operation.resource)].kind != Resource::Kind::kCores) return;
  argument(row, word(words::kCpuNs), int64_t{std::llround(operation.intrinsic_ns)});
  argument(row, word(words::kRunnableNs), int64_t{std::llround(operation.runnable_ns)});
}

void Writer::add_stages() {
  stage_rows_.assign(log_.stages.size(), kNone);
  stage_starts_.assign(log_.stages.size(), 0);
  stage_ends_.assign(log_.stages.size(), 0);
  // A thread reads its clock once for what happens at one instant, and its clock does not run backwards.
  struct Clock {
    double time = -1;
    int64_t stamp = 0;
  };
  std::vector<Clock> clocks(static_cast<size_t>(log_.workers));
  std::vector<int64_t> stamps(3);
  for (size_t i = 0; i < log_.stages.size(); ++i) {
    const StageLog& stage = log_.stages[i];
    const FrameLog& frame = log_.frames[static_cast<size_t>(stage.frame)];
    if (stage.end_ns <= 0) continue;  // was never done
    Clock& clock = clocks[static_cast<size_t>(stage.worker)];
    const auto read = [&](double time) {
      if (time != clock.time) clock = {time, std::max(clock.stamp, stamp(time, frame.tenant))};
      return clock.stamp;
    };
    const StageLaw& law = scenario_.tenants[static_cast<size_t>(frame.tenant)].stages[static_cast<size_t>(stage.law)];
    const int32_t lane = stage.worker + 1;
    stage_starts_[i] = read(stage.start_ns);
    stage_rows_[i] = range(word(law.name), lane, stage_starts_[i], 0, frame.id, false, false,
                           tenants_[static_cast<size_t>(frame.tenant)], tenant_domain_);
    for (uint32_t k = first_[i]; k < first_[i + 1]; ++k) {
      const OperationLog& operation = log_.operations[by_stage_[k]];
      stamps[0] = read(operation.ready_ns);
      stamps[1] = read(operation.start_ns);
      stamps[2] = read(operation.end_ns);
      if (scenario_.damage.lost > 0 && random_.uniform() < scenario_.damage.lost) {
        if (scenario_.damage.says_losses) ++out_.losses.dropped_records;
        continue;
      }
      add_operation(operation, stamps, lane);
    }
    stage_ends_[i] = read(stage.end_ns);
    out_.ranges.end_ns[static_cast<size_t>(stage_rows_[i])] = stage_ends_[i];
  }
}

void Writer::add_frames() {
  for (const FrameLog& frame : log_.frames) {
    const bool is_lost = frame.outcome == FrameLog::Outcome::kLost;
    const int64_t start = stamp(frame.arrival_ns, frame.tenant);
    int64_t end = is_lost ? latest_ : stamp(frame.done_ns, frame.tenant);
    // The thread that ends the last stage ends the frame.
    if (frame.last >= 0) end = stage_ends_[static_cast<size_t>(frame.last)];
    const int32_t row =
        range(word(words::kFrame), first_lane_[static_cast<size_t>(frame.tenant)], start, std::max(start, end),
              frame.id, true, is_lost, tenants_[static_cast<size_t>(frame.tenant)], tenant_domain_);
    const int64_t comm = std::llround(frame.arrival_ns - frame.stamp_ns);
    if (comm > 0) argument(row, word(words::kCommNs), comm);
    const double deadline = scenario_.tenants[static_cast<size_t>(frame.tenant)].deadline_ns;
    if (deadline > 0) argument(row, word(words::kDeadlineNs), int64_t{std::llround(deadline)});
    if (is_lost) continue;
    const bool finished = frame.outcome == FrameLog::Outcome::kFinished;
    argument(row, word(words::kOutcome), word(finished ? words::kFinished : words::kDropped));
    if (!finished)
      mark(words::kDrop, frame.tenant, end, frame.id,
           frame.outcome == FrameLog::Outcome::kDroppedOldest ? "oldest" : "newest");
  }
  for (const NotSent& missing : log_.not_sent)
    mark(words::kNotSent, missing.tenant, stamp(missing.stamp_ns, missing.tenant), missing.id, nullptr);
}

void Writer::add_others() {
  if (log_.others.empty()) return;
  // Loads of one resource run at the same time: a lane each, and asynchronous, so that they need not nest.
  for (const OtherLog& other : log_.others) {
    if (!other.is_recorded) continue;
    const bool is_recorder = other.by == recorder_of(scenario_);
    const int32_t row = range(word(is_recorder ? "drain" : "load"), 0, stamp(other.start_ns, -1),
                              stamp(other.end_ns, -1), trace::kNoFrame, true, false,
                              word(is_recorder ? words::kRecorder : words::kSystem), word(words::kHolderDomain));
    argument(row, word(words::kResource), resources_[static_cast<size_t>(other.resource)]);
  }
}

void Writer::add_flows() {
  for (size_t i = 0; i < log_.stages.size(); ++i) {
    if (log_.stages[i].cause < 0 || stage_rows_[i] == kNone) continue;
    const FrameLog& frame = log_.frames[static_cast<size_t>(log_.stages[i].frame)];
    const StageLaw& law =
        scenario_.tenants[static_cast<size_t>(frame.tenant)].stages[static_cast<size_t>(log_.stages[i].law)];
    // All that it came after, not only the last of them.
    for (const int32_t before : law.after) {
      const int32_t from = frame.stages[static_cast<size_t>(before)];
      if (from < 0 || stage_rows_[static_cast<size_t>(from)] == kNone) continue;
      if (log_.stages[static_cast<size_t>(from)].worker == log_.stages[i].worker) continue;
      if (scenario_.damage.missing_flows > 0 && random_.uniform() < scenario_.damage.missing_flows) continue;
      trace::Flows& flows = out_.flows;
      flows.name.push_back(word("frame"));
      flows.from_ns.push_back(stage_ends_[static_cast<size_t>(from)]);
      flows.to_ns.push_back(stage_starts_[i]);
      flows.from_range.push_back(stage_rows_[static_cast<size_t>(from)]);
      flows.to_range.push_back(stage_rows_[i]);
      flows.from_lane.push_back(log_.stages[static_cast<size_t>(from)].worker + 1);
      flows.to_lane.push_back(log_.stages[i].worker + 1);
    }
  }
}

void Writer::add_counters() {
  const auto add = [this](const std::string& name, int32_t pid, double time, double value) {
    out_.counters.time_ns.push_back(std::llround(time + kLeadNs));
    out_.counters.name.push_back(word(name));
    out_.counters.pid.push_back(pid);
    out_.counters.value.push_back(value);
  };
  const int32_t coordinator = out_.processes.front().pid;
  for (const Slowdown& slowdown : scenario_.slowdowns) {
    const std::string name = "clock:" + scenario_.resources[static_cast<size_t>(slowdown.resource)].name;
    add(name, coordinator, slowdown.from_ns, 1 / slowdown.factor);
    add(name, coordinator, slowdown.to_ns, 1);
  }
}

}  // namespace

Timeline timeline_of(const Scenario& scenario, const Log& log) {
  return Writer(scenario, log).write();
}

}  // namespace strobe::simulate
