// PyTorch's RecordFunction: without anyone who listens, and with the profiler (Kineto) recording.
#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <set>
#include <vector>

#include "peers/recorders.h"

namespace strobe::bench {

namespace {

namespace profiler = torch::autograd::profiler;
namespace impl = torch::profiler::impl;

void one_range(int64_t& batch) {
  at::RecordFunction range(at::RecordScope::USER_SCOPE);
  if (!range.isActive()) return;
  const std::vector<c10::IValue> inputs{batch++};
  range.before("bench", c10::ArrayRef<const c10::IValue>(inputs.data(), inputs.size()));
}

void start_kineto(const benchmark::State& /*state*/) {
  impl::ExperimentalConfig config;
  config.profile_all_threads = true;
  const impl::ProfilerConfig options(impl::ProfilerState::KINETO, true, false, false, false, false, config);
  const std::set<profiler::ActivityType> activities{profiler::ActivityType::CPU};
  profiler::prepareProfiler(options, activities);
  profiler::enableProfiler(options, activities, {at::RecordScope::USER_SCOPE});
}

void stop_kineto(const benchmark::State& /*state*/) {
  profiler::disableProfiler();
}

}  // namespace

void register_torch() {
  const auto run = [](benchmark::State& state) {
    int64_t batch = 0;
    measure(state, [&batch] { one_range(batch); });
  };
  cases(benchmark::RegisterBenchmark("torch_record_function_off", run));
  cases(benchmark::RegisterBenchmark("torch_record_function", run))->Setup(start_kineto)->Teardown(stop_kineto);
}

}  // namespace strobe::bench
