#include "preprocess.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "engines/smoothing.h"
#include "error.h"
#include "threads.h"

namespace strobe::engines::torch_plugin {
namespace {

constexpr auto kChannels = static_cast<int64_t>(PictureSampling::kChannels);

// A Smoothing with its weights on the device.
class Smoother {
 public:
  Smoother(double sigma, c10::Device device)
      : of_(sigma), forth_(brought(of_.forth, device)), back_(brought(of_.back(), device)) {}

  // x: components x height x width. Whole values of 0..255.
  at::Tensor operator()(const at::Tensor& x) const {
    const int64_t reach = of_.reach;
    const at::Tensor across = there_and_back(x.unsqueeze(1), {1, 1, 1, reach + 1}, {reach, 0, 0, 0}, {0, reach, 0, 0});
    const at::Tensor both = there_and_back(across, {1, 1, reach + 1, 1}, {0, 0, reach, 0}, {0, 0, 0, reach});
    return (both * of_.scale).round_().clamp_(0, 255).squeeze(1);
  }

 private:
  at::Tensor there_and_back(const at::Tensor& x, at::IntArrayRef kernel, at::IntArrayRef before,
                            at::IntArrayRef behind) const {
    const at::Tensor there = at::conv2d(at::replication_pad2d(x, before), forth_.view(kernel));
    return at::conv2d(at::replication_pad2d(there, behind), back_.view(kernel));
  }

  const Smoothing of_;
  at::Tensor forth_, back_;
};

// A PictureSampling with its tables on the device.
class Sampling {
 public:
  Sampling(const PictureSampling& of, c10::Device device) : of_(of) {
    std::vector<int64_t> begins;
    for (const PictureSampling::Plane& plane : of.planes) {
      begins.push_back(bytes_);
      bytes_ += plane.rows * plane.bytes;
    }
    for (size_t c = 0; c < PictureSampling::kChannels; ++c) {
      const PictureSampling::Component& component = of.components[c];
      const auto plane = static_cast<size_t>(component.plane);
      const int64_t begin = begins[plane] + component.offset;
      if (c > 0 && joins(of.components[c - 1], component, begin)) {
        groups_.back().apart = begin - last_begin_;
        ++groups_.back().count;
      } else {
        groups_.push_back(group_of(component, begin, of.planes[plane].bytes, device));
      }
      last_begin_ = begin;
    }
    std::vector<float> mix;
    for (const auto& row : of.mix) mix.insert(mix.end(), row.begin(), row.end());
    mix_ = brought(mix, device).view({kChannels, kChannels});
    const auto column = [&](const std::array<float, PictureSampling::kChannels>& values) {
      return brought(std::vector<float>(values.begin(), values.end()), device).view({kChannels, 1});
    };
    offset_ = column(of.offset);
    gain_ = column(of.gain);
    bias_ = column(of.bias);
    border_ = (gain_ * 127.5 + bias_).view({kChannels, 1, 1});
  }

  int64_t bytes() const { return bytes_; }

  // bytes: the planes one behind the other. into: 3 x height x width.
  void run(const at::Tensor& bytes, const std::optional<Smoother>& smoothing, const at::Tensor& into) const {
    std::vector<at::Tensor> components;
    for (const Group& group : groups_) {
      at::Tensor x = bytes.as_strided({group.count, group.height, group.width},
                                      {group.apart, group.row_bytes, group.step}, group.begin);
      if (smoothing) x = (*smoothing)(x.to(at::kFloat));
      x = between(x, 1, group.rows, group.row_weight, of_.placed_height);
      components.push_back(between(x, 2, group.columns, group.column_weight, of_.placed_width));
    }
    const at::Tensor all = at::cat(components).view({kChannels, -1});
    const at::Tensor colours = at::addmm(offset_, mix_, all).clamp_(0, 255);
    const at::Tensor picture =
        at::addcmul(bias_, colours, gain_).view({kChannels, of_.placed_height, of_.placed_width});
    if (of_.placed_height < of_.height || of_.placed_width < of_.width) into.copy_(border_.expand_as(into));
    into.narrow(1, of_.top, of_.placed_height).narrow(2, of_.left, of_.placed_width).copy_(picture);
  }

