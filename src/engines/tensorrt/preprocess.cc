#include "preprocess.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <optional>
#include <string>
#include <utility>

#include "library.h"
#include "log.h"
#include "plan.h"
#include "prep_onnx.h"

namespace strobe::engines::tensorrt_plugin {
namespace {

constexpr size_t kAlignment = 256;  // of what TensorRT is given
size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Pictures of one kind: the engine that samples them, and their bytes on the device.
class Kind {
 public:
  static Result<std::unique_ptr<Kind>> create(const Device& device, std::shared_ptr<const PictureSampling> of,
                                              double sigma) {
    std::unique_ptr<Kind> kind(new Kind(std::move(of)));
    const auto& library = tensorrt();
    if (!library) return Error(library.error()).at("engine tensorrt");
    const std::string onnx = write_prep_onnx(*kind->sampling_, sigma);
    auto plan = build(*library, device, {.bytes = onnx, .name = "preprocessing", .path = "", .whole = true}, {});
    if (!plan) return std::move(plan).error().at("preprocessing");
    kind->plan_ = std::move(*plan);
    const Listening said;
    kind->context_.reset(kind->plan_.engine->createExecutionContext());
    if (kind->context_ == nullptr)
      return engine_error("TensorRT could not make an execution context for preprocessing: " + said.errors());
    for (const PictureSampling::Plane& plane : kind->sampling_->planes) {
      kind->begins_.push_back(kind->bytes_);
      kind->bytes_ = aligned(kind->bytes_ + static_cast<size_t>(plane.rows * plane.bytes));
    }
    STROBE_ASSIGN(DeviceBlock block, DeviceBlock::create(device, kind->bytes_, "a picture"));
    kind->there_.emplace(std::move(block));
    for (size_t p = 0; p < kind->begins_.size(); ++p)
      if (!kind->context_->setTensorAddress((kPrepPlane + std::to_string(p)).c_str(),
                                            kind->there_->address(kind->begins_[p])))
        return engine_error("preprocessing: " + said.errors());
    return kind;
  }

  bool is(const std::shared_ptr<const PictureSampling>& sampling) const {
    return sampling_ == sampling || *sampling_ == *sampling;
  }
  size_t bytes() const { return bytes_; }

  // The picture's rows without what lies between them, as the device will have them.
  void pack(const PictureBytes& picture, void* into) const {
    for (size_t p = 0; p < picture.planes.size(); ++p) {
      const PictureSampling::Plane& plane = sampling_->planes[p];
      auto* to = static_cast<uint8_t*>(into) + begins_[p];
      for (int64_t row = 0; row < plane.rows; ++row, to += plane.bytes)
        std::memcpy(to, picture.planes[p].data + row * picture.planes[p].stride, static_cast<size_t>(plane.bytes));
    }
  }

  // into: an aligned place.
  Result<void> run(const Driver& api, const void* packed, void* into, Stream stream) {
    STROBE_TRY(api.check(api.to_device(there_->at(), packed, bytes_, stream), "a picture's copy to the GPU"));
    const Listening said;
    if (!context_->setTensorAddress(kPrepOutput, into) || !context_->enqueueV3(static_cast<cudaStream_t>(stream)))
      return engine_error("TensorRT could not preprocess: " + said.errors());
    return {};
  }

 private:
  explicit Kind(std::shared_ptr<const PictureSampling> of) : sampling_(std::move(of)) {}
  std::shared_ptr<const PictureSampling> sampling_;
  Plan plan_;
  std::unique_ptr<nvinfer1::IExecutionContext> context_;
  std::optional<DeviceBlock> there_;
  std::vector<size_t> begins_;  // of the planes
  size_t bytes_ = 0;
};

class TensorrtPreprocessor : public Preprocessor {
 public:
  static Result<std::unique_ptr<Preprocessor>> create(const Device& device, int priority, std::vector<int64_t> shape,
                                                      const PrepOptions& options) {
    const Current current(device);
    std::unique_ptr<TensorrtPreprocessor> made(new TensorrtPreprocessor(device, std::move(shape), options));
    STROBE_ASSIGN(made->lane_, Lane::create(device, priority));
    return std::unique_ptr<Preprocessor>(std::move(made));
  }

  ~TensorrtPreprocessor() override {
    const Current current(device_);
    settle();
    kinds_.clear();
    for (Staging& place : stagings_) {
      place.memory.reset();
      place.sent.reset();
    }
    aside_.reset();
    lane_.reset();
  }

  Result<std::unique_ptr<DeviceInput>> create_input() override {
    const Current current(device_);
    STROBE_ASSIGN(auto made, TensorrtInput::create(device_, *lane_, shape_));
    return std::unique_ptr<DeviceInput>(std::move(made));
  }

  Result<void> put(const PictureBytes& picture, int64_t item, DeviceInput& input) override {
    auto* const own = dynamic_cast<TensorrtInput*>(&input);
    if (own == nullptr || !own->fits(device_, shape_) || item < 0 || item >= shape_[0])
      return internal_error("tensorrt: a picture for an input of another network");
    if (picture.sampling->height != shape_[2] || picture.sampling->width != shape_[3])
      return internal_error("tensorrt: a picture that was placed in an input of another size");
    const Current current(device_);
    auto done = give(picture, static_cast<size_t>(item), *own);
    if (!done) settle();
    return done;
  }

