// GraphBuilder: the one way in which graphs are made. It infers every shape and refuses what does not fit, so a graph
// that it hands out is sound. Weights may still be declared only (shape without values); a loader or a seed fills them.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) { graph_.name = std::move(name); }

  // Must come first and once. Errors: kBadData for absurd sizes.
  Result<LayerId> input(const Shape& shape, const InputRule& rule = {}, std::string name = "input");
  // Weights that the operation needs and does not bring are declared with their shapes; a convolution or linear layer
  // gets a bias only when it brings one (declared_tensor() for "to be filled"). Errors: kBadData naming the layer.
  Result<LayerId> append(std::string name, Operation operation, std::vector<LayerId> inputs);
  void add_output(LayerId id) { graph_.outputs.push_back(id); }

  const Shape& shape(LayerId id) const { return graph_.layer(id).output; }
  const std::string& name(LayerId id) const { return graph_.layer(id).name; }
  LayerId last() const { return static_cast<LayerId>(graph_.layers.size()) - 1; }
  // Without add_output() the last layer is the output. Errors: kBadData when there is no layer but the input.
  Result<Graph> finish() &&;

 private:
  Result<LayerId> push(Layer layer);
  Graph graph_;
  std::unordered_set<std::string> names_;
};

// A tensor whose values are still to come.
Weights declared_tensor(std::vector<int64_t> shape);
int64_t element_count(const Tensor& tensor);

// The weights of one operation, in the order of its struct; absent ones (no bias) are left out.
struct WeightSlot {
  std::string_view role;  // "weight", "bias", "scale", "shift", "mean", "variance"
  Weights* tensor;
};
std::vector<WeightSlot> weight_slots(Operation& operation);
// Sum of the elements of all declared or filled weights of an operation.
int64_t weight_count(const Operation& operation);

// Every invariant of a finished graph: order, names, shapes, weights filled with as many values as their shapes say.
// Errors: kBadData naming the layer.
Result<void> validate(const Graph& graph);

// Input pixels per cell of the coarsest YOLO head; 1 where there is none. Input sides must be multiples of it.
int64_t network_stride(const Graph& graph);

}  // namespace strobe::models
