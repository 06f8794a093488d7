// What `strobe sensors replay` and `publish` share: the printing of what was sent.
#pragma once

#include "report/table_format.h"
#include "sensors/dds_replay.h"

namespace strobe::app {

// title: "Replay of drive.mcap". notes: sentences that stand below.
void print_sent(const std::string& title, const sensors::ReplaySummary& summary, std::vector<std::string> notes,
                report::Format format);

// "all", "udp", "shared-memory". Errors: kUsage.
Result<sensors::DdsTransport> parse_transport(const std::string& name);

}  // namespace strobe::app
