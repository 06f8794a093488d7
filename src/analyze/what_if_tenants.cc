#include "analyze/what_if_tenants.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <regex>
#include <set>

#include "analyze/bootstrap.h"
#include "analyze/cells.h"
#include "base/statistics.h"
#include "base/suggest.h"

namespace strobe::analyze {

using trace::kNone;
using trace::Timeline;

namespace {

constexpr double kMs = 1e6, kSecond = 1e9;

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || code != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

struct Part {
  const char* word;
  std::string TenantSelector::*member;
};
constexpr Part kParts[] = {{"tenant", &TenantSelector::tenant},     {"stage", &TenantSelector::stage},
                           {"layer", &TenantSelector::layer},       {"kernel", &TenantSelector::kernel},
                           {"resource", &TenantSelector::resource}, {"class", &TenantSelector::kind}};

Error no_selection(const std::string& text) {
  return usage_error("'" + text +
                     "' selects nothing: expected tenant=NAME,stage=NAME (also layer=, kernel=, resource=, " +
                     "class=) or stage:NAME");
}

LatencyFigures figures(std::vector<double> latencies_ns, size_t due, size_t late, double span_ns) {
  LatencyFigures made;
  made.frames = latencies_ns.size();
  made.due = due;
  std::sort(latencies_ns.begin(), latencies_ns.end());
  const auto at = [&](double q) { return quantile_sorted(latencies_ns, q) / kMs; };
  made.p50_ms = at(0.5), made.p95_ms = at(0.95), made.p99_ms = at(0.99), made.max_ms = at(1);
  made.mean_ms = latencies_ns.empty() ? std::numeric_limits<double>::quiet_NaN() : mean(latencies_ns) / kMs;
  const size_t missed = due - std::min(due, latencies_ns.size()) + late;
  made.miss_rate = due > 0 ? static_cast<double>(missed) / static_cast<double>(due) : 0;
  made.frames_per_second = span_ns > 0 ? static_cast<double>(made.frames) / span_ns * kSecond : 0;
  return made;
}

double span_of(const ReplayModel& model, int32_t tenant) {
  double first = std::numeric_limits<double>::infinity(), last = -first;
  for (const ReplayFrame& frame : model.frames)
    if (tenant == kNone || frame.tenant == tenant)
      first = std::min(first, frame.stamp_ns), last = std::max(last, frame.stamp_ns);
  return last > first ? last - first : 0;
}

LatencyFigures measured_figures(const TenantTrace& trace, int32_t tenant) {
  std::vector<double> latencies;
  size_t due = 0, late = 0;
  int64_t first = std::numeric_limits<int64_t>::max(), last = std::numeric_limits<int64_t>::min();
  for (const TenantFrame& frame : trace.frames) {
    if (!frame.counts || frame.outcome == FrameOutcome::kFailed || (tenant != kNone && frame.tenant != tenant))
      continue;
    ++due;
    first = std::min(first, frame.stamp_ns), last = std::max(last, frame.stamp_ns);
    if (!frame.finished()) continue;
    latencies.push_back(static_cast<double>(frame.latency_ns()));
    late += frame.deadline_ns > 0 && frame.latency_ns() > frame.deadline_ns ? 1 : 0;
  }
  return figures(std::move(latencies), due, late, last > first ? static_cast<double>(last - first) : 0);
}

class Question {
 public:
  Question(const Timeline& timeline, ReplayModel model) : timeline_(timeline), model_(std::move(model)) {
    tenant_of_work_.assign(model_.works.size(), kNone);
    for (const ReplayFrame& frame : model_.frames) tenant_of_work_[static_cast<size_t>(frame.work)] = frame.tenant;
  }

  const ReplayModel& model() const { return model_; }

  Result<void> scale(ReplayModel& model, const TenantSelector& what, double factor) const {
    STROBE_ASSIGN(const std::vector<int32_t> selected, select(what));
    for (const int32_t operation : selected) model.operations[static_cast<size_t>(operation)].service_ns *= factor;
    return {};
  }
  Result<std::vector<int32_t>> select(const TenantSelector& what) const;
  Result<size_t> tenant_named(const std::string& name) const;
  Result<void> change(ReplayModel& model, const TenantWhatIfOptions& options) const;
  Result<void> use_rate(ReplayModel& model, size_t tenant, double rate_hz) const;
  Result<void> add_copy(ReplayModel& model) const;
  Table sweep(const ReplayModel& model) const;

