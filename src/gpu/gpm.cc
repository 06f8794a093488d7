#include "gpu/gpm.h"

#include <cmath>
#include <cstddef>
#include <new>
#include <utility>

#include "base/gpu_words.h"

namespace strobe::gpu {
namespace {

constexpr int64_t kLeast_ns = 105'000'000;

}  // namespace

const std::vector<GpmFigure>& gpm_figures() {
  constexpr double kMib = 1 << 20;
  static const std::vector<GpmFigure> all = {
      {nvml::kGpmSmUse, gpu_words::kGpmSmBusy, 1},      {nvml::kGpmOccupancy, gpu_words::kGpmOccupancy, 1},
      {nvml::kGpmTensorUse, gpu_words::kGpmTensor, 1},  {nvml::kGpmDramUse, gpu_words::kGpmDram, 1},
      {nvml::kGpmFp64Use, gpu_words::kGpmFp64, 1},      {nvml::kGpmFp32Use, gpu_words::kGpmFp32, 1},
      {nvml::kGpmFp16Use, gpu_words::kGpmFp16, 1},      {nvml::kGpmIntegerUse, gpu_words::kGpmInteger, 1},
      {nvml::kGpmPcieSent, gpu_words::kPcieSent, kMib}, {nvml::kGpmPcieReceived, gpu_words::kPcieReceived, kMib},
  };
  return all;
}

Gpm::~Gpm() {
  for (const nvml::GpmSample sample : samples_)
    if (sample != nullptr && nvml_->gpm_free != nullptr) nvml_->gpm_free(sample);
}

nvml::Code Gpm::start() {
  if (nvml_->gpm_support == nullptr || nvml_->gpm_alloc == nullptr || nvml_->gpm_free == nullptr ||
      nvml_->gpm_sample == nullptr || nvml_->gpm_metrics == nullptr ||
      (gpu_instance_ && nvml_->gpm_instance_sample == nullptr))
    return nvml::kFunctionNotFound;
  nvml::GpmSupport support{.version = nvml::kGpmVersion, .supported = 0};
  if (const nvml::Code code = nvml_->gpm_support(device_, &support); code != nvml::kSuccess) return code;
  if (support.supported == 0) return nvml::kNotSupported;
  for (nvml::GpmSample& sample : samples_)
    if (const nvml::Code code = nvml_->gpm_alloc(&sample); code != nvml::kSuccess) return code;
  // The library's own structure has room for all of its figures, whose number grows.
  constexpr size_t kRoom = 1024;
  request_.resize(sizeof(nvml::GpmRequest) + kRoom * sizeof(nvml::GpmMetric));
  return nvml::kSuccess;
}

nvml::Code Gpm::read(int64_t now_ns, const std::function<void(const GpmFigure&, nvml::Code, double)>& put) {
  if (samples_[1] == nullptr || (sampled_ns_ != 0 && now_ns - sampled_ns_ < kLeast_ns)) return nvml::kSuccess;
  // Into the older one, which is then the newer one.
  const nvml::Code code = gpu_instance_ ? nvml_->gpm_instance_sample(device_, *gpu_instance_, samples_[1])
                                        : nvml_->gpm_sample(device_, samples_[1]);
  if (code != nvml::kSuccess) return code;
  std::swap(samples_[0], samples_[1]);
  const bool first = std::exchange(sampled_ns_, now_ns) == 0;
  if (first) return nvml::kSuccess;
  const std::vector<GpmFigure>& figures = gpm_figures();
  auto* const request = new (request_.data()) nvml::GpmRequest{.version = nvml::kGpmVersion,
                                                               .count = static_cast<uint32_t>(figures.size()),
                                                               .from = samples_[1],
                                                               .to = samples_[0]};
  auto* const metrics = reinterpret_cast<nvml::GpmMetric*>(request_.data() + sizeof(nvml::GpmRequest));
  for (size_t i = 0; i < figures.size(); ++i)
    new (metrics + i) nvml::GpmMetric{figures[i].id, 0, 0, nullptr, nullptr, nullptr};
  if (const nvml::Code told = nvml_->gpm_metrics(request); told != nvml::kSuccess) return told;
  for (size_t i = 0; i < figures.size(); ++i) {
    const bool there = metrics[i].code != nvml::kSuccess || std::isfinite(metrics[i].value);
    put(figures[i], there ? metrics[i].code : nvml::kUnknownError, metrics[i].value * figures[i].scale);
  }
  return nvml::kSuccess;
}

}  // namespace strobe::gpu