 private:
  // Components that lie at the same distance from each other and are sampled alike, in one go.
  struct Group {
    int64_t begin = 0, count = 1, apart = 0, height = 0, width = 0, row_bytes = 0, step = 1;
    at::Tensor rows, columns;  // the first ones, then the second ones
    at::Tensor row_weight, column_weight;
  };

  bool joins(const PictureSampling::Component& before, const PictureSampling::Component& next, int64_t begin) const {
    const Group& group = groups_.back();
    const int64_t apart = begin - last_begin_;
    return apart >= 0 && (group.count == 1 || group.apart == apart) && before.step == next.step &&
           before.width == next.width && before.height == next.height && before.rows == next.rows &&
           before.columns == next.columns &&
           of_.planes[static_cast<size_t>(before.plane)] == of_.planes[static_cast<size_t>(next.plane)];
  }

  static Group group_of(const PictureSampling::Component& component, int64_t begin, int64_t row_bytes,
                        c10::Device device) {
    const auto indices = [&](const SampleTaps& taps) {
      std::vector<int64_t> both = taps.first;
      both.insert(both.end(), taps.second.begin(), taps.second.end());
      return brought(both, device);
    };
    return {.begin = begin,
            .height = component.height,
            .width = component.width,
            .row_bytes = row_bytes,
            .step = component.step,
            .rows = indices(component.rows),
            .columns = indices(component.columns),
            .row_weight = brought(component.rows.weight, device).view({-1, 1}),
            .column_weight = brought(component.columns.weight, device)};
  }

  static at::Tensor between(const at::Tensor& x, int64_t dimension, const at::Tensor& at, const at::Tensor& weight,
                            int64_t count) {
    const at::Tensor both = at::index_select(x, dimension, at).to(at::kFloat);
    return at::lerp(both.narrow(dimension, 0, count), both.narrow(dimension, count, count), weight);
  }

  PictureSampling of_;
  int64_t bytes_ = 0, last_begin_ = 0;
  std::vector<Group> groups_;
  at::Tensor mix_, offset_, gain_, bias_, border_;
};

}  // namespace

TorchInput::TorchInput(at::IntArrayRef shape, c10::Device device)
    : values_(at::zeros(shape, at::TensorOptions(at::kFloat).device(device))) {}

at::Tensor TorchInput::seen_by(const Lane& lane) const {
  if (ready_ && lane.stream()) ready_->block(*lane.stream());
  return values_;
}

Result<const TorchInput*> own_input(const DeviceInput& input, const Ends& ends, c10::Device device,
                                    std::span<float* const> outputs) {
  const auto* const own = dynamic_cast<const TorchInput*>(&input);
  if (own == nullptr || own->values().device() != device ||
      own->values().sizes() != at::IntArrayRef(ends.inputs.front().shape))
    return internal_error("torch: an input of another engine, device or network");
  if (outputs.size() != ends.outputs.size())
    return internal_error("torch: " + std::to_string(outputs.size()) + " outputs, the network has " +
                          std::to_string(ends.outputs.size()));
  return own;
}

class TorchPreprocessor : public Preprocessor {
 public:
  TorchPreprocessor(const TensorInfo& input, c10::Device device, const PrepOptions& options)
      : shape_(input.shape), lane_(device, 0) {
    const c10::InferenceMode inference;
    const auto stream = lane_.guard();
    if (options.smoothing_sigma > 0) smoothing_.emplace(options.smoothing_sigma, device);
  }

  Result<std::unique_ptr<DeviceInput>> create_input() override {
    return guarded(ErrorKind::kEngine, [&]() -> Result<std::unique_ptr<DeviceInput>> {
      const c10::InferenceMode inference;
      const auto stream = lane_.guard();
      auto made = std::make_unique<TorchInput>(shape_, lane_.device());
      mark(made->ready_);
      return std::unique_ptr<DeviceInput>(std::move(made));
    });
  }