 private:
  const Timeline& timeline_;
  ReplayModel model_;
  std::vector<int32_t> tenant_of_work_;
};

Result<size_t> Question::tenant_named(const std::string& name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < model_.tenants.size(); ++i) {
    if (model_.tenants[i].name == name) return i;
    names.push_back(model_.tenants[i].name);
  }
  return not_found("no tenant '" + name + "' in the trace; " + suggest(name, names));
}

Result<std::vector<int32_t>> Question::select(const TenantSelector& what) const {
  int32_t tenant = kNone;
  if (!what.tenant.empty()) {
    STROBE_ASSIGN(const size_t found, tenant_named(what.tenant));
    tenant = static_cast<int32_t>(found);
  }
  std::optional<std::regex> pattern;
  if (!what.kernel.empty()) {
    try {
      pattern.emplace(what.kernel, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error& fault) {
      return usage_error("kernel=" + what.kernel + " is no regular expression: " + fault.what());
    }
  }
  std::map<trace::StringId, bool> by_pattern;
  std::vector<int32_t> selected;
  std::set<std::string> stages, layers;
  constexpr size_t kMostNames = 1000;
  for (size_t work = 0; work < model_.works.size(); ++work) {
    if (tenant != kNone && tenant_of_work_[work] != tenant) continue;
    const ReplayWork& its = model_.works[work];
    for (int32_t i = its.first_stage; i < its.first_stage + its.stage_count; ++i) {
      const ReplayStage& stage = model_.stages[static_cast<size_t>(i)];
      const std::string_view name = timeline_.strings[stage.name];
      if (stages.size() < kMostNames) stages.emplace(name);
      if (!what.stage.empty() && name != what.stage) continue;
      for (int32_t k = stage.first_operation; k < stage.first_operation + stage.operation_count; ++k) {
        const ReplayOperation& operation = model_.operations[static_cast<size_t>(k)];
        const std::string_view layer = timeline_.strings[operation.name];
        if (layers.size() < kMostNames && !layer.empty()) layers.emplace(layer);
        if (!what.layer.empty() && layer != what.layer) continue;
        if (pattern) {
          const auto [known, is_new] = by_pattern.try_emplace(operation.name, false);
          if (is_new) known->second = std::regex_search(layer.begin(), layer.end(), *pattern);
          if (!known->second) continue;
        }
        if (!what.resource.empty() && (operation.resource == kNone ||
                                       model_.resources[static_cast<size_t>(operation.resource)].name != what.resource))
          continue;
        if (!what.kind.empty() && model_.classes[static_cast<size_t>(operation.kind)] != what.kind) continue;
        selected.push_back(k);
      }
    }
  }
  if (!selected.empty()) return selected;
  std::string hint;
  if (!what.stage.empty() && stages.count(what.stage) == 0)
    hint = "; " + suggest(what.stage, {stages.begin(), stages.end()});
  else if (!what.layer.empty())
    hint = "; " + suggest(what.layer, {layers.begin(), layers.end()});
  return not_found(what.text() + " selects nothing" + hint);
}

// The frames come at the new rate over the same time; their work is repeated where they become more. Of batches the
// rate is that of the pictures, and how long the first one waits for the last changes with it.
Result<void> Question::use_rate(ReplayModel& model, size_t tenant, double rate_hz) const {
  std::vector<ReplayFrame> own, all;
  for (const ReplayFrame& frame : model.frames)
    (frame.tenant == static_cast<int32_t>(tenant) ? own : all).push_back(frame);
  if (own.size() < 2) return {};
  std::sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a.stamp_ns < b.stamp_ns; });
  const double first = own.front().stamp_ns, span = own.back().stamp_ns - first;
  const double period = span / static_cast<double>(own.size() - 1);
  const auto batch = static_cast<double>(model.tenants[tenant].batch);
  const double factor = kSecond * batch / rate_hz / period, until = own.back().stamp_ns + period / 2;
  const double fills = period * (batch - 1) / batch;
  constexpr double kMostFrames = 1e6;
  if (!((until - first) / (period * factor) < kMostFrames))
    return usage_error(fmt::format("--rate {}: {:g} frames a second for {:.3g} s: expected at most {:g} frames",
                                   model.tenants[tenant].name, rate_hz, (until - first) / kSecond, kMostFrames));
  for (size_t i = 0;; ++i) {
    const size_t round = i / own.size();
    ReplayFrame frame = own[i % own.size()];
    frame.stamp_ns = first + (frame.stamp_ns - first + static_cast<double>(round) * (span + period)) * factor;
    if (frame.stamp_ns > until) break;
    frame.comm_ns += std::min(frame.comm_ns, fills) * (factor - 1);
    all.push_back(frame);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.stamp_ns < b.stamp_ns; });
  model.frames = std::move(all);
  return {};
}

