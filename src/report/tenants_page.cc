#include "report/tenants_page.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "analyze/blame.h"
#include "analyze/grid_effects.h"
#include "analyze/tenant_frames.h"
#include "analyze/tenant_tables.h"
#include "report/packing.h"
#include "report/run_json.h"

namespace strobe::report {

using nlohmann::ordered_json;

namespace {

constexpr int64_t kLayersShown = 16;  // of a tenant: the longest

// {tenant: {"n", "outcome": [texts], "frame": base64 varints, "stamp_s", "latency_ms", ...: base64 float32}}; NaN is a
// missing time.
ordered_json frames_json(const Table& table) {
  std::map<std::string, std::vector<size_t>> rows;
  for (size_t row = 0; row < table.row_count(); ++row) rows[table.text(row, "tenant")].push_back(row);
  ordered_json out = ordered_json::object();
  for (const auto& [tenant, chosen] : rows) {
    ordered_json one = {{"n", chosen.size()}, {"outcome", ordered_json::array()}};
    VarintWriter ids;
    int64_t before = 0;
    for (const size_t row : chosen) {
      one["outcome"].push_back(table.text(row, "outcome"));
      const auto id = static_cast<int64_t>(table.number(row, "frame").value_or(0));
      ids.add_signed(id - before);
      before = id;
    }
    one["frame"] = ids.base64();
    for (const Column& column : table.columns()) {
      if (column.name == "tenant" || column.name == "outcome" || column.name == "frame") continue;
      std::vector<float> values;
      values.reserve(chosen.size());
      for (const size_t row : chosen)
        values.push_back(
            static_cast<float>(table.number(row, column.name).value_or(std::numeric_limits<double>::quiet_NaN())));
      one[column.name] = base64_floats(values);
    }
    out[tenant] = std::move(one);
  }
  return out;
}

Table longest_layers(const Table& all) {
  Table table(all.title(), all.columns());
  std::map<std::string, int64_t> shown;
  size_t left_out = 0;
  for (size_t row = 0; row < all.row_count(); ++row) {
    if (++shown[all.text(row, "tenant")] <= kLayersShown)
      table.add_row(all.rows()[row]);
    else
      ++left_out;
  }
  if (left_out > 0)
    table.notes.push_back("the longest " + std::to_string(kLayersShown) + " of each tenant; " +
                          std::to_string(left_out) + " more are in layer_timings_<i>.csv");
  return table;
}

}  // namespace

Result<TenantRun> tenant_run(std::string label, const trace::Timeline& timeline) {
  STROBE_ASSIGN(analyze::TenantTrace trace, analyze::tenant_trace(timeline));
  TenantRun run;
  run.label = std::move(label);
  run.notes = analyze::repeated_input_notes(trace);
  STROBE_ASSIGN(auto groups, analyze::latency_groups(timeline, "frame"));
  run.latencies = {analyze::experiment_factors(timeline), std::move(groups), run.label};
  run.data = {{"policy", analyze::serve_policy_name(trace.policy)},
              {"isolation", trace.isolation},
              {"frames", frames_json(analyze::tenant_frames(trace, timeline))},
              {"summary", table_json(analyze::tenant_summary(trace))},
              {"layers", table_json(longest_layers(analyze::layer_spread(trace, timeline)))}};
  const analyze::BlameAnalysis blame = analyze::blame(std::move(trace));
  run.data["blame"] = {{"all", table_json(blame_matrix(blame, analyze::BlameOf::kAll, false))},
                       {"misses", table_json(blame_matrix(blame, analyze::BlameOf::kMisses, false))},
                       {"tail", table_json(blame_matrix(blame, analyze::BlameOf::kTail, false))}};
  run.data["resources"] = table_json(blame_cells(blame, analyze::BlameOf::kAll));
  run.data["sentences"] = blame_sentences(blame);
  return run;
}

ordered_json tenants_json(const TenantsPage& page) {
  ordered_json out = {{"runs", ordered_json::array()}};
  std::vector<analyze::RunLatencies> latencies;
  for (const TenantRun& run : page.runs) {
    out["runs"].push_back({{"label", run.label},
                           {"status", run.status},
                           {"reason", run.reason},
                           {"notes", run.notes},
                           {"factors", run.latencies.factors},
                           {"data", run.data}});
    if (!run.data.is_null()) latencies.push_back(run.latencies);
  }
  if (latencies.size() > 1) {
    ordered_json& grid = out["grid"];
    grid["cells"] = table_json(analyze::grid_cells(latencies));
    grid["levels"] = table_json(analyze::grid_levels(latencies));
    if (const auto shares = analyze::variation_sources(latencies)) grid["shares"] = table_json(*shares);
    if (const auto effects = analyze::main_effects(latencies, {})) grid["effects"] = table_json(*effects);
    grid["interactions"] = table_json(analyze::interactions(latencies, {}));
  }
  out["streams"] = streams_json(page.streams);
  out["scenes"] = scenes_json(page.scenes);
  return out;
}

}  // namespace strobe::report
