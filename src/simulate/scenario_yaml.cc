#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <optional>

#include "base/suggest.h"
#include "base/tenant_words.h"
#include "simulate/scenario.h"

namespace strobe::simulate {

Result<ServeRule> serve_rule(const std::string& policy) {
  static const std::map<std::string, ServeRule> kRules{{"concurrent", {Serve::kFifo, false}},
                                                       {"fifo", {Serve::kFifo, false}},
                                                       {"exclusive", {Serve::kFifo, false}},
                                                       {"priority", {Serve::kPriority, false}},
                                                       {"edf", {Serve::kEdf, false}},
                                                       {"priority-preemptive", {Serve::kPriority, true}},
                                                       {"round-robin", {Serve::kRoundRobin, false}}};
  if (const auto found = kRules.find(policy); found != kRules.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, rule] : kRules) names.push_back(name);
  return usage_error("no policy '" + policy + "'; " + suggest(policy, names));
}

namespace {

constexpr double kMs = 1e6, kUs = 1e3, kSecond = 1e9;
constexpr int64_t kMostOperations = 100'000;  // of a stage

// A map of the file, and where it stands.
class Node {
 public:
  Node(YAML::Node node, std::string place) : node_(std::move(node)), place_(std::move(place)) {}

  Result<void> expect_map(std::initializer_list<const char*> keys) const {
    if (!node_.IsMap()) return bad_data(place_ + ": expected keys and values");
    const std::vector<std::string> known(keys.begin(), keys.end());
    for (const auto& entry : node_) {
      const auto key = entry.first.as<std::string>("");
      if (std::find(known.begin(), known.end(), key) == known.end())
        return bad_data(place_ + ": no key '" + key + "' here; " + suggest(key, known));
    }
    return {};
  }
  bool has(const char* key) const { return node_.IsMap() && node_[key].IsDefined(); }
  Node at(const char* key) const { return {node_[key], place_ + "." + key}; }
  bool is_scalar() const { return node_.IsScalar(); }
  const YAML::Node& raw() const { return node_; }
  const std::string& place() const { return place_; }

  Result<double> number(double least = 0) const {
    double value = 0;
    if (!node_.IsScalar() || !YAML::convert<double>::decode(node_, value) || !std::isfinite(value) || value < least)
      return bad_data(fmt::format("{}: expected a number of {:g} or more", place_, least));
    constexpr double kMost = 1e15;
    return std::min(value, kMost);
  }
  Result<std::string> text() const {
    if (!node_.IsScalar() || node_.Scalar().empty()) return bad_data(place_ + ": expected a word");
    return node_.Scalar();
  }
  // Into `target`, where the key is there; times `unit`.
  Result<void> read(const char* key, double& target, double unit = 1, double least = 0) const {
    if (!has(key)) return {};
    STROBE_ASSIGN(const double value, at(key).number(least));
    target = value * unit;
    return {};
  }
  Result<void> read(const char* key, int64_t& target, int64_t least = 0) const {
    double value = static_cast<double>(target);
    STROBE_TRY(read(key, value, 1, static_cast<double>(least)));
    target = std::llround(value);
    return {};
  }
  Result<void> read(const char* key, std::string& target) const {
    if (!has(key)) return {};
    STROBE_ASSIGN(target, at(key).text());
    return {};
  }
  Result<void> read(const char* key, bool& target) const {
    if (!has(key)) return {};
    if (!node_[key].IsScalar() || !YAML::convert<bool>::decode(node_[key], target))
      return bad_data(place_ + "." + key + ": expected true or false");
    return {};
  }
  Result<std::vector<double>> numbers(double unit) const {
    std::vector<double> values;
    if (!node_.IsSequence()) return bad_data(place_ + ": expected a list of numbers");
    for (size_t i = 0; i < node_.size(); ++i) {
      STROBE_ASSIGN(const double value, Node(node_[i], place_ + "[" + std::to_string(i) + "]").number());
      values.push_back(value * unit);
    }
    return values;
  }
  // The elements of a list under a key; empty where it is absent.
  Result<std::vector<Node>> list(const char* key) const {
    std::vector<Node> elements;
    if (!has(key)) return elements;
    const YAML::Node child = node_[key];
    if (!child.IsSequence()) return bad_data(place_ + "." + key + ": expected a list");
    for (size_t i = 0; i < child.size(); ++i)
      elements.emplace_back(child[i], place_ + "." + key + "[" + std::to_string(i) + "]");
    return elements;
  }

