// Ranges of a network's layers on the timeline: what a GPU does belongs to the innermost range around the call that
// gave it the work.
#pragma once

#include <functional>
#include <vector>

#include "strobe/engines/engine.h"
#include "strobe/record/annotate.h"

namespace strobe::pipeline {

class LayerRanges : public engines::LayerListener {
 public:
  explicit LayerRanges(const std::vector<engines::Kernel>& kernels) {
    for (const engines::Kernel& kernel : kernels) names_.emplace_back(kernel.name);
  }
  void before(size_t kernel, const std::function<void()>&) override { record::push(names_[kernel]); }
  void after(size_t, const std::function<void()>&) override { record::pop(); }

 private:
  std::vector<record::Name> names_;
};

}  // namespace strobe::pipeline