Result<void> Question::add_copy(ReplayModel& model) const {
  bool found = false;
  for (TenantResource& resource : model.resources)
    if (resource.name.rfind("copy:", 0) == 0) resource.capacity += 1, found = true;
  if (found) return {};
  TenantResource engine;
  engine.name = "copy:added";
  engine.kind = ResourceKind::kExclusive;
  engine.by_stage = false;
  for (ReplayOperation& operation : model.operations) {
    if (model.classes[static_cast<size_t>(operation.kind)] != "copy") continue;
    operation.resource = static_cast<int32_t>(model.resources.size());
    found = true;
  }
  if (!found) return not_found("--add-copy: the trace has no copies (operations of class copy)");
  model.resources.push_back(std::move(engine));
  return {};
}

Result<void> Question::change(ReplayModel& model, const TenantWhatIfOptions& options) const {
  for (const TenantScale& scale : options.scales) STROBE_TRY(this->scale(model, scale.what, scale.factor));
  for (const TenantSelector& what : options.removed) {
    TenantSelector only;
    only.tenant = what.tenant;
    if (!what.tenant.empty() && what.text() == only.text()) {
      STROBE_ASSIGN(const size_t tenant, tenant_named(what.tenant));
      model.tenants[tenant].is_there = false;
      continue;
    }
    STROBE_TRY(scale(model, what, 0));
  }
  for (const auto& [name, priority] : options.priorities) {
    STROBE_ASSIGN(const size_t tenant, tenant_named(name));
    model.tenants[tenant].priority = priority;
  }
  for (const auto& [name, rate] : options.rates) {
    STROBE_ASSIGN(const size_t tenant, tenant_named(name));
    if (!(rate > 0)) return usage_error("--rate " + name + ": expected frames a second above 0");
    STROBE_TRY(use_rate(model, tenant, rate));
  }
  if (options.policy) use_policy(model, *options.policy);
  if (options.cores) {
    constexpr int64_t kMostCores = 4096;
    if (*options.cores < 1 || *options.cores > kMostCores) return usage_error("--cores: expected 1 to 4096");
    bool found = false;
    for (TenantResource& resource : model.resources)
      if (resource.kind == ResourceKind::kCores) resource.capacity = static_cast<double>(*options.cores), found = true;
    if (!found) return not_found("--cores: the trace does not say on which cores its tenants ran");
  }
  if (options.add_copy) STROBE_TRY(add_copy(model));
  return {};
}