 private:
  YAML::Node node_;
  std::string place_;
};

class Parser {
 public:
  Result<Scenario> parse(const Node& root);

 private:
  Result<void> resources(const Node& root);
  Result<void> interference(const Node& root);
  Result<void> tenant(const Node& node);
  Result<void> stage(const Node& node, Tenant& tenant);
  Result<void> operation(const Node& node, const Tenant& tenant, StageLaw& stage);
  Result<void> event(const Node& node);
  Result<void> damage(const Node& node);
  Result<Arrivals> arrivals(const Node& node);
  static Result<Law> law(const Node& node);
  Result<int32_t> resource_named(const Node& node);
  Result<int32_t> tenant_named(const Node& node);
  int32_t class_named(const std::string& name);

  Scenario scenario_;
};

// A number is so many milliseconds.
Result<Law> Parser::law(const Node& node) {
  Law law;
  if (node.is_scalar()) {
    STROBE_ASSIGN(const double ms, node.number());
    law.base_ns = ms * kMs;
    return law;
  }
  STROBE_TRY(node.expect_map({"law", "ms", "us", "units", "spread", "per_unit_us", "values_ms"}));
  std::string kind = "constant";
  STROBE_TRY(node.read("law", kind));
  static const std::map<std::string, Law::Kind> kKinds{{"constant", Law::Kind::kConstant},
                                                       {"lognormal", Law::Kind::kLognormal},
                                                       {"gamma", Law::Kind::kGamma},
                                                       {"input", Law::Kind::kInput},
                                                       {"trace", Law::Kind::kTrace}};
  const auto found = kKinds.find(kind);
  if (found == kKinds.end())
    return bad_data(node.place() + ".law: '" + kind + "', expected constant, lognormal, gamma, input or trace");
  law.kind = found->second;
  STROBE_TRY(node.read("ms", law.base_ns, kMs));
  STROBE_TRY(node.read("us", law.base_ns, kUs));
  STROBE_TRY(node.read("units", law.base_ns));
  STROBE_TRY(node.read("spread", law.spread));
  STROBE_TRY(node.read("per_unit_us", law.per_unit_ns, kUs));
  if (node.has("values_ms")) {
    STROBE_ASSIGN(law.values_ns, node.at("values_ms").numbers(kMs));
  }
  if (law.kind == Law::Kind::kTrace && law.values_ns.empty())
    return bad_data(node.place() + ": the law trace needs values_ms");
  return law;
}

Result<int32_t> Parser::resource_named(const Node& node) {
  STROBE_ASSIGN(const std::string name, node.text());
  std::vector<std::string> names;
  for (size_t i = 0; i < scenario_.resources.size(); ++i) {
    if (scenario_.resources[i].name == name) return static_cast<int32_t>(i);
    names.push_back(scenario_.resources[i].name);
  }
  return bad_data(node.place() + ": no resource '" + name + "'; " + suggest(name, names));
}

Result<int32_t> Parser::tenant_named(const Node& node) {
  STROBE_ASSIGN(const std::string name, node.text());
  std::vector<std::string> names;
  for (size_t i = 0; i < scenario_.tenants.size(); ++i) {
    if (scenario_.tenants[i].name == name) return static_cast<int32_t>(i);
    names.push_back(scenario_.tenants[i].name);
  }
  return bad_data(node.place() + ": no tenant '" + name + "'; " + suggest(name, names));
}

int32_t Parser::class_named(const std::string& name) {
  const auto found = std::find(scenario_.classes.begin(), scenario_.classes.end(), name);
  if (found != scenario_.classes.end()) return static_cast<int32_t>(found - scenario_.classes.begin());
  scenario_.classes.push_back(name);
  return static_cast<int32_t>(scenario_.classes.size() - 1);
}

Result<void> Parser::resources(const Node& root) {
  if (!root.has("resources") || !root.at("resources").raw().IsMap())
    return bad_data("resources: expected NAME: {exclusive: K} or {shared: true} or {cores: N}");
  const Node all = root.at("resources");
  for (const auto& entry : all.raw()) {
    const auto name = entry.first.as<std::string>("");
    const Node node(entry.second, "resources." + name);
    STROBE_TRY(node.expect_map({"exclusive", "shared", "cores", "policy", "unit", "quantum_us", "switch_us"}));
    if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:,-") !=
                            std::string::npos)
      return bad_data(node.place() + ": expected a name of letters, digits and _ . : , -");
    Resource resource;
    resource.name = name;
    const int given = (node.has("exclusive") ? 1 : 0) + (node.has("shared") ? 1 : 0) + (node.has("cores") ? 1 : 0);
    if (given != 1) return bad_data(node.place() + ": expected one of exclusive, shared and cores");
    if (node.has("shared")) resource.kind = Resource::Kind::kShared;
    if (node.has("cores")) resource.kind = Resource::Kind::kCores;
    STROBE_TRY(node.read("exclusive", resource.capacity, 1));
    STROBE_TRY(node.read("cores", resource.capacity, 1));
    constexpr int64_t kMostServers = 4096;
    if (resource.capacity > kMostServers) return bad_data(node.place() + ": expected at most 4096");
    const bool is_lock = name.rfind("lock:", 0) == 0 || name.rfind("copy:", 0) == 0;
    resource.policy = is_lock ? "fifo" : scenario_.policy;
    STROBE_TRY(node.read("policy", resource.policy));
    auto rule = serve_rule(resource.policy);
    if (!rule) return bad_data(node.place() + ".policy: " + rule.error().message());
    resource.serve = rule->serve;
    resource.by_stage = !is_lock && !node.has("quantum_us");
    resource.gives_way = rule->gives_way;
    if (node.has("unit")) {
      STROBE_ASSIGN(const std::string unit, node.at("unit").text());
      if (unit != "stage" && unit != "layer" && unit != "give-way")
        return bad_data(node.place() + ".unit: expected stage, layer or give-way");
      resource.by_stage = unit != "layer";
      resource.gives_way = unit == "give-way";
    }
    STROBE_TRY(node.read("quantum_us", resource.quantum_ns, kUs));
    STROBE_TRY(node.read("switch_us", resource.switch_ns, kUs));
    scenario_.resources.push_back(std::move(resource));
  }
  return {};
}

