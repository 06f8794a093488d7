// Links: strobe_sensors
// Bytes as an MCAP file: its contents, its messages in both orders, everything as a listing.
#include <cstdint>
#include <cstdlib>

#include "sensors/mcap_listing.h"
#include "sensors/mcap_reader.h"

using namespace strobe::sensors;

namespace {

// The number of messages.
size_t walk(const McapReader& reader, McapQuery::Order order) {
  McapQuery query;
  query.order = order;
  McapMessages messages = reader.messages(query);
  McapMessageView message;
  size_t count = 0;
  uint64_t sum = 0;
  while (messages.next(message).value()) {
    for (const uint8_t byte : message.data) sum += byte;
    if (message.channel == nullptr || sum > UINT64_MAX / 2) std::abort();
    ++count;
  }
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ByteView bytes(data, size);
  // Without CRCs damage gets as far as it can.
  for (const bool verify : {true, false}) {
    McapReadOptions options;
    options.verify_crc = verify;
    const auto reader = McapReader::from_bytes(bytes, options);
    if (!reader) return 0;
    if (walk(*reader, McapQuery::Order::kFile) != walk(*reader, McapQuery::Order::kLogTime)) std::abort();
    for (const auto& index : reader->contents().attachments) (void)reader->attachment(index);
    for (const auto& index : reader->contents().metadata) (void)reader->metadata(index);
    (void)reader->data_section_holds();
  }
  size_t lines = 0;
  if (!list_records(bytes, [&](std::string_view line) { lines += line.size(); })) std::abort();
  return 0;
}
