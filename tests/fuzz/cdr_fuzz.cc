// Links: strobe_sensors
// The first byte chooses: bytes as each of the messages (what is decoded is encoded to something that decodes the
// same), or, behind a NUL, as a message of the schema that stands before it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sensors/ros_definitions.h"
#include "sensors/ros_messages.h"
#include "sensors/ros_schema.h"

namespace {

using namespace strobe::sensors;
using namespace strobe::sensors::ros;

template <typename Message>
void both_ways(Bytes bytes) {
  const auto message = decode<Message>(bytes);
  const auto schema = Schema::parse(type_name<Message>(), *schema_text(type_name<Message>()));
  if (!schema) std::abort();
  // The reader by structure and the one by schema take the same messages.
  if (schema->print(bytes).has_value() != message.has_value()) std::abort();
  if (!message) return;
  CdrWriter first, second;
  const auto again = decode<Message>(encode(*message, first));
  if (!again) std::abort();
  encode(*again, second);
  if (!std::ranges::equal(first.message(), second.message())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Bytes bytes(data + 1, size - 1);
  switch (data[0] % 13) {
    case 0:
      both_ways<PointCloud2>(bytes);
      break;
    case 1:
      both_ways<Image>(bytes);
      break;
    case 2:
      both_ways<CompressedImage>(bytes);
      break;
    case 3:
      both_ways<CameraInfo>(bytes);
      break;
    case 4:
      both_ways<Imu>(bytes);
      break;
    case 5:
      both_ways<NavSatFix>(bytes);
      break;
    case 6:
      both_ways<TfMessage>(bytes);
      break;
    case 7:
      both_ways<PoseStamped>(bytes);
      break;
    case 8:
      both_ways<Detection2DArray>(bytes);
      break;
    case 9:
      both_ways<Detection3DArray>(bytes);
      break;
    case 10:
      both_ways<String>(bytes);
      break;
    case 11:
      both_ways<Clock>(bytes);
      break;
    default: {
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      const size_t end = text.find('\0');
      const auto schema = Schema::parse("a/msg/B", text.substr(0, end));
      if (!schema || end == std::string_view::npos) break;
      for (const size_t most : {0, 2}) (void)schema->print(bytes.subspan(end + 1), {.most_elements = most});
    }
  }
  return 0;
}
