// Frames of a tenant out of ROS 2 messages, of a bag or of a topic.
#pragma once

#include <string>

#include "sensors/cdr.h"
#include "tenants/frame_stream.h"

namespace strobe::tenants {

// The type of message that a model takes: PointCloud2 or CompressedImage.
const char* message_type_of(const StreamNeeds& needs);

// cdr: a message of that type with its header. topic: for the token. Errors, at the topic: kBadData (bytes that are no
// such message), kUnsupported (points without float32 x, y, z and intensity).
Result<SensorFrame> frame_of_message(const std::string& topic, sensors::Bytes cdr, const StreamNeeds& needs);

}  // namespace strobe::tenants
