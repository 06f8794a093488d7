// Pictures into a network's input, by an engine that TensorRT builds for each kind of picture (prep_onnx.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "driver.h"
#include "engines/request.h"
#include "strobe/base/result.h"
#include "strobe/engines/preprocessor.h"

namespace strobe::engines::tensorrt_plugin {

class TensorrtInput : public DeviceInput {
 public:
  // Zeros. Errors: kUnsupported (the device's memory is full), kEngine.
  static Result<std::unique_ptr<TensorrtInput>> create(const Device& device, const Lane& lane,
                                                       const std::vector<int64_t>& shape);
  ~TensorrtInput() override;

  const DeviceBlock& values() const { return *values_; }
  const Event& ready() const { return *ready_; }  // behind all that was put
  bool fits(const Device& device, const std::vector<int64_t>& shape) const {
    return device_.name() == device.name() && shape_ == shape;
  }

 private:
  TensorrtInput(Device device, std::vector<int64_t> shape) : device_(std::move(device)), shape_(std::move(shape)) {}
  Device device_;
  std::vector<int64_t> shape_;
  std::optional<DeviceBlock> values_;
  std::optional<Event> ready_;
};

// The input as one of this engine. Errors: kInternal (of another engine, device or shape; as many outputs as the
// network has).
Result<const TensorrtInput*> own_input(const DeviceInput& input, const Ends& ends, const Device& device,
                                       std::span<float* const> outputs);

// Of a network with this input (batch x 3 x height x width). Errors: kUnsupported (another shape), kEngine.
Result<std::unique_ptr<Preprocessor>> make_preprocessor(const Device& device, int priority, const TensorInfo& input,
                                                        const PrepOptions& options);

}  // namespace strobe::engines::tensorrt_plugin