  Result<void> put(const PictureBytes& picture, int64_t item, DeviceInput& input) override {
    auto* const own = dynamic_cast<TorchInput*>(&input);
    if (own == nullptr || own->values_.sizes() != at::IntArrayRef(shape_) || item < 0 || item >= shape_[0])
      return internal_error("torch: a picture for an input of another network");
    if (picture.sampling->height != shape_[2] || picture.sampling->width != shape_[3])
      return internal_error("torch: a picture that was placed in an input of another size");
    auto done = guarded(ErrorKind::kEngine, [&]() -> Result<void> {
      const c10::InferenceMode inference;
      use_threads(1);  // of the host, which does the same work where the device is the CPU
      const auto stream = lane_.guard();
      const Sampling& sampling = sampling_of(picture);
      sampling.run(sent(picture, sampling.bytes()), smoothing_, own->values_[item]);
      mark(own->ready_);
      return {};
    });
    if (!done) lane_.settle();
    return done;
  }

 private:
  void mark(std::optional<c10::Event>& event) const {
    if (!lane_.stream()) return;
    if (!event) event.emplace(lane_.stream()->device_type());
    event->record(*lane_.stream());
  }

  // Videos have pictures of one kind; folders change between a few.
  const Sampling& sampling_of(const PictureBytes& picture) {
    constexpr size_t kKept = 8;
    const auto found =
        std::find_if(known_.begin(), known_.end(), [&](const Known& one) { return one.sampling == picture.sampling; });
    if (found != known_.end()) return found->on_device;
    if (known_.size() == kKept) known_.erase(known_.begin());
    return known_.emplace_back(picture.sampling, Sampling(*picture.sampling, lane_.device())).on_device;
  }

  // Where pictures leave from, in turns; sent: behind the copy from there.
  struct Staging {
    at::Tensor pinned;
    std::optional<c10::Event> sent;
  };

  at::Tensor sent(const PictureBytes& picture, int64_t bytes) {
    Staging& place = stagings_[next_staging_++ % stagings_.size()];
    if (place.sent) place.sent->synchronize();  // an earlier picture still leaves from there
    if (!place.pinned.defined() || place.pinned.numel() < bytes)
      place.pinned = at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(lane_.stream().has_value()));
    auto* to = place.pinned.mutable_data_ptr<uint8_t>();
    for (size_t p = 0; p < picture.planes.size(); ++p) {
      const PictureSampling::Plane& plane = picture.sampling->planes[p];
      for (int64_t row = 0; row < plane.rows; ++row, to += plane.bytes)
        std::memcpy(to, picture.planes[p].data + row * picture.planes[p].stride, static_cast<size_t>(plane.bytes));
    }
    const at::Tensor host = place.pinned.narrow(0, 0, bytes);
    if (!lane_.stream()) return host;
    at::Tensor there = at::empty({bytes}, at::TensorOptions(at::kByte).device(lane_.device()));
    there.copy_(host, /*non_blocking=*/true);
    mark(place.sent);
    return there;
  }

  struct Known {
    Known(std::shared_ptr<const PictureSampling> of, Sampling made)
        : sampling(std::move(of)), on_device(std::move(made)) {}
    std::shared_ptr<const PictureSampling> sampling;
    Sampling on_device;
  };
  const std::vector<int64_t> shape_;
  Lane lane_;
  std::optional<Smoother> smoothing_;
  std::vector<Known> known_;
  std::array<Staging, 4> stagings_;
  size_t next_staging_ = 0;
};

Result<std::unique_ptr<Preprocessor>> make_preprocessor(const TensorInfo& input, c10::Device device,
                                                        const PrepOptions& options) {
  if (input.shape.size() != 4 || input.shape[1] != kChannels)
    return unsupported("the network's input is not one picture (batch x 3 x height x width)");
  return guarded(ErrorKind::kEngine, [&]() -> Result<std::unique_ptr<Preprocessor>> {
    return std::unique_ptr<Preprocessor>(std::make_unique<TorchPreprocessor>(input, device, options));
  });
}

}  // namespace strobe::engines::torch_plugin
