// Task: a tenant's model at work on one frame or one batch of frames, step by step. The steps are the stages of the
// trace.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sensors/geometry.h"
#include "strobe/base/result.h"
#include "strobe/engines/engine.h"
#include "tenants/experiment.h"
#include "tenants/frame_stream.h"

namespace strobe::tenants {

// A box on a picture, or in space.
struct PictureBox {
  std::string label;
  float score = 0;
  float x = 0, y = 0, width = 0, height = 0;  // pixels, top left corner
};
struct SpaceBox {
  std::string label;
  float score = 0;
  sensors::Pose pose;                        // of its centre, in the frame of the sensor
  double length = 0, width = 0, height = 0;  // m
  double velocity[2] = {0, 0};               // m/s, in the frame of the sensor
};
struct Prediction {
  std::vector<PictureBox> picture_boxes;
  std::vector<SpaceBox> space_boxes;
};

// What a piece of work on the device is called, and how it uses the device.
struct WorkPiece {
  std::string name;
  std::string work_class;  // "compute", "bandwidth", "small"
};

// How a task's pieces of work get the device. One inference is one or several pieces, each between begin and end.
class DeviceTurns {
 public:
  virtual ~DeviceTurns() = default;
  // piece: index into Task::pieces(). Returns when the tenant has the device. finish() returns when earlier pieces,
  // whose work may outlast end, are done; it is called before others come onto the device, and only then.
  virtual void begin(size_t piece, const std::function<void()>& finish) = 0;
  void begin(size_t piece) {  // of pieces that are done at their end
    begin(piece, [] {});
  }
  virtual void end(size_t piece) = 0;  // between two pieces others may come first
};

// Used by one thread, which also made it (frameworks bind thread pools to threads).
class Task {
 public:
  virtual ~Task() = default;
  virtual std::string model_type() const = 0;  // "image", "lidar", "multi-modal"
  virtual std::string model_name() const = 0;
  virtual const std::vector<WorkPiece>& pieces() const = 0;
  virtual std::vector<std::string> notes() const { return {}; }
  // Stages in order; each works on what the one before left.
  virtual Result<void> decode(std::span<const SensorFrame> batch) = 0;  // as many frames as the tenant's batch says
  virtual Result<void> prepare() = 0;
  virtual Result<void> infer(DeviceTurns& turns) = 0;
  virtual Result<std::vector<Prediction>> finish() = 0;  // one a frame
};

// What the model of this name needs of a stream; opens nothing. Errors: kUsage ("spin:x").
Result<StreamNeeds> needs_of(const std::string& model);

// The words of a tenant as far as they can be told to be wrong without opening anything; its source is for
// check_source (tenants/frame_stream.h). Errors: kUsage, kUnsupported (an engine that is not built, a device that
// suits no model or engine, a core that is not there), kNotFound (a model or weights).
Result<void> check_tenant(const TenantSpec& tenant);

// Whether that model takes LiDAR sweeps; false of a name that is none.
bool needs_points(const std::string& model);

// Opens engine and model and runs it once or twice, so that nothing is made on the first frame. sample: a frame of the
// stream, for models that must know the cameras. Errors: those of engines and models.
Result<std::unique_ptr<Task>> open_task(const TenantSpec& tenant, const SensorFrame& sample);

}  // namespace strobe::tenants
