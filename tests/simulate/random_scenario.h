// Scenarios drawn by seed: 2 to 4 tenants on one device, and what else they share.
#pragma once

#include <string>
#include <vector>

#include "simulate/laws.h"
#include "simulate/scenario.h"

namespace strobe::test {

struct Variety {
  std::string policy = "fifo";  // of the exclusive device
  bool is_shared = false;       // instead of an exclusive one
  bool on_cores = false;        // decode on two cores that they share
  bool in_pipelines = false;    // inference on another thread, behind a bounded queue
  bool in_branches = false;     // two branches side by side, then a fusion
  bool by_layer = false;        // the device is offered after each layer
  int64_t servers = 1;
  double quantum_us = 0, switch_us = 0;
  double load = 0.7;  // of the device
  double sigma_us = 0;
  double seconds = 4;
  int tenants = 0;  // 0: 2 to 4
};

inline simulate::Scenario random_scenario(uint64_t seed, const Variety& variety) {
  using namespace simulate;
  Random random(mixed(seed, 77));
  const auto between = [&random](double low, double high) { return low + (high - low) * random.uniform(); };
  Scenario scenario;
  scenario.seed = seed;
  scenario.duration_ns = variety.seconds * 1e9;
  scenario.policy = variety.is_shared ? "concurrent" : variety.policy;
  scenario.classes = {"compute", "bandwidth", "copy", "cpu"};
  scenario.interference.assign(4, std::vector<double>(4, 0));
  if (variety.is_shared)
    for (size_t i = 0; i < 2; ++i)
      for (size_t k = 0; k < 2; ++k) scenario.interference[i][k] = between(0.2, 0.9);
  Resource device;
  device.name = "device";
  device.kind = variety.is_shared ? Resource::Kind::kShared : Resource::Kind::kExclusive;
  device.capacity = variety.servers;
  device.policy = variety.policy;
  const ServeRule rule = serve_rule(variety.policy).value();
  device.serve = rule.serve;
  device.gives_way = rule.gives_way;
  device.by_stage = !variety.by_layer && variety.quantum_us == 0;
  device.quantum_ns = variety.quantum_us * 1e3;
  device.switch_ns = variety.switch_us * 1e3;
  scenario.resources.push_back(device);
  Resource copy;
  copy.name = "copy:h2d";
  scenario.resources.push_back(copy);
  Resource cores;
  cores.name = "cpu:0-1";
  cores.kind = Resource::Kind::kCores;
  cores.capacity = 2;
  scenario.resources.push_back(cores);
  Resource lock;
  lock.name = "lock:buffers";
  scenario.resources.push_back(lock);
  const auto lognormal = [](double ms, double spread) { return Law{Law::Kind::kLognormal, ms * 1e6, spread, 0, {}}; };
  const int count = variety.tenants > 0 ? variety.tenants : 2 + static_cast<int>(random.uniform() * 3);
  const char* names[] = {"a", "b", "c", "d"};
  for (int i = 0; i < count; ++i) {
    Tenant tenant;
    tenant.name = names[i];
    tenant.priority = static_cast<double>(i % 3);
    tenant.cpu = 2;
    const double work_ms = between(5, 15);
    const double period_ms = work_ms * count / variety.load / static_cast<double>(variety.servers);
    tenant.arrivals.kind = random.uniform() < 0.3 ? Arrivals::Kind::kPoisson : Arrivals::Kind::kPeriodic;
    tenant.arrivals.period_ns = period_ms * 1e6;
    tenant.arrivals.phase_ns = between(0, period_ms) * 1e6;
    tenant.arrivals.jitter_ns = between(0.1, 1) * 1e6;
    tenant.comm = Law{Law::Kind::kGamma, between(0.1, 0.5) * 1e6, 0.5, 0, {}};
    tenant.deadline_ns = between(1.2, 3) * period_ms * 1e6;
    StageLaw decode, infer, post;
    decode.name = "decode";
    if (variety.on_cores) {
      decode.operations.push_back({"decode", 3, 2, lognormal(work_ms * between(0.3, 0.8), 0.2)});
    } else {
      decode.operations.push_back({"take", 3, 3, lognormal(between(0.1, 0.4), 0.3)});
      decode.operations.push_back({"upload", 2, 1, lognormal(between(0.2, 0.8), 0.3)});
    }
    infer.name = "infer";
    infer.after = {0};
    const int layers = 5 + static_cast<int>(random.uniform() * 25);
    const int32_t kind = random.uniform() < 0.5 ? 0 : 1;
    for (int k = 0; k < layers; ++k)
      infer.operations.push_back({"layer_" + std::to_string(k), kind, 0, lognormal(work_ms / layers, 0.4)});
    infer.thread = variety.in_pipelines || variety.in_branches ? 1 : 0;
    infer.queue = variety.in_pipelines ? 2 : 0;
    post.name = "post";
    post.after = {1};
    post.thread = infer.thread;
    post.operations.push_back({"boxes", 2, 1, lognormal(0.2, 0.2)});
    tenant.stages = {decode, infer};
    if (variety.in_branches) {
      StageLaw other = infer;
      other.name = "second";
      other.thread = 2;
      for (OperationLaw& operation : other.operations) operation.service.base_ns *= 0.6;
      tenant.stages.push_back(other);
      post.after = {1, 2};
    }
    tenant.stages.push_back(post);
    scenario.tenants.push_back(std::move(tenant));
  }
  scenario.damage.sigma_ns = variety.sigma_us * 1e3;
  return scenario;
}

}  // namespace strobe::test
