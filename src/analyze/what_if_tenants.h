// What would have happened to tenants if: a replay of their trace with a change (docs/analysis-definitions.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/tenant_replay.h"
#include "base/table.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// Which operations a change is about: all whose every given part fits.
struct TenantSelector {
  std::string tenant, stage, layer, kernel, resource, kind;  // kernel: a regular expression, searched for
  std::string text() const;
};

struct TenantScale {
  TenantSelector what;
  double factor = 1;
};

struct TenantWhatIfOptions {
  std::vector<TenantScale> scales;
  std::vector<TenantSelector> removed;
  std::vector<std::pair<std::string, double>> priorities, rates;  // by tenant; rates: pictures or frames a second
  std::optional<ServePolicy> policy;
  std::optional<int64_t> cores;
  std::optional<Calibration> calibration;  // instead of what the trace says of interference
  bool add_copy = false;                   // one more copy engine
  bool sweep = false;
  uint64_t seed = 1;
};

// "tenant=a,stage=infer" (also layer=, kernel=, resource=, class=), or the older "stage:infer". Errors: kUsage.
Result<TenantSelector> parse_tenant_selector(const std::string& text);
// "tenant=a,stage=infer:0.5", or the older "stage:infer=0.5". Errors: kUsage.
Result<TenantScale> parse_tenant_scale(const std::string& text);
// "tenant=a:2". Errors: kUsage.
Result<std::pair<std::string, double>> parse_tenant_value(const std::string& flag, const std::string& text);

struct LatencyFigures {
  size_t frames = 0, due = 0;
  double p50_ms = 0, p95_ms = 0, p99_ms = 0, max_ms = 0, mean_ms = 0;  // NaN without frames
  double miss_rate = 0;                                                // of those due: late, dropped, lost
  double frames_per_second = 0;
};

struct TenantAnswer {
  std::string tenant;  // empty: all together
  LatencyFigures measured, before, after;
  // After the change by the baselines: every resource split equally; nobody in anybody's way.
  LatencyFigures equal_share, no_interference;
  double p50_error = 0, p99_error = 0;  // of the replay without any change, as a share of what was measured
  // 95 % interval of the figures after the change; nothing below 10 (p50) or 100 (p99) frames.
  std::optional<std::pair<double, double>> p50_ci_ms, p99_ci_ms;
};

struct TenantWhatIf {
  TenantAnswer all;
  std::vector<TenantAnswer> tenants;
  bool is_reliable = false;  // no tenant's replay is off by more than 3 % at p50, 10 % at p99
  std::vector<std::string> notes;
  std::optional<Table> sweep;
  Table table() const;
};

// Errors: kNotFound (nothing selected, no such tenant), kUsage (a change that this trace does not allow), and those of
// tenant_trace.
Result<TenantWhatIf> what_if_tenants(const trace::Timeline& timeline, const TenantWhatIfOptions& options);

// The figures of a replay, of one tenant or (kNone) of all.
LatencyFigures figures_of(const ReplayModel& model, const ReplayResult& result, int32_t tenant);
// Every resource that policies are about is served by this one from now on.
void use_policy(ReplayModel& model, ServePolicy policy);

}  // namespace strobe::analyze
