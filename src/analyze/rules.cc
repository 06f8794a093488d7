#include "analyze/rules.h"

#include <algorithm>

#include "analyze/cells.h"
#include "analyze/notes.h"
#include "analyze/rules_findings.h"

namespace strobe::analyze {

Table rules(const trace::Timeline& timeline, const RulesOptions& options) {
  Table table("Findings", {{"rule", "what was looked for"},
                           {"where", "name, or what the host did"},
                           {"count", "how often", 0},
                           {"ns", "time at stake", 0},
                           {"share", "of the trace's duration"},
                           {"why", "why it matters", 3, true},
                           {"next_step", "what to try", 3, true}});
  Findings findings;
  find_calls(timeline, findings);
  find_device(timeline, options, findings);
  find_pipeline(timeline, findings);
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) { return a.ns > b.ns; });
  int64_t duration = timeline.duration_ns;
  for (const int64_t end : timeline.ranges.end_ns) duration = std::max(duration, end);
  for (Finding& finding : findings)
    table.add_row(
        {std::string(finding.rule), std::move(finding.where), finding.count, finding.ns,
         cell_if(duration > 0, static_cast<double>(finding.ns) / static_cast<double>(std::max<int64_t>(1, duration))),
         std::string(finding.why), std::string(finding.next_step)});
  if (findings.empty()) table.notes.emplace_back("no rule found anything");
  note_losses(timeline, table);
  return table;
}

}  // namespace strobe::analyze
