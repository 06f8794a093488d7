#include "analyze/tenant_trace_facts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/suggest.h"
#include "base/tenant_words.h"

namespace strobe::analyze {

using trace::kNone;
using trace::Timeline;
namespace words = tenant_words;

namespace {

constexpr std::pair<const char*, ServePolicy> kPolicies[] = {
    {"concurrent", ServePolicy::kConcurrent},  {"fifo", ServePolicy::kFifo},
    {"priority", ServePolicy::kPriority},      {"priority-preemptive", ServePolicy::kPriorityPreemptive},
    {"round-robin", ServePolicy::kRoundRobin}, {"edf", ServePolicy::kEdf},
    {"exclusive", ServePolicy::kExclusive}};

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find(at, from), text.size());
    if (to > from) parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

Result<double> number(const std::string& fact, const std::string& text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return bad_data("fact '" + fact + "' is '" + text + "', expected a number");
  return value;
}

// "cpu:0-1" or "cpu:0,2-3": the numbers. Empty where the name is not of that form.
std::vector<int32_t> cores_of(const std::string& name) {
  std::vector<int32_t> cores;
  if (name.compare(0, 4, "cpu:") != 0) return cores;
  for (const std::string& part : split(name.substr(4), ',')) {
    const size_t dash = part.find('-');
    const auto read = [](const std::string& digits) {
      int32_t value = -1;
      const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      return code == std::errc() && end == digits.data() + digits.size() ? value : -1;
    };
    const int32_t first = read(part.substr(0, dash));
    const int32_t last = dash == std::string::npos ? first : read(part.substr(dash + 1));
    constexpr int32_t kMostCores = 4096;
    if (first < 0 || last < first || last > kMostCores) return {};
    for (int32_t core = first; core <= last; ++core) cores.push_back(core);
  }
  return cores;
}

Result<void> read_tenant_fact(TenantTrace& trace, const std::string& key, const std::string& value) {
  // Names may hold dots: the longest that fits.
  TenantInfo* best = nullptr;
  for (TenantInfo& tenant : trace.tenants)
    if (key.size() > tenant.name.size() && key.compare(0, tenant.name.size(), tenant.name) == 0 &&
        key[tenant.name.size()] == '.' && (!best || best->name.size() < tenant.name.size()))
      best = &tenant;
  if (!best) return {};
  const std::string word = key.substr(best->name.size() + 1);
  best->facts[word] = value;
  const auto read = [&](auto& target) -> Result<void> {
    STROBE_ASSIGN(const double got, number(words::kTenantFact + key, value));
    target = static_cast<std::decay_t<decltype(target)>>(got);
    return {};
  };
  if (word == "priority") return read(best->priority);
  if (word == "rate_hz") return read(best->rate_hz);
  if (word == "queue_depth") return read(best->queue_depth);
  if (word == "batch") {
    double batch = 0;
    STROBE_TRY(read(batch));
    constexpr double kMostPictures = 1e6;
    best->batch = std::llround(std::clamp(batch, 1.0, kMostPictures));
  }
  if (word == "deadline_ms") {
    double ms = 0;
    STROBE_TRY(read(ms));
    best->deadline_ns = std::llround(std::clamp(ms, 0.0, 1e9) * 1e6);
  }
  if (word == "drop")
    best->drop = value == "oldest" ? DropPolicy::kOldest : value == "newest" ? DropPolicy::kNewest : DropPolicy::kNever;
  return {};
}

Result<TenantResource> read_resource_fact(const TenantTrace& trace, const std::string& fact, const std::string& name,
                                          const std::string& value) {
  TenantResource resource = undeclared_resource(name, trace.policy);
  for (const std::string& part : split(value, ';')) {
    const size_t equals = part.find('=');
    const std::string key = part.substr(0, equals), text = equals == std::string::npos ? "" : part.substr(equals + 1);
    if (key == "shared") {
      resource.kind = ResourceKind::kShared;
    } else if (key == "exclusive" || key == "cores") {
      resource.kind = key == "cores" ? ResourceKind::kCores : ResourceKind::kExclusive;
      STROBE_ASSIGN(resource.capacity, number(fact, text));
      if (resource.capacity < 1) return bad_data("fact '" + fact + "' is '" + value + "', expected at least 1");
    } else if (key == "run-queues") {
      resource.queue_a_core = text == "each";
    } else if (key == "policy") {
      STROBE_ASSIGN(resource.policy, parse_serve_policy(text));
      resource.by_stage = true;
      resource.gives_way = resource.policy == ServePolicy::kPriorityPreemptive;
    } else if (key == "unit") {
      resource.by_stage = text != "layer";
      resource.gives_way = text == "give-way";
    } else if (key == "quantum_ns" || key == "switch_ns") {
      STROBE_ASSIGN(const double ns, number(fact, text));
      (key == "quantum_ns" ? resource.quantum_ns : resource.switch_ns) = std::llround(std::clamp(ns, 0.0, 1e15));
    }
  }
  return resource;
}

Result<void> read_interference(const Timeline& timeline, TenantTrace& trace) {
  const std::string prefix = words::kInterferenceFact;
  struct Pair {
    std::string slowed, beside;
    double a;
  };
  std::vector<Pair> pairs;
  for (auto fact = timeline.facts.lower_bound(prefix);
       fact != timeline.facts.end() && fact->first.rfind(prefix, 0) == 0; ++fact) {
    const std::vector<std::string> names = split(fact->first.substr(prefix.size()), '.');
    if (names.size() != 2) return bad_data("fact '" + fact->first + "': expected " + prefix + "CLASS.CLASS");
    STROBE_ASSIGN(const double a, number(fact->first, fact->second));
    pairs.push_back({names[0], names[1], std::max(0.0, a)});
  }
  const auto row = [&trace](const std::string& name) {
    const auto found = std::find(trace.classes.begin(), trace.classes.end(), name);
    if (found != trace.classes.end()) return static_cast<size_t>(found - trace.classes.begin());
    trace.classes.push_back(name);
    return trace.classes.size() - 1;
  };
  Calibration given;
  for (const Pair& pair : pairs) row(pair.slowed), row(pair.beside);
  given.classes = trace.classes;
  given.a.assign(given.classes.size(), std::vector<double>(given.classes.size(), kNotMeasured));
  for (const Pair& pair : pairs) given.a[row(pair.slowed)][row(pair.beside)] = pair.a;
  if (const auto fact = timeline.facts.find(words::kSaturation); fact != timeline.facts.end()) {
    STROBE_ASSIGN(given.saturation, number(fact->first, fact->second));
  }
  apply_calibration(trace, given);
  return {};
}

}  // namespace