 private:
  TensorrtPreprocessor(Device device, std::vector<int64_t> shape, const PrepOptions& options)
      : device_(std::move(device)), shape_(std::move(shape)), sigma_(options.smoothing_sigma) {}

  Result<void> give(const PictureBytes& picture, size_t item, const TensorrtInput& input) {
    const Driver& api = device_.api();
    const Stream stream = lane_->stream();
    STROBE_ASSIGN(Kind* const kind, kind_of(picture));
    STROBE_ASSIGN(Staging* const place, staging(kind->bytes()));
    kind->pack(picture, place->memory->at());
    const size_t size = input.values().bytes() / static_cast<size_t>(shape_[0]);
    const size_t begin = item * size;
    if (begin % kAlignment == 0) {
      STROBE_TRY(kind->run(api, place->memory->at(), input.values().address(begin), stream));
    } else {
      if (!aside_) {
        STROBE_ASSIGN(DeviceBlock block, DeviceBlock::create(device_, size, "a picture's values"));
        aside_.emplace(std::move(block));
      }
      STROBE_TRY(kind->run(api, place->memory->at(), aside_->address(), stream));
      STROBE_TRY(api.check(api.on_device(input.values().at(begin), aside_->at(), size, stream), "a copy on the GPU"));
    }
    STROBE_TRY(place->sent->record(stream));
    return input.ready().record(stream);
  }

  // Videos have pictures of one kind; folders change between a few.
  Result<Kind*> kind_of(const PictureBytes& picture) {
    constexpr size_t kKept = 8;
    for (const auto& kind : kinds_)
      if (kind->is(picture.sampling)) return kind.get();
    if (kinds_.size() == kKept) {
      STROBE_TRY(lane_->wait());
      kinds_.pop_front();
    }
    STROBE_ASSIGN(auto made, Kind::create(device_, picture.sampling, sigma_));
    return kinds_.emplace_back(std::move(made)).get();
  }

  // Where pictures leave from, in turns; sent: behind the work on what lay there.
  struct Staging {
    std::optional<PinnedBlock> memory;
    std::optional<Event> sent;
  };
  Result<Staging*> staging(size_t bytes) {
    Staging& place = stagings_[next_staging_++ % stagings_.size()];
    if (!place.sent) {
      STROBE_ASSIGN(Event event, Event::create(device_));
      place.sent.emplace(std::move(event));
    }
    STROBE_TRY(place.sent->wait());  // an earlier picture still leaves from there
    if (!place.memory || place.memory->bytes() < bytes) {
      place.memory.reset();
      STROBE_ASSIGN(PinnedBlock block, PinnedBlock::create(device_, bytes, "a picture"));
      place.memory.emplace(std::move(block));
    }
    return &place;
  }

  void settle() const {
    if (lane_ != nullptr) (void)lane_->wait().has_value();
  }

  Device device_;
  const std::vector<int64_t> shape_;
  const double sigma_;
  std::unique_ptr<Lane> lane_;
  std::list<std::unique_ptr<Kind>> kinds_;
  std::array<Staging, 4> stagings_;
  size_t next_staging_ = 0;
  std::optional<DeviceBlock> aside_;  // of an item that begins where TensorRT may not write
};

}  // namespace

Result<std::unique_ptr<TensorrtInput>> TensorrtInput::create(const Device& device, const Lane& lane,
                                                             const std::vector<int64_t>& shape) {
  size_t bytes = sizeof(float);
  for (const int64_t extent : shape) bytes *= static_cast<size_t>(extent);
  std::unique_ptr<TensorrtInput> input(new TensorrtInput(device, shape));
  STROBE_ASSIGN(DeviceBlock block, DeviceBlock::create(device, bytes, "a network's input"));
  input->values_.emplace(std::move(block));
  STROBE_ASSIGN(Event event, Event::create(device));
  input->ready_.emplace(std::move(event));
  const Driver& api = device.api();
  STROBE_TRY(api.check(api.fill(input->values_->at(), 0, bytes, lane.stream()), "zeros on the GPU"));
  STROBE_TRY(input->ready_->record(lane.stream()));
  return input;
}

TensorrtInput::~TensorrtInput() {
  const Current current(device_);
  if (ready_) (void)ready_->wait().has_value();  // its memory is still written to
  ready_.reset();
  values_.reset();
}

Result<const TensorrtInput*> own_input(const DeviceInput& input, const Ends& ends, const Device& device,
                                       std::span<float* const> outputs) {
  const auto* const own = dynamic_cast<const TensorrtInput*>(&input);
  if (own == nullptr || ends.inputs.size() != 1 || !own->fits(device, ends.inputs[0].shape))
    return internal_error("tensorrt: an input of another network, engine or device");
  if (outputs.size() != ends.outputs.size()) return internal_error("tensorrt: another number of outputs");
  return own;
}

Result<std::unique_ptr<Preprocessor>> make_preprocessor(const Device& device, int priority, const TensorInfo& input,
                                                        const PrepOptions& options) {
  constexpr auto kChannels = static_cast<int64_t>(PictureSampling::kChannels);
  if (input.shape.size() != 4 || input.shape[1] != kChannels)
    return unsupported("the network's input is not one picture (batch x 3 x height x width)");
  return TensorrtPreprocessor::create(device, priority, input.shape, options);
}

}  // namespace strobe::engines::tensorrt_plugin
