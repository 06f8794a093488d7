// Pictures into a network's input, by ATen on the network's device.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device.h"
#include "engines/request.h"
#include "strobe/base/result.h"
#include "strobe/engines/preprocessor.h"

namespace strobe::engines::torch_plugin {

class TorchInput : public DeviceInput {
 public:
  TorchInput(at::IntArrayRef shape, c10::Device device);

  // The values, for what the lane's stream does next.
  at::Tensor seen_by(const Lane& lane) const;
  const at::Tensor& values() const { return values_; }

 private:
  friend class TorchPreprocessor;
  at::Tensor values_;
  std::optional<c10::Event> ready_;  // behind all that was put
};

// The input as one of this engine. Errors: kInternal (of another engine, device or shape; as many outputs as the
// network has).
Result<const TorchInput*> own_input(const DeviceInput& input, const Ends& ends, c10::Device device,
                                    std::span<float* const> outputs);

// Of a network with this input (batch x 3 x height x width). Errors: kUnsupported (another shape), kEngine.
Result<std::unique_ptr<Preprocessor>> make_preprocessor(const TensorInfo& input, c10::Device device,
                                                        const PrepOptions& options);

}  // namespace strobe::engines::torch_plugin
