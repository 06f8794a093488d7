#include "simulate/laws.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace strobe::simulate {

double Random::normal() {
  // Box and Muller; one of the two.
  const double u = 1.0 - uniform(), v = uniform();
  constexpr double kTwoPi = 6.283185307179586;
  return std::sqrt(-2 * std::log(u)) * std::cos(kTwoPi * v);
}

uint64_t mixed(uint64_t a, uint64_t b) {
  return Random(a ^ (b * 0xD1342543DE82EF95ULL + 0x2545F4914F6CDD1DULL))();
}

uint64_t text_seed(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash;
}

double draw(const Law& law, Random random, int64_t frame, double units) {
  double value = law.base_ns;
  switch (law.kind) {
    case Law::Kind::kConstant:
      break;
    case Law::Kind::kLognormal:
      value *= std::exp(law.spread * random.normal());
      break;
    case Law::Kind::kGamma:
      if (law.spread > 0 && law.base_ns > 0) {
        const double shape = 1 / (law.spread * law.spread);
        value = std::gamma_distribution<double>(shape, law.base_ns / shape)(random);
      }
      break;
    case Law::Kind::kInput:
      value += law.per_unit_ns * units;
      break;
    case Law::Kind::kTrace:
      if (!law.values_ns.empty()) value = law.values_ns[static_cast<size_t>(frame) % law.values_ns.size()];
      break;
  }
  return std::max(0.0, value);
}

std::vector<double> stamps(const Arrivals& arrivals, double duration_ns, Random random) {
  std::vector<double> all;
  constexpr size_t kMost = 50'000'000;
  switch (arrivals.kind) {
    case Arrivals::Kind::kPeriodic:
      for (int64_t i = 0; all.size() < kMost; ++i) {
        const double due = arrivals.phase_ns + static_cast<double>(i) * arrivals.period_ns;
        if (due >= duration_ns) break;
        const double half = arrivals.period_ns / 2;
        all.push_back(due + std::clamp(arrivals.jitter_ns * random.normal(), -half, half));
      }
      break;
    case Arrivals::Kind::kPoisson:
      for (double at = arrivals.phase_ns; all.size() < kMost;) {
        at -= arrivals.period_ns * std::log(1.0 - random.uniform());
        if (at >= duration_ns) break;
        all.push_back(at);
      }
      break;
    case Arrivals::Kind::kBurst:
      for (double at = arrivals.phase_ns; at < duration_ns && all.size() < kMost; at += arrivals.period_ns)
        for (int64_t i = 0; i < arrivals.burst; ++i) all.push_back(at + static_cast<double>(i) * arrivals.gap_ns);
      break;
    case Arrivals::Kind::kTrace:
      all = arrivals.stamps_ns;
      break;
  }
  std::erase_if(all, [&](double at) { return at < 0 || at >= duration_ns; });
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace strobe::simulate