Result<void> Parser::interference(const Node& root) {
  STROBE_TRY(root.read("saturation", scenario_.saturation));
  std::vector<std::tuple<int32_t, int32_t, double>> pairs;
  if (root.has("interference")) {
    const Node table = root.at("interference");
    if (!table.raw().IsMap()) return bad_data("interference: expected CLASS: {CLASS: a}");
    for (const auto& row : table.raw()) {
      const Node cells(row.second, "interference." + row.first.as<std::string>(""));
      if (!cells.raw().IsMap()) return bad_data(cells.place() + ": expected CLASS: a");
      for (const auto& cell : cells.raw()) {
        const auto beside = cell.first.as<std::string>("");
        STROBE_ASSIGN(const double a, Node(cell.second, cells.place() + "." + beside).number());
        pairs.emplace_back(class_named(row.first.as<std::string>("")), class_named(beside), a);
      }
    }
  }
  const size_t count = scenario_.classes.size();
  scenario_.interference.assign(count, std::vector<double>(count, 0));
  for (const auto& [slowed, beside, a] : pairs)
    scenario_.interference[static_cast<size_t>(slowed)][static_cast<size_t>(beside)] = a;
  return {};
}

Result<Arrivals> Parser::arrivals(const Node& node) {
  STROBE_TRY(node.expect_map({"law", "rate_hz", "phase_ms", "jitter_ms", "burst", "gap_ms", "stamps_ms"}));
  Arrivals made;
  std::string law = node.has("stamps_ms") ? "trace" : "periodic";
  STROBE_TRY(node.read("law", law));
  static const std::map<std::string, Arrivals::Kind> kKinds{{"periodic", Arrivals::Kind::kPeriodic},
                                                            {"poisson", Arrivals::Kind::kPoisson},
                                                            {"burst", Arrivals::Kind::kBurst},
                                                            {"trace", Arrivals::Kind::kTrace}};
  const auto found = kKinds.find(law);
  if (found == kKinds.end())
    return bad_data(node.place() + ".law: '" + law + "', expected periodic, poisson, burst or trace");
  made.kind = found->second;
  double rate_hz = 0;
  STROBE_TRY(node.read("rate_hz", rate_hz));
  constexpr double kMostHz = 1e6;
  if (made.kind != Arrivals::Kind::kTrace && (rate_hz <= 0 || rate_hz > kMostHz))
    return bad_data(node.place() + ".rate_hz: expected a rate above 0, at most 1e6");
  if (rate_hz > 0) made.period_ns = kSecond / rate_hz;
  STROBE_TRY(node.read("phase_ms", made.phase_ns, kMs));
  STROBE_TRY(node.read("jitter_ms", made.jitter_ns, kMs));
  STROBE_TRY(node.read("burst", made.burst, 1));
  constexpr int64_t kMostBurst = 100'000;
  made.burst = std::min(made.burst, kMostBurst);
  STROBE_TRY(node.read("gap_ms", made.gap_ns, kMs));
  if (made.kind == Arrivals::Kind::kBurst) made.period_ns *= static_cast<double>(made.burst);
  if (node.has("stamps_ms")) {
    STROBE_ASSIGN(made.stamps_ns, node.at("stamps_ms").numbers(kMs));
  }
  return made;
}