// What kind of resource a name is that no fact declares.
TenantResource undeclared_resource(const std::string& name, ServePolicy policy) {
  TenantResource resource;
  resource.name = name;
  resource.policy = policy;
  resource.gives_way = policy == ServePolicy::kPriorityPreemptive;
  resource.cores = cores_of(name);
  const auto begins = [&name](const char* word) { return name.rfind(word, 0) == 0; };
  if (begins("queue:")) resource.kind = ResourceKind::kQueue;
  if (begins("lock:") || begins("copy:")) {
    resource.kind = ResourceKind::kExclusive;
    resource.policy = ServePolicy::kFifo;
    resource.by_stage = false;
    resource.gives_way = false;
  }
  if (begins("cpu:")) {
    resource.kind = ResourceKind::kCores;
    resource.capacity = resource.cores.empty() ? 1 : static_cast<double>(resource.cores.size());
  }
  return resource;
}

Result<TenantTrace> read_tenant_facts(const Timeline& timeline) {
  TenantTrace trace;
  const auto& facts = timeline.facts;
  const auto names = facts.find(words::kTenants);
  if (names == facts.end()) return bad_data("not a trace of tenants: it has no fact 'tenants' (docs/tenant-trace.md)");
  for (const std::string& name : split(names->second, ',')) {
    if (trace.find_tenant(name) != kNone) return bad_data("fact 'tenants' names '" + name + "' twice");
    trace.tenants.emplace_back().name = name;
  }
  if (trace.tenants.empty()) return bad_data("fact 'tenants' names nobody");
  if (const auto policy = facts.find(words::kPolicy); policy != facts.end()) {
    STROBE_ASSIGN(trace.policy, parse_serve_policy(policy->second));
  }
  if (const auto isolation = facts.find(words::kIsolation); isolation != facts.end())
    trace.isolation = isolation->second;
  if (const auto sigma = facts.find(words::kClockSigmaNs); sigma != facts.end()) {
    STROBE_ASSIGN(const double ns, number(sigma->first, sigma->second));
    trace.sigma_ns = std::max(0.0, ns);
  }
  const auto with_prefix = [&facts](const std::string& prefix, const auto& take) -> Result<void> {
    for (auto fact = facts.lower_bound(prefix); fact != facts.end() && fact->first.rfind(prefix, 0) == 0; ++fact)
      STROBE_TRY(take(fact->first.substr(prefix.size()), fact->second));
    return {};
  };
  STROBE_TRY(
      with_prefix(words::kResourceFact, [&trace](const std::string& name, const std::string& value) -> Result<void> {
        STROBE_ASSIGN(TenantResource resource, read_resource_fact(trace, words::kResourceFact + name, name, value));
        trace.resources.push_back(std::move(resource));
        return {};
      }));
  STROBE_TRY(with_prefix(words::kTenantFact, [&trace](const std::string& key, const std::string& value) {
    return read_tenant_fact(trace, key, value);
  }));
  for (TenantInfo& tenant : trace.tenants) {
    const auto cpu = tenant.facts.find("cpu");
    if (cpu == tenant.facts.end() || cpu->second.empty()) continue;
    tenant.cpu = trace.find_resource(cpu->second);
    if (tenant.cpu != kNone) continue;
    trace.resources.push_back(undeclared_resource(cpu->second, trace.policy));
    tenant.cpu = static_cast<int32_t>(trace.resources.size() - 1);
  }
  STROBE_TRY(read_interference(timeline, trace));
  return trace;
}

