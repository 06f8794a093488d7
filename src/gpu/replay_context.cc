#include "gpu/replay_context.h"

#include <algorithm>
#include <utility>

#include "gpu/cupti_errors.h"
#include "gpu/device_support.h"

namespace strobe::gpu {

Result<std::unique_ptr<ReplayContext>> ReplayContext::open(const CuptiReplay& cupti, void* context, uint32_t device,
                                                           const std::vector<std::string>& figures) {
  STROBE_ASSIGN(const std::string chip, chip_of(cupti.metrics, static_cast<int>(device)));
  STROBE_TRY(check_support(cupti.metrics, static_cast<int>(device), chip, cupti::kApiRangeProfiling));
  std::vector<uint8_t> availability;
  if (cupti.availability != nullptr) {
    auto image = cupti::sized<cupti::ContextAvailability>();
    image.context = context;
    auto code = cupti.availability(&image);
    if (code == cupti::kSuccess) {
      availability.resize(image.size);
      image.image = availability.data();
      code = cupti.availability(&image);
    }
    if (code == cupti::kInsufficientPrivileges) return unsupported(cupti_error(code));
    if (code != cupti::kSuccess) availability.clear();
  }
  STROBE_ASSIGN(ReplayChoice choice, ReplayChoice::make(cupti.metrics, chip, availability, figures));
  std::unique_ptr<ReplayContext> made(new ReplayContext(cupti, device, chip, std::move(choice)));
  STROBE_TRY(made->enable(context));
  return made;
}

Result<void> ReplayContext::enable(void* context) {
  auto enable = cupti::sized<cupti::RangeEnable>();
  enable.context = context;
  if (const auto code = cupti_.enable(&enable); code != cupti::kSuccess) return unsupported(cupti_error(code));
  profiler_ = enable.profiler;
  std::vector<const char*> names = choice_.host().names();
  auto size = cupti::sized<cupti::RangeDataSize>();
  size.profiler = profiler_;
  size.names = names.data(), size.count = names.size();
  size.most_ranges = kRanges, size.most_nodes = kRanges;
  if (const auto code = cupti_.data_size(&size); code != cupti::kSuccess) return unsupported(cupti_error(code));
  image_.assign(size.size, 0);
  return begin();
}

Result<void> ReplayContext::begin() {
  auto initialize = cupti::sized<cupti::RangeDataInitialize>();
  initialize.profiler = profiler_, initialize.size = image_.size(), initialize.image = image_.data();
  if (const auto code = cupti_.data_initialize(&initialize); code != cupti::kSuccess)
    return unsupported(cupti_error(code));
  auto config = cupti::sized<cupti::RangeConfig>();
  config.profiler = profiler_;
  config.size = choice_.host().configuration().size(), config.configuration = choice_.host().configuration().data();
  config.image_size = image_.size(), config.image = image_.data();
  config.range = cupti::kAutoRange, config.replay = cupti::kKernelReplay;
  config.most_ranges = kRanges;
  config.nesting_levels = 1, config.least_nesting = 1, config.target_nesting = 1;
  if (const auto code = cupti_.configure(&config); code != cupti::kSuccess) return unsupported(cupti_error(code));
  auto start = cupti::sized<cupti::RangeObject>();
  start.profiler = profiler_;
  if (const auto code = cupti_.start(&start); code != cupti::kSuccess) return unsupported(cupti_error(code));
  started_ = true;
  return {};
}

ReplayContext::~ReplayContext() {
  if (profiler_ == nullptr) return;
  auto params = cupti::sized<cupti::RangeObject>();
  params.profiler = profiler_;
  cupti_.disable(&params);
}

void ReplayContext::make_room(const Put& put) {
  if (waiting_.size() >= kRanges) collect(put);
}

void ReplayContext::collect(const Put& put) {
  read(put);
  if (!broken_.empty()) return;
  if (const auto begun = begin(); !begun) broken_ = begun.error().to_string();
}

void ReplayContext::stop(const Put& put) {
  read(put);
}

void ReplayContext::read(const Put& put) {
  std::vector<ReplayLaunch> launches;
  launches.swap(waiting_);
  if (!std::exchange(started_, false)) {
    unreadable_ += launches.size();
    return;
  }
  auto stop = cupti::sized<cupti::RangeStop>();
  stop.profiler = profiler_;
  auto decode = cupti::sized<cupti::RangeDecode>();
  decode.profiler = profiler_;
  auto info = cupti::sized<cupti::RangeDataInfo>();
  info.image = image_.data(), info.size = image_.size();
  auto code = cupti_.stop(&stop);
  if (code == cupti::kSuccess) code = cupti_.decode(&decode);
  if (code == cupti::kSuccess) code = cupti_.data_info(&info);
  if (code != cupti::kSuccess) {
    broken_ = cupti_error(code);
    unreadable_ += launches.size();
    return;
  }
  dropped_ += decode.dropped;
  // Ranges have no names but their order. Where that cannot be the order of the launches, nobody can tell whose they
  // are.
  const bool matched = info.ranges == launches.size() && decode.dropped == 0;
  if (!matched) unmatched_ += std::max<uint64_t>(info.ranges, launches.size());
  for (size_t i = 0; i < info.ranges; ++i) {
    if (!choice_.host().evaluate(image_, i, values_)) {
      ++unreadable_;
      continue;
    }
    ++kernels_;
    put(matched ? launches[i] : ReplayLaunch{}, values_);
  }
}

}  // namespace strobe::gpu