Result<void> Parser::operation(const Node& node, const Tenant& tenant, StageLaw& stage) {
  STROBE_TRY(node.expect_map({"name", "class", "resource", "count", "service"}));
  OperationLaw operation;
  operation.name = stage.name;
  STROBE_TRY(node.read("name", operation.name));
  std::string kind = "compute";
  int64_t count = 1;
  STROBE_TRY(node.read("count", count, 1));
  if (static_cast<int64_t>(stage.operations.size()) + count > kMostOperations)
    return bad_data(node.place() + ": more than " + std::to_string(kMostOperations) + " operations in a stage");
  if (node.has("resource")) {
    STROBE_ASSIGN(operation.resource, resource_named(node.at("resource")));
  } else if (tenant.cpu >= 0) {
    operation.resource = tenant.cpu;
  } else {
    return bad_data(node.place() + ": expected a resource, as the tenant has no cpu");
  }
  if (scenario_.resources[static_cast<size_t>(operation.resource)].kind == Resource::Kind::kCores) kind = "cpu";
  STROBE_TRY(node.read("class", kind));
  operation.kind = class_named(kind);
  if (!node.has("service")) return bad_data(node.place() + ": expected a service time");
  STROBE_ASSIGN(operation.service, law(node.at("service")));
  for (int64_t i = 0; i < count; ++i) {
    stage.operations.push_back(operation);
    if (count > 1) stage.operations.back().name += "_" + std::to_string(i);
  }
  return {};
}

Result<void> Parser::stage(const Node& node, Tenant& tenant) {
  STROBE_TRY(node.expect_map({"name", "thread", "queue", "after", "operations", "class", "resource", "service"}));
  StageLaw stage;
  STROBE_TRY(node.read("name", stage.name));
  if (stage.name.empty()) return bad_data(node.place() + ": expected a name");
  int64_t thread = tenant.stages.empty() ? 0 : tenant.stages.back().thread;
  STROBE_TRY(node.read("thread", thread));
  constexpr int64_t kMostThreads = 256;
  if (thread >= kMostThreads) return bad_data(node.place() + ".thread: expected 0 to 255");
  stage.thread = static_cast<int32_t>(thread);
  STROBE_TRY(node.read("queue", stage.queue));
  if (node.has("after")) {
    STROBE_ASSIGN(const std::vector<Node> names, node.list("after"));
    for (const Node& name : names) {
      STROBE_ASSIGN(const std::string text, name.text());
      const auto found = std::find_if(tenant.stages.begin(), tenant.stages.end(),
                                      [&text](const StageLaw& before) { return before.name == text; });
      if (found == tenant.stages.end()) return bad_data(name.place() + ": no stage '" + text + "' before this one");
      stage.after.push_back(static_cast<int32_t>(found - tenant.stages.begin()));
    }
  } else if (!tenant.stages.empty()) {
    stage.after.push_back(static_cast<int32_t>(tenant.stages.size() - 1));
  }
  if (!tenant.stages.empty() && stage.after.empty())
    return bad_data(node.place() + ".after: only the first stage comes after nothing");
  STROBE_ASSIGN(const std::vector<Node> operations, node.list("operations"));
  for (const Node& one : operations) STROBE_TRY(operation(one, tenant, stage));
  if (node.has("service")) {  // a stage of one operation
    const YAML::Node& raw = node.raw();
    YAML::Node only(YAML::NodeType::Map);
    for (const char* key : {"class", "resource", "service"})
      if (raw[key].IsDefined()) only[key] = raw[key];
    STROBE_TRY(operation(Node(only, node.place()), tenant, stage));
  }
  if (stage.operations.empty()) return bad_data(node.place() + ": expected operations, or a service time");
  tenant.stages.push_back(std::move(stage));
  return {};
}