int32_t class_named(TenantTrace& trace, const std::string& name) {
  const auto found = std::find(trace.classes.begin(), trace.classes.end(), name);
  if (found != trace.classes.end()) return static_cast<int32_t>(found - trace.classes.begin());
  const size_t before = trace.classes.size(), after = before + 1;
  std::vector<double> grown(after * after, kNotMeasured);
  for (size_t i = 0; i < before; ++i)
    for (size_t k = 0; k < before; ++k) grown[i * after + k] = trace.slowdown[i * before + k];
  trace.slowdown = std::move(grown);
  trace.classes.push_back(name);
  return static_cast<int32_t>(before);
}

Result<ServePolicy> parse_serve_policy(const std::string& text) {
  std::vector<std::string> names;
  for (const auto& [name, policy] : kPolicies) {
    if (text == name) return policy;
    names.emplace_back(name);
  }
  return usage_error("'" + text + "' is no policy; there are: " + joined(names));
}

const char* serve_policy_name(ServePolicy policy) {
  for (const auto& [name, known] : kPolicies)
    if (known == policy) return name;
  return "?";
}

Result<Calibration> parse_calibration(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("classes") || !json["classes"].is_array() || !json.contains("a") ||
      !json["a"].is_array())
    return bad_data("expected {\"classes\": [NAME, ...], \"a\": [[NUMBER, ...], ...], \"saturation\": NUMBER}");
  Calibration calibration;
  for (const auto& name : json["classes"]) {
    if (!name.is_string()) return bad_data("'classes': expected names");
    if (std::find(calibration.classes.begin(), calibration.classes.end(), name.get<std::string>()) !=
        calibration.classes.end())
      return bad_data("'classes': '" + name.get<std::string>() + "' is there twice");
    calibration.classes.push_back(name.get<std::string>());
  }
  const size_t count = calibration.classes.size();
  if (json["a"].size() != count) return bad_data("'a': expected " + std::to_string(count) + " rows, one a class");
  for (const auto& row : json["a"]) {
    if (!row.is_array() || row.size() != count)
      return bad_data("'a': expected rows of " + std::to_string(count) + " numbers");
    std::vector<double>& values = calibration.a.emplace_back();
    for (const auto& value : row) {
      if (!value.is_number() && !value.is_null()) return bad_data("'a': expected numbers, or null where not measured");
      constexpr double kMost = 1000;  // times slower
      if (!value.is_null() && !(value.get<double>() <= kMost)) return bad_data("'a': expected numbers of at most 1000");
      values.push_back(value.is_null() ? kNotMeasured : std::max(0.0, value.get<double>()));
    }
  }
  if (json.contains("saturation") && !json["saturation"].is_null()) {
    if (!json["saturation"].is_number()) return bad_data("'saturation': expected a number");
    calibration.saturation = std::max(0.0, json["saturation"].get<double>());
  }
  if (json.contains("of")) {
    if (json["of"] != "cores" && json["of"] != "device") return bad_data("'of': expected \"cores\" or \"device\"");
    calibration.of_cores = json["of"] == "cores";
  }
  constexpr double kMs = 1e6, kMostMs = 1e6;
  for (const auto& [key, times] : {std::pair("wake_up_ms", &calibration.run_queues.wake_up_ns),
                                   std::pair("balance_ms", &calibration.run_queues.balance_ns),
                                   std::pair("turn_ms", &calibration.run_queues.turn_ns)}) {
    if (!json.contains(key) || json[key].is_null()) continue;
    if (!json[key].is_array()) return bad_data("'" + std::string(key) + "': expected numbers that rise");
    for (const auto& value : json[key]) {
      const double ms = value.is_number() ? value.get<double>() : -1;
      if (!(ms >= 0 && ms <= kMostMs) || (!times->empty() && ms * kMs < times->back()))
        return bad_data("'" + std::string(key) + "': expected numbers that rise");
      times->push_back(ms * kMs);
    }
  }
  constexpr double kShortestTurnMs = 0.1;
  const std::vector<double>& turns = calibration.run_queues.turn_ns;
  if (!turns.empty() && turns.back() < kShortestTurnMs * kMs)
    return bad_data("'turn_ms': expected turns of at least 0.1 ms");
  for (const auto& [key, share] : {std::pair("hand_over_stays", &calibration.run_queues.hand_over_stays),
                                   std::pair("wake_up_stays", &calibration.run_queues.wake_up_stays)}) {
    if (!json.contains(key) || json[key].is_null()) continue;
    *share = json[key].is_number() ? json[key].get<double>() : -1;
    if (!(*share >= 0 && *share <= 1)) return bad_data("'" + std::string(key) + "': expected a number from 0 to 1");
  }
  return calibration;
}

