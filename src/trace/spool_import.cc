#include "trace/spool_import.h"

#include <algorithm>

#include "record/spool_reader.h"
#include "trace/spool_timeline.h"

namespace strobe::trace {

Result<Timeline> import_spool(const std::filesystem::path& folder) {
  SpoolTimeline events;
  STROBE_ASSIGN(const record::SpoolSummary summary,
                record::read_spool(folder, [&events](const record::SpoolThread& thread,
                                                     const record::SpoolEvent& event) { events.add(thread, event); }));
  Timeline timeline = events.take();
  timeline.losses.dropped_records = std::max(timeline.losses.dropped_records, summary.dropped);
  for (const auto& [kind, count] : summary.faults) timeline.losses.faults[kind] += count;
  for (const auto& [key, value] : summary.facts) timeline.facts.emplace("recorder." + key, value);
  return timeline;
}

}  // namespace strobe::trace
