#include "analyze/notes.h"

namespace strobe::analyze {

std::string count_of(uint64_t count, const char* singular, const char* plural) {
  return std::to_string(count) + " " + (count == 1 ? singular : plural);
}

void note_losses(const trace::Timeline& timeline, Table& table) {
  if (timeline.losses.dropped_records > 0)
    table.notes.push_back(count_of(timeline.losses.dropped_records, "record was", "records were") +
                          " dropped while recording: figures may be off");
  for (const auto& [kind, count] : timeline.losses.faults)
    table.notes.push_back("the recording has " + std::to_string(count) + " x " + kind + ": figures may be off");
}

}  // namespace strobe::analyze
