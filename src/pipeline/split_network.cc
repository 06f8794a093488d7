#include "pipeline/split_network.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "strobe/record/annotate.h"

namespace strobe::pipeline {
namespace {

using engines::Kernel;
using engines::KernelTime;
using engines::LayerListener;
using engines::Network;
using engines::Session;
using engines::TensorInfo;

// Kernels of the second part, as numbers of the whole network.
class SecondPart : public LayerListener {
 public:
  explicit SecondPart(size_t kernels_of_first) : kernels_of_first_(kernels_of_first) {}
  void before(size_t kernel, const std::function<void()>& finish) override {
    whole->before(kernels_of_first_ + kernel, finish);
  }
  void after(size_t kernel, const std::function<void()>& finish) override {
    whole->after(kernels_of_first_ + kernel, finish);
  }
  LayerListener* whole = nullptr;

 private:
  const size_t kernels_of_first_;
};

class SplitSession : public Session {
 public:
  SplitSession(std::unique_ptr<Session> first, std::unique_ptr<Session> second, std::vector<bool> from_second,
               size_t crossing_elements, size_t kernels_of_first)
      : first_(std::move(first)),
        second_(std::move(second)),
        from_second_(std::move(from_second)),
        leaves_(crossing_elements),
        enters_(crossing_elements),
        kernels_of_first_(kernels_of_first),
        second_part_(kernels_of_first) {}

  Result<void> run(std::span<const float* const> inputs, std::span<float* const> outputs) override {
    std::vector<float*> of_first, of_second;
    for (size_t i = 0; i < outputs.size(); ++i) (from_second_[i] ? of_second : of_first).push_back(outputs[i]);
    of_first.push_back(leaves_.data());
    {
      STROBE_RANGE("first part");
      STROBE_TRY(first_->run(inputs, of_first));
    }
    {
      static const record::Name kHandOver("hand-over"), kBytes("bytes");
      record::Range range(kHandOver);
      range.arg(kBytes, static_cast<int64_t>(leaves_.size() * sizeof(float)));
      std::copy(leaves_.begin(), leaves_.end(), enters_.begin());
    }
    STROBE_RANGE("second part");
    const float* entering = enters_.data();
    return second_->run(std::span(&entering, 1), of_second);
  }

  Result<std::vector<KernelTime>> kernel_times() override {
    STROBE_ASSIGN(auto times, first_->kernel_times());
    STROBE_ASSIGN(const auto rest, second_->kernel_times());
    for (const KernelTime& time : rest) times.push_back({time.kernel + kernels_of_first_, time.duration_ns});
    return times;
  }

  bool listen(LayerListener* listener) override {
    second_part_.whole = listener;
    const bool first = first_->listen(listener);
    const bool second = second_->listen(listener == nullptr ? nullptr : &second_part_);
    return first && second;
  }

 private:
  std::unique_ptr<Session> first_, second_;
  std::vector<bool> from_second_;
  std::vector<float> leaves_, enters_;
  size_t kernels_of_first_;
  SecondPart second_part_;
};

class SplitNetwork : public Network {
 public:
  using Facts = std::vector<std::pair<std::string, std::string>>;
  SplitNetwork(std::unique_ptr<Network> first, std::unique_ptr<Network> second, std::vector<bool> from_second,
               Facts first_facts)
      : first_(std::move(first)),
        second_(std::move(second)),
        from_second_(std::move(from_second)),
        first_facts_(std::move(first_facts)) {
    size_t next_of_first = 0, next_of_second = 0;
    for (const bool second_has : from_second_)
      outputs_.push_back(second_has ? second_->outputs()[next_of_second++] : first_->outputs()[next_of_first++]);
  }

  const std::vector<TensorInfo>& inputs() const override { return first_->inputs(); }
  const std::vector<TensorInfo>& outputs() const override { return outputs_; }

  Result<std::unique_ptr<Session>> create_session() override {
    STROBE_ASSIGN(auto first, first_->create_session());
    STROBE_ASSIGN(auto second, second_->create_session());
    STROBE_ASSIGN(const auto kernels, first_->kernels());
    const auto crossing = static_cast<size_t>(first_->outputs().back().elements());
    return std::unique_ptr<Session>(
        std::make_unique<SplitSession>(std::move(first), std::move(second), from_second_, crossing, kernels.size()));
  }

  Result<std::vector<Kernel>> kernels() override {
    STROBE_ASSIGN(auto all, first_->kernels());
    STROBE_ASSIGN(auto rest, second_->kernels());
    std::move(rest.begin(), rest.end(), std::back_inserter(all));
    return all;
  }

  Facts facts() const override {
    Facts all = second_->facts();
    all.insert(all.end(), first_facts_.begin(), first_facts_.end());
    return all;
  }

 private:
  std::unique_ptr<Network> first_, second_;
  std::vector<bool> from_second_;
  Facts first_facts_;
  std::vector<TensorInfo> outputs_;
};

}  // namespace

Result<std::unique_ptr<Network>> load_split(engines::Engine& first, engines::Engine& second,
                                            const models::SplitGraph& split, const engines::LoadOptions& options) {
  engines::LoadOptions on_cpu = options;
  on_cpu.device = "cpu";
  const auto precisions = first.precisions();
  if (options.device != "cpu" && std::find(precisions.begin(), precisions.end(), options.precision) == precisions.end())
    on_cpu.precision = engines::Precision::kF32;
  STROBE_ASSIGN(auto here, first.load(std::make_shared<const models::Graph>(split.first), on_cpu));
  STROBE_ASSIGN(auto there, second.load(std::make_shared<const models::Graph>(split.second), options));
  SplitNetwork::Facts facts{{"first_part", first.name()},
                            {"first_part_precision", std::string(engines::to_string(on_cpu.precision))}};
  return std::unique_ptr<Network>(
      std::make_unique<SplitNetwork>(std::move(here), std::move(there), split.from_second, std::move(facts)));
}

}  // namespace strobe::pipeline
