#include "analyze/answers.h"

#include <utility>

#include "analyze/blame.h"
#include "analyze/deadlines.h"
#include "analyze/kernel_metrics.h"
#include "analyze/kernels.h"
#include "analyze/launches.h"
#include "analyze/memcpy.h"
#include "analyze/predictability.h"
#include "analyze/rules.h"
#include "analyze/stats.h"
#include "analyze/tenant_tables.h"

namespace strobe::analyze {

namespace {

template <typename Add>
void add_of_tenants(const trace::Timeline& timeline, const Add& add) {
  auto trace = tenant_trace(timeline);
  if (!trace) return;
  add("tenants", tenant_summary(*trace));
  add("blame", blame_matrix(blame(std::move(*trace)), BlameOf::kAll, false));
  if (auto misses = deadlines(timeline, {})) {
    add("deadlines", std::move(misses->reasons));
    add("budget", std::move(misses->budget));
  }
  if (auto groups = latency_groups(timeline, "frame"))
    if (auto spread = predictability(timeline, *groups, {})) {
      if (spread->tail_account) add("tail", std::move(*spread->tail_account));
      add("bounds", std::move(spread->tail));
    }
}

}  // namespace

std::vector<Answer> answers(const trace::Timeline& timeline, const AnswerOptions& options) {
  std::vector<Answer> all;
  const auto add = [&all](const char* key, Table table) {
    if (table.row_count() > 0) all.push_back({key, std::move(table)});
  };
  if (is_tenant_trace(timeline)) add_of_tenants(timeline, add);
  add("stages", stats(timeline, {StatsBy::kStage, options.top, {}}));
  add("ranges", stats(timeline, {StatsBy::kRange, options.top, {}}));
  if (!timeline.device_ops.empty()) {
    const IdleOptions idle_options{.rules = options.rules};
    add("device_time", idle(timeline, idle_options));
    add("work", work_types(timeline, idle_options));
    add("kernels", kernels(timeline, {.top = options.top, .filter = {}}));
    add("counters", kernel_metrics(timeline, {.top = options.top, .filter = {}}));
    add("copies", memcpy_table(timeline));
    add("launches", launches(timeline, options.rules));
  }
  add("findings", rules(timeline, {}));
  for (const Table& table : timeline.tables) add("imported", table);
  return all;
}

}  // namespace strobe::analyze