Result<void> Parser::tenant(const Node& node) {
  STROBE_TRY(node.expect_map({"name", "priority", "cpu", "arrivals", "comm", "input", "deadline_ms", "queue_depth",
                              "drop", "workers", "model", "model_type", "stages"}));
  Tenant tenant;
  STROBE_TRY(node.read("name", tenant.name));
  if (tenant.name.empty() ||
      tenant.name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") !=
          std::string::npos)
    return bad_data(node.place() + ".name: expected letters, digits and _ . -");
  for (const char* taken : tenant_words::kTakenNames)
    if (tenant.name == taken)
      return bad_data(node.place() + ".name: '" + tenant.name + "': blame has another meaning for it");
  for (const Tenant& other : scenario_.tenants)
    if (other.name == tenant.name) return bad_data(node.place() + ".name: '" + tenant.name + "' is there already");
  constexpr double kAnyPriority = -1e9;
  STROBE_TRY(node.read("priority", tenant.priority, 1, kAnyPriority));
  if (node.has("cpu")) {
    STROBE_ASSIGN(tenant.cpu, resource_named(node.at("cpu")));
    if (scenario_.resources[static_cast<size_t>(tenant.cpu)].kind != Resource::Kind::kCores)
      return bad_data(node.place() + ".cpu: expected a resource of cores");
  }
  if (!node.has("arrivals")) return bad_data(node.place() + ": expected arrivals");
  STROBE_ASSIGN(tenant.arrivals, arrivals(node.at("arrivals")));
  if (node.has("comm")) {
    STROBE_ASSIGN(tenant.comm, law(node.at("comm")));
  }
  if (node.has("input")) {
    STROBE_ASSIGN(tenant.input, law(node.at("input")));
  }
  STROBE_TRY(node.read("deadline_ms", tenant.deadline_ns, kMs));
  STROBE_TRY(node.read("queue_depth", tenant.queue_depth));
  std::string drop = "never";
  STROBE_TRY(node.read("drop", drop));
  if (drop != "never" && drop != "oldest" && drop != "newest")
    return bad_data(node.place() + ".drop: '" + drop + "', expected never, oldest or newest");
  tenant.drop = drop == "never" ? Drop::kNever : drop == "oldest" ? Drop::kOldest : Drop::kNewest;
  STROBE_TRY(node.read("workers", tenant.workers, 1));
  constexpr int64_t kMostWorkers = 256;
  if (tenant.workers > kMostWorkers) return bad_data(node.place() + ".workers: expected at most 256");
  STROBE_TRY(node.read("model", tenant.model));
  STROBE_TRY(node.read("model_type", tenant.model_type));
  STROBE_ASSIGN(const std::vector<Node> stages, node.list("stages"));
  for (const Node& one : stages) STROBE_TRY(stage(one, tenant));
  if (tenant.stages.empty()) return bad_data(node.place() + ": expected stages");
  scenario_.tenants.push_back(std::move(tenant));
  return {};
}

Result<void> Parser::event(const Node& node) {
  STROBE_TRY(node.expect_map(
      {"kind", "resource", "tenant", "threads", "from_s", "to_s", "every_ms", "for_ms", "factor", "recorded"}));
  std::string kind;
  STROBE_TRY(node.read("kind", kind));
  double from_ns = 0, to_ns = 0;
  STROBE_TRY(node.read("from_s", from_ns, kSecond));
  STROBE_TRY(node.read("to_s", to_ns, kSecond));
  const double end_ns = to_ns > 0 ? to_ns : scenario_.duration_ns;
  if (end_ns < from_ns) return bad_data(node.place() + ": to_s lies before from_s");
  const auto need = [&node](const char* key) -> Result<void> {
    if (node.has(key)) return {};
    return bad_data(node.place() + ": expected the key " + key);
  };
  if (kind == "gap") {
    STROBE_TRY(need("tenant"));
    STROBE_ASSIGN(const int32_t tenant, tenant_named(node.at("tenant")));
    scenario_.gaps.push_back({tenant, from_ns, end_ns});
    return {};
  }
  if (kind != "hog" && kind != "recorder" && kind != "slow")
    return bad_data(node.place() + ".kind: '" + kind + "', expected hog, recorder, slow or gap");
  STROBE_TRY(need("resource"));
  STROBE_ASSIGN(const int32_t resource, resource_named(node.at("resource")));
  if (kind == "slow") {
    Slowdown slowdown{resource, from_ns, end_ns, 1};
    constexpr double kLeast = 0.01;
    STROBE_TRY(node.read("factor", slowdown.factor, 1, kLeast));
    scenario_.slowdowns.push_back(slowdown);
    return {};
  }
  if (scenario_.resources[static_cast<size_t>(resource)].kind != Resource::Kind::kCores)
    return bad_data(node.place() + ".resource: expected one of cores");
  Load load{kind == "recorder", resource, 1, from_ns, to_ns, 0, 0, true};
  STROBE_TRY(node.read("threads", load.threads, 1));
  STROBE_TRY(node.read("every_ms", load.every_ns, kMs));
  STROBE_TRY(node.read("for_ms", load.for_ns, kMs));
  STROBE_TRY(node.read("recorded", load.is_recorded));
  constexpr double kLeastPeriod = 1e3;
  if (load.every_ns > 0 && (load.for_ns <= 0 || load.for_ns >= load.every_ns || load.every_ns < kLeastPeriod))
    return bad_data(node.place() + ": for_ms lies between 0 and every_ms, which is at least 0.001");
  scenario_.loads.push_back(load);
  return {};
}

