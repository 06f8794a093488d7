#pragma once

#include "base/table.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// Says in the table what the recording lost or could not read: such figures may be off.
void note_losses(const trace::Timeline& timeline, Table& table);

// "1 frame", "2 frames".
std::string count_of(uint64_t count, const char* singular, const char* plural);

}  // namespace strobe::analyze
