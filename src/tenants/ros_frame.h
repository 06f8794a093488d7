// Frames of a tenant out of ROS 2 messages, of a bag or of a topic.
#pragma once

#include <string>

#include "sensors/cdr.h"
#include "tenants/frame_stream.h"

namespace strobe::tenants {

// The type of message that a model takes: PointCloud2 or CompressedImage.
const char* message_type_of(const StreamNeeds& needs);

struct RosFrame {
  SensorFrame frame;
  std::string frame_id;  // of the header
};

// cdr: a message of that type with its header. topic: for the token, where the header's frame_id is not that of a
// nuScenes' sample_data, as pPerf writes it. Errors, at the topic: kBadData (bytes that are no
// such message), kUnsupported (points without float32 x, y, z and intensity).
Result<RosFrame> frame_of_message(const std::string& topic, sensors::Bytes cdr, const StreamNeeds& needs);

}  // namespace strobe::tenants