Result<void> Parser::damage(const Node& node) {
  STROBE_TRY(node.expect_map({"sigma_us", "lost", "missing_flows", "wrong_clock", "offset_us", "says_losses"}));
  Damage& damage = scenario_.damage;
  STROBE_TRY(node.read("sigma_us", damage.sigma_ns, kUs));
  STROBE_TRY(node.read("lost", damage.lost));
  STROBE_TRY(node.read("missing_flows", damage.missing_flows));
  STROBE_TRY(node.read("says_losses", damage.says_losses));
  if (damage.lost > 1 || damage.missing_flows > 1) return bad_data(node.place() + ": expected shares of 0 to 1");
  if (node.has("wrong_clock")) {
    STROBE_ASSIGN(damage.wrong_tenant, tenant_named(node.at("wrong_clock")));
  }
  constexpr double kAny = -1e9;
  return node.read("offset_us", damage.offset_ns, kUs, kAny);
}

Result<Scenario> Parser::parse(const Node& root) {
  STROBE_TRY(root.expect_map(
      {"seed", "duration_s", "policy", "resources", "interference", "saturation", "tenants", "events", "recording"}));
  int64_t seed = 1;
  STROBE_TRY(root.read("seed", seed));
  scenario_.seed = static_cast<uint64_t>(seed);
  constexpr double kShortest = 1e-6;
  STROBE_TRY(root.read("duration_s", scenario_.duration_ns, kSecond, kShortest));
  constexpr double kLongest = 1e14;
  if (scenario_.duration_ns > kLongest) return bad_data("duration_s: expected at most 100000");
  STROBE_TRY(root.read("policy", scenario_.policy));
  if (auto rule = serve_rule(scenario_.policy); !rule) return bad_data("policy: " + rule.error().message());
  STROBE_TRY(resources(root));
  STROBE_ASSIGN(const std::vector<Node> tenants, root.list("tenants"));
  for (const Node& node : tenants) STROBE_TRY(tenant(node));
  if (scenario_.tenants.empty()) return bad_data("tenants: expected a list of at least one");
  double frames = 0;
  for (const Tenant& one : scenario_.tenants)
    frames += scenario_.duration_ns / one.arrivals.period_ns * static_cast<double>(one.arrivals.burst);
  constexpr double kMostFrames = 2e7;
  if (frames > kMostFrames) return bad_data("tenants: more than 20 million frames in duration_s");
  STROBE_TRY(interference(root));
  STROBE_ASSIGN(const std::vector<Node> events, root.list("events"));
  for (const Node& node : events) STROBE_TRY(event(node));
  if (root.has("recording")) STROBE_TRY(damage(root.at("recording")));
  return std::move(scenario_);
}

}  // namespace

Result<Scenario> parse_scenario(const std::string& yaml) {
  try {
    const YAML::Node root = YAML::Load(yaml);
    if (!root.IsMap()) return bad_data("expected a scenario (docs/simulate.md)");
    return Parser().parse(Node(root, "scenario"));
  } catch (const YAML::Exception& fault) {
    return bad_data("line " + std::to_string(fault.mark.line + 1) + ": " + fault.msg);
  }
}

}  // namespace strobe::simulate
