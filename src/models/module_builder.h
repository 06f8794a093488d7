// GraphBuilder with the vocabulary of the built-in classifiers: layers are named after torchvision's modules, so that a
// state dictionary's keys ("layer1.0.conv1.weight") say where a tensor belongs (models/safetensors.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/graph_builder.h"
#include "models/zoo.h"

namespace strobe::models {

// The first error is kept and later calls do nothing, so that a network reads as a list of its layers; finish() tells.
class ModuleBuilder {
 public:
  explicit ModuleBuilder(std::string name) : builder_(std::move(name)) {}

  // 3 channels, `own_size` pixels a side unless the options say otherwise; scaled and normalised as ImageNet's
  // networks.
  LayerId picture(const ZooOptions& options, int64_t own_size) { return picture(options, own_size, own_size); }
  LayerId picture(const ZooOptions& options, int64_t own_width, int64_t own_height);

  // Anything but a picture.
  LayerId input(const Shape& shape);

  struct ConvolutionOf {
    int64_t channels;
    int64_t kernel = 1;
    int64_t stride = 1;
    int64_t pad = 0;
    int64_t groups = 1;
    bool bias = false;
  };
  LayerId convolution(const std::string& name, LayerId x, const ConvolutionOf& of);
  LayerId batch_norm(const std::string& name, LayerId x, float epsilon = 1e-5F);
  LayerId relu(const std::string& name, LayerId x) { return append(name, Activation{ActivationKind::kRelu}, {x}); }
  LayerId relu6(const std::string& name, LayerId x) { return append(name, Activation{ActivationKind::kRelu6}, {x}); }
  // ceil_mode: a last window that is only partly inside counts, as PyTorch's option of that name.
  LayerId max_pool(const std::string& name, LayerId x, int64_t kernel, int64_t stride, int64_t pad, bool ceil_mode);
  // Global average, flattened to a vector.
  LayerId average_to_vector(const std::string& name, LayerId x);
  LayerId dropout(const std::string& name, LayerId x, float probability);
  LayerId linear(const std::string& name, LayerId x, int64_t features);  // with a bias
  LayerId append(const std::string& name, Operation operation, std::vector<LayerId> inputs);

  // Without it the last layer is the output.
  void add_output(LayerId id) {
    if (!failed()) builder_.add_output(id);
  }

  const Shape& shape(LayerId id) const { return builder_.shape(id); }
  bool failed() const { return error_.has_value(); }
  void fail(Error error);
  Result<Graph> finish() &&;

 private:
  GraphBuilder builder_;
  std::optional<Error> error_;
};

}  // namespace strobe::models