void apply_calibration(TenantTrace& trace, const Calibration& calibration) {
  std::vector<int32_t> of;  // rows of the trace's classes among the calibration's
  for (const std::string& name : calibration.classes)
    if (std::find(trace.classes.begin(), trace.classes.end(), name) == trace.classes.end())
      trace.classes.push_back(name);
  for (const std::string& name : trace.classes) {
    const auto found = std::find(calibration.classes.begin(), calibration.classes.end(), name);
    of.push_back(found == calibration.classes.end() ? kNone
                                                    : static_cast<int32_t>(found - calibration.classes.begin()));
  }
  const size_t count = trace.classes.size();
  trace.slowdown.assign(count * count, kNotMeasured);
  for (size_t i = 0; i < count; ++i)
    for (size_t k = 0; k < count; ++k)
      if (of[i] != kNone && of[k] != kNone)
        trace.slowdown[i * count + k] = calibration.a[static_cast<size_t>(of[i])][static_cast<size_t>(of[k])];
  trace.saturation = calibration.saturation;
  const bool has_cores =
      std::any_of(trace.resources.begin(), trace.resources.end(),
                  [](const TenantResource& resource) { return resource.kind == ResourceKind::kCores; });
  if (!calibration.of_cores || !has_cores || trace.memory != kNone) return;
  // The trace's own resource of that name is another one.
  const std::string name = trace.find_resource("mem") == kNone ? "mem" : "mem of cores";
  trace.memory = static_cast<int32_t>(trace.resources.size());
  trace.resources.push_back(undeclared_resource(name, trace.policy));
}

}  // namespace strobe::analyze