Table Question::sweep(const ReplayModel& model) const {
  Table table("What a faster part is worth, by replay at 0.8 of its time",
              {{"item", "stage of a tenant"},
               {"time_share", "of all service time"},
               {"own_p50_slope", "% of the tenant's p50 for 1 % of the item's time"},
               {"own_p99_slope", "the same of its p99"},
               {"others_p50_slope", "mean over the other tenants"},
               {"others_p99_slope", "the same of their p99"}});
  const ReplayResult base = replay(model);
  std::map<std::pair<int32_t, trace::StringId>, double> items;
  double whole = 0;
  for (size_t work = 0; work < model.works.size(); ++work)
    for (int32_t i = model.works[work].first_stage; i < model.works[work].first_stage + model.works[work].stage_count;
         ++i) {
      const ReplayStage& stage = model.stages[static_cast<size_t>(i)];
      double& time = items[{tenant_of_work_[work], stage.name}];
      for (int32_t k = stage.first_operation; k < stage.first_operation + stage.operation_count; ++k)
        time += model.operations[static_cast<size_t>(k)].service_ns,
            whole += model.operations[static_cast<size_t>(k)].service_ns;
    }
  struct Row {
    double order;
    std::vector<Cell> cells;
  };
  std::vector<Row> rows;
  constexpr double kFactor = 0.8;
  for (const auto& [item, time] : items) {
    if (item.first == kNone) continue;
    TenantSelector what;
    what.tenant = model.tenants[static_cast<size_t>(item.first)].name;
    what.stage = std::string(timeline_.strings[item.second]);
    ReplayModel faster = model;
    if (!scale(faster, what, kFactor)) continue;
    const ReplayResult result = replay(faster);
    double own50 = 0, own99 = 0, others50 = 0, others99 = 0;
    for (size_t i = 0; i < model.tenants.size(); ++i) {
      const LatencyFigures before = figures_of(model, base, static_cast<int32_t>(i)),
                           after = figures_of(faster, result, static_cast<int32_t>(i));
      if (before.frames == 0 || after.frames == 0) continue;
      const double slope50 = (1 - after.p50_ms / before.p50_ms) / (1 - kFactor);
      const double slope99 = (1 - after.p99_ms / before.p99_ms) / (1 - kFactor);
      (static_cast<int32_t>(i) == item.first ? own50 : others50) += slope50;
      (static_cast<int32_t>(i) == item.first ? own99 : others99) += slope99;
    }
    const auto others = static_cast<double>(model.tenants.size() - 1);
    rows.push_back({own99 + others99,
                    {what.text(), whole > 0 ? time / whole : 0.0, own50, own99, cell_if(others > 0, others50 / others),
                     cell_if(others > 0, others99 / others)}});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.order > b.order; });
  for (Row& row : rows) table.add_row(std::move(row.cells));
  return table;
}

void add_interval(TenantAnswer& answer, const std::vector<double>& before, const std::vector<double>& after,
                  uint64_t seed) {
  const auto interval = [&](Statistic statistic, double figure) -> std::optional<std::pair<double, double>> {
    const size_t least = least_samples(statistic);
    if (before.size() < least || after.size() < least || value_of(before, statistic) <= 0 ||
        value_of(after, statistic) <= 0)
      return {};
    const RatioInterval ratio = ratio_interval(before, after, statistic, 500, seed);
    return std::pair(ratio.low * figure, ratio.high * figure);
  };
  answer.p50_ci_ms = interval(Statistic::kP50, answer.before.p50_ms);
  answer.p99_ci_ms = interval(Statistic::kP99, answer.before.p99_ms);
}

double error_of(double replayed, double measured) {
  return measured > 0 && std::isfinite(replayed) ? replayed / measured - 1 : 0;
}

}  // namespace

std::string TenantSelector::text() const {
  std::string made;
  for (const Part& part : kParts)
    if (!(this->*part.member).empty())
      made += (made.empty() ? "" : ",") + std::string(part.word) + "=" + this->*part.member;
  return made;
}

Result<TenantSelector> parse_tenant_selector(const std::string& text) {
  TenantSelector selector;
  const size_t first = text.find_first_of("=:");
  if (first == std::string::npos) return no_selection(text);
  const bool is_old = text[first] == ':';
  for (size_t from = 0; from <= text.size();) {
    const size_t to = is_old ? text.size() : std::min(text.find(',', from), text.size());
    const std::string part = text.substr(from, to - from);
    const size_t at = part.find(text[first]);
    if (at == std::string::npos || at + 1 >= part.size()) return no_selection(text);
    const auto known = std::find_if(std::begin(kParts), std::end(kParts),
                                    [&](const Part& one) { return part.compare(0, at, one.word) == 0; });
    if (known == std::end(kParts)) return no_selection(text);
    selector.*known->member = part.substr(at + 1);
    from = to + 1;
  }
  return selector;
}

Result<TenantScale> parse_tenant_scale(const std::string& text) {
  const size_t first = text.find_first_of("=:");
  const char separator = first != std::string::npos && text[first] == ':' ? '=' : ':';
  const size_t at = text.rfind(separator);
  const Error fault = usage_error("'" + text + "': expected SELECTOR:FACTOR, for example tenant=a,stage=infer:0.5");
  if (at == std::string::npos) return fault;
  const std::optional<double> factor = number_of(text.substr(at + 1));
  if (!factor || *factor < 0) return fault;
  constexpr double kMostFactor = 1e6;
  if (*factor > kMostFactor)
    return usage_error(fmt::format("'{}': expected a factor of at most {:.0f}", text, kMostFactor));
  STROBE_ASSIGN(TenantSelector what, parse_tenant_selector(text.substr(0, at)));
  return TenantScale{std::move(what), *factor};
}

