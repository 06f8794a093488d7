// Batch: what travels through the pipeline: one or several consecutive frames with the buffers that the network reads
// and writes. Batches are recycled, so that a running pipeline allocates nothing per frame.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "media/frame.h"
#include "models/detection.h"
#include "strobe/engines/preprocessor.h"

namespace strobe::pipeline {

struct FrameWork {
  media::Frame frame;
  std::vector<models::Detection> detections;
  media::Frame drawn;  // the frame itself where nothing was drawn
};

struct Batch {
  int64_t sequence = 0;           // order of processing: 0, 1, 2, ... without gaps
  std::vector<FrameWork> frames;  // 1 .. batch size; the last batch of a stream may be short
  std::vector<float> input;       // batch size x 3 x height x width; empty where it is made on a device
  std::unique_ptr<engines::DeviceInput> on_device;
  std::vector<std::vector<float>> outputs;  // one a network output, batch size first
  uint64_t hand_over = 0;                   // id of the flow to the next stage
};
using BatchPtr = std::unique_ptr<Batch>;

}  // namespace strobe::pipeline