Result<std::pair<std::string, double>> parse_tenant_value(const std::string& flag, const std::string& text) {
  const std::string head = "tenant=";
  const size_t colon = text.rfind(':');
  const Error fault = usage_error(flag + " '" + text + "': expected tenant=NAME:NUMBER");
  if (text.rfind(head, 0) != 0 || colon == std::string::npos || colon <= head.size()) return fault;
  const std::optional<double> value = number_of(text.substr(colon + 1));
  if (!value) return fault;
  return std::pair(text.substr(head.size(), colon - head.size()), *value);
}

void use_policy(ReplayModel& model, ServePolicy policy) {
  // Tenants that ran at once on cores held nothing else: their work (not what stages do besides) takes turns from now
  // on.
  const bool has_device = std::any_of(model.resources.begin(), model.resources.end(), [](const TenantResource& one) {
    return one.kind == ResourceKind::kExclusive || one.kind == ResourceKind::kShared;
  });
  if (!has_device && policy != ServePolicy::kConcurrent) {
    const auto device = static_cast<int32_t>(model.resources.size());
    bool found = false;
    for (ReplayOperation& operation : model.operations) {
      if (operation.resource == kNone || operation.name == 0 ||
          model.resources[static_cast<size_t>(operation.resource)].kind != ResourceKind::kCores ||
          model.classes[static_cast<size_t>(operation.kind)] == "cpu")
        continue;
      operation.resource = device;
      found = true;
    }
    if (found) {
      TenantResource made;
      made.name = "device";
      model.resources.push_back(std::move(made));
    }
  }
  for (TenantResource& resource : model.resources) {
    const bool is_device = resource.kind == ResourceKind::kExclusive || resource.kind == ResourceKind::kShared;
    const std::string& name = resource.name;
    if (!is_device || name.rfind("lock:", 0) == 0 || name.rfind("copy:", 0) == 0) continue;
    // Whoever served so already goes on with its own unit and quantum.
    if (policy != ServePolicy::kConcurrent && resource.kind == ResourceKind::kExclusive && resource.policy == policy)
      continue;
    resource.kind = policy == ServePolicy::kConcurrent ? ResourceKind::kShared : ResourceKind::kExclusive;
    resource.policy = policy;
    resource.by_stage = true;
    resource.gives_way = policy == ServePolicy::kPriorityPreemptive;
  }
}

LatencyFigures figures_of(const ReplayModel& model, const ReplayResult& result, int32_t tenant) {
  size_t due = 0, late = 0;
  for (size_t i = 0; i < model.frames.size(); ++i) {
    const ReplayFrame& frame = model.frames[i];
    if (!frame.counts || (tenant != kNone && frame.tenant != tenant) ||
        !model.tenants[static_cast<size_t>(frame.tenant)].is_there)
      continue;
    ++due;
    late += std::isfinite(result.latency_ns[i]) && frame.deadline_ns > 0 && result.latency_ns[i] > frame.deadline_ns
                ? 1
                : 0;
  }
  return figures(finished_latencies(model, result, tenant), due, late, span_of(model, tenant));
}

Table TenantWhatIf::table() const {
  Table made("What if", {{"tenant", "whose frames; all together last"},
                         {"metric", "of the latency, or miss rate"},
                         {"measured", "in the trace"},
                         {"replay", "without any change"},
                         {"error", "of the replay"},
                         {"after", "with the change"},
                         {"change", "after / replay - 1"},
                         {"low", "95 % interval of after"},
                         {"high", "its upper end"}});
  const auto add = [&made](const TenantAnswer& answer) {
    const std::string name = answer.tenant.empty() ? "(all)" : answer.tenant;
    const auto row = [&](const char* metric, double LatencyFigures::*figure,
                         const std::optional<std::pair<double, double>>& interval) {
      const double measured = answer.measured.*figure, before = answer.before.*figure, after = answer.after.*figure;
      made.add_row({name, metric, cell_if(std::isfinite(measured), measured), cell_if(std::isfinite(before), before),
                    cell_if(measured > 0, before / measured - 1), cell_if(std::isfinite(after), after),
                    cell_if(before > 0 && std::isfinite(after), after / before - 1),
                    cell_if(interval.has_value(), interval ? interval->first : 0),
                    cell_if(interval.has_value(), interval ? interval->second : 0)});
    };
    row("p50_ms", &LatencyFigures::p50_ms, answer.p50_ci_ms);
    row("p95_ms", &LatencyFigures::p95_ms, {});
    row("p99_ms", &LatencyFigures::p99_ms, answer.p99_ci_ms);
    row("miss_rate", &LatencyFigures::miss_rate, {});
  };
  for (const TenantAnswer& answer : tenants) add(answer);
  add(all);
  made.notes = notes;
  return made;
}

Result<TenantWhatIf> what_if_tenants(const Timeline& timeline, const TenantWhatIfOptions& options) {
  STROBE_ASSIGN(TenantTrace trace, tenant_trace(timeline));
  if (options.calibration) apply_calibration(trace, *options.calibration);
  const BlameAnalysis analysis = blame(std::move(trace));
  ReplayModel recorded = replay_model(analysis);
  // What sources waited for their cores is part of the recorded arrivals.
  if (options.calibration) {
    recorded.run_queues = options.calibration->run_queues;
    recorded.run_queues.wake_up_ns.clear();
    if (const auto seen = hand_over_stays(analysis.trace)) recorded.run_queues.hand_over_stays = *seen;
  }
  const Question question(timeline, std::move(recorded));
  ReplayModel changed = question.model();
  STROBE_TRY(question.change(changed, options));
  const ReplayResult before = replay(question.model()), after = replay(changed);
  const auto by_baseline = [&changed](Interference interference) {
    changed.interference = interference;
    ReplayResult result = replay(changed);
    changed.interference = Interference::kMatrix;
    return result;
  };
  const ReplayResult equal = by_baseline(Interference::kEqualShare), none = by_baseline(Interference::kNone);
  TenantWhatIf answer;
  answer.is_reliable = true;
  constexpr double kMostP50 = 0.03, kMostP99 = 0.10, kTooBusy = 0.95;
  const auto fill = [&](TenantAnswer& one, int32_t tenant) {
    one.measured = measured_figures(analysis.trace, tenant);
    one.before = figures_of(question.model(), before, tenant);
    one.after = figures_of(changed, after, tenant);
    one.equal_share = figures_of(changed, equal, tenant);
    one.no_interference = figures_of(changed, none, tenant);
    one.p50_error = error_of(one.before.p50_ms, one.measured.p50_ms);
    one.p99_error = error_of(one.before.p99_ms, one.measured.p99_ms);
    add_interval(one, finished_latencies(question.model(), before, tenant), finished_latencies(changed, after, tenant),
                 options.seed);
  };
  for (size_t i = 0; i < analysis.trace.tenants.size(); ++i) {
    TenantAnswer& one = answer.tenants.emplace_back();
    one.tenant = analysis.trace.tenants[i].name;
    fill(one, static_cast<int32_t>(i));
    if (one.measured.frames == 0 || (std::abs(one.p50_error) <= kMostP50 && std::abs(one.p99_error) <= kMostP99))
      continue;
    answer.is_reliable = false;
    char text[160];
    std::snprintf(
        text, sizeof text,
        "not reliable here: the replay without any change misses %s's measured p50 by %.1f %%, its p99 by %.1f %%",
        one.tenant.substr(0, 40).c_str(), one.p50_error * 100, one.p99_error * 100);
    answer.notes.emplace_back(text);
  }
  fill(answer.all, kNone);
  for (size_t i = 0; i < changed.resources.size(); ++i) {
    const TenantResource& resource = changed.resources[i];
    if (resource.kind != ResourceKind::kExclusive || after.span_ns <= 0) continue;
    const double use = after.busy_ns[i] / after.span_ns / resource.capacity;
    if (use > kTooBusy)
      answer.notes.push_back(resource.name + " is busy " + std::to_string(std::lround(use * 100)) +
                             " % of the time after the change: queues grow there, and small errors with them");
  }
  if (analysis.unmeasured_pairs > 0)
    answer.notes.emplace_back("operations run beside each other whose slow-down was never measured: taken as none");
  if (analysis.gates.lost_records > 0)
    answer.notes.push_back(std::to_string(analysis.gates.lost_records) + " records of the trace are lost");
  if (options.sweep) answer.sweep = question.sweep(changed);
  return answer;
}

}  // namespace strobe::analyze
