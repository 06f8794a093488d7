#include <fmt/format.h>

#include <cstdio>
#include <iterator>
#include <memory>
#include <random>

#include "scale/traces.h"

namespace strobe::scale {

namespace {

constexpr size_t kFlushAt = size_t{1} << 20;
constexpr int kPid = 783658, kForwardThread = 783658, kBackwardThread = 785244;
constexpr int kLayersOfStep = 400;  // units of operators around one kernel, in each direction

struct Unit {
  const char* operators[3];
  const char* kernel;
  int64_t mean_us;
};
constexpr Unit kUnits[] = {
    {{"nn.Module: Conv2d", "aten::conv2d", "aten::cudnn_convolution"},
     "void cudnn::winograd_nonfused::winogradForwardOutput4x4<float, float>("
     "cudnn::winograd_nonfused::WinogradOutputParams<float, float>)",
     60},
    {{"nn.Module: Linear", "aten::linear", "aten::addmm"}, "volta_sgemm_128x64_nn", 45},
    {{"nn.Module: BatchNorm2d", "aten::batch_norm", "aten::native_batch_norm"},
     "void at::native::batch_norm_collect_statistics_kernel<at::native::InvStd, float, float, float, int>("
     "at::GenericPackedTensorAccessor<float, 3ul, at::RestrictPtrTraits, int>)",
     18},
    {{"nn.Module: ReLU", "aten::relu", "aten::clamp_min_"},
     "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, "
     "3> "
     ">(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
     8},
    {{"nn.Module: Add", "aten::add", "aten::add_"},
     "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, at::detail::Array<char*, 3> >("
     "int, at::native::AddFunctor<float>, at::detail::Array<char*, 3>)",
     11},
};

class Writer {
 public:
  Writer(std::FILE* file, uint64_t count) : file_(file), count_(count) {}

  bool write() {
    print(
        "\n{{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {{\n      \"id\": 0, \"name\": \"Synthetic "
        "GPU\", "
        "\"totalGlobalMem\": 34089730048,\n      \"computeMajor\": 7, \"computeMinor\": 0, \"numSms\": 80\n    }}\n  "
        "],\n"
        "  \"traceEvents\": [");
    for (int step = 0; written_ < count_; ++step) write_step(step);
    print(
        "\n  {{\n    \"name\": \"process_name\", \"ph\": \"M\", \"ts\": {}, \"pid\": {}, \"tid\": 0,\n    \"args\": "
        "{{\n"
        "      \"name\": \"python\"\n    }}\n  }}\n  ]\n}}\n",
        kStart, kPid);
    flush();
    return ok_;
  }

 private:
  static constexpr int64_t kStart = 1669783687000000;

  template <typename... Values>
  void print(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Values>(values)...);
    if (buffer_.size() > kFlushAt) flush();
  }
  void flush() {
    ok_ &= std::fwrite(buffer_.data(), 1, buffer_.size(), file_) == buffer_.size();
    buffer_.clear();
  }

  void write_step(int step) {
    step_ = step;
    const int64_t start = host_us_;
    host_us_ += 20;
    write_copy(step);
    for (int i = 0; i < kLayersOfStep && written_ < count_; ++i) write_unit(i, true);
    backward_us_ = host_us_ + 15;
    for (int i = kLayersOfStep; i > 0 && written_ < count_; --i) write_unit(i - 1, false);
    host_us_ = std::max(host_us_, backward_us_);
    const int64_t sync_us = std::max<int64_t>(5, device_us_[0] - host_us_);
    call("cudaDeviceSynchronize", kForwardThread, host_us_, sync_us, 165, ++correlation_);
    host_us_ += sync_us + 10;
    complete("user_annotation", fmt::format("ProfilerStep#{}", step), kPid, kForwardThread, start, host_us_ - start);
    print("\n      \"External id\": {},\"Ev Idx\": {}\n    }}\n  }},", ++external_, event_++);
  }

  // Three operators around a launch, and its kernel.
  void write_unit(int index, bool forward) {
    const Unit& unit = kUnits[static_cast<size_t>(index) % std::size(kUnits)];
    const int thread = forward ? kForwardThread : kBackwardThread;
    int64_t& now = forward ? host_us_ : backward_us_;
    const int64_t length = 14 + static_cast<int64_t>(random_() % 9);
    const char* prefix = forward ? "" : "autograd::engine::evaluate_function: ";
    for (int depth = 0; depth < 3; ++depth) {
      complete("cpu_op", fmt::format("{}{}", depth == 0 ? prefix : "", unit.operators[depth]), kPid, thread,
               now + depth, length - 2 * depth);
      print("\n      \"External id\": {},\"Ev Idx\": {}", ++external_, event_++);
      if (depth == 0) print(", \"Fwd thread id\": {}, \"Sequence number\": {}", forward ? 0 : 1, sequence_of(index));
      print("\n    }}\n  }},");
    }
    if (index % 8 == 0) arrow(forward ? 's' : 'f', "fwdbwd", sequence_of(index), kPid, thread, now);
    if (index % 4 == 0) write_memory(thread, now + 3);
    const int64_t correlation = ++correlation_;
    call("cudaLaunchKernel", thread, now + 4, 5, 211, correlation);
    const int stream = index % 40 == 7 ? 1 : 0;
    const int64_t start = std::max(now + 10, device_us_[stream]);
    const int64_t duration = std::max<int64_t>(1, unit.mean_us + static_cast<int64_t>(random_() % 9) - 4);
    device_us_[stream] = start + duration + 1;
    complete("kernel", unit.kernel, 0, kStream[stream], start, duration);
    print(
        "\n      \"External id\": {},\n      \"queued\": 0, \"device\": 0, \"context\": 1,\n      \"stream\": {}, "
        "\"correlation\": {},\n      \"registers per thread\": {},\n      \"shared memory\": {},\n      \"blocks per "
        "SM\": "
        "{},\n      \"warps per SM\": {},\n      \"grid\": [{}, 1, 1],\n      \"block\": [128, 1, 1],\n      \"est. "
        "achieved occupancy %\": {}\n    }}\n  }},",
        external_, kStream[stream], correlation, 20 + index % 90, index % 3 * 1024, 0.0125 * (index % 7 + 1),
        0.05 * (index % 9 + 1), 80 + index * 4, index % 95);
    arrow('f', "ac2g", correlation, 0, kStream[stream], start);
    now += length + 1;
  }

  void write_copy(int step) {
    const int64_t correlation = ++correlation_, start = std::max(host_us_ + 6, device_us_[1]);
    call("cudaMemcpyAsync", kForwardThread, host_us_, 9, 31, correlation);
    complete("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 0, kStream[1], start, 120);
    print(
        "\n      \"External id\": {},\n      \"device\": 0, \"context\": 1,\n      \"stream\": {}, \"correlation\": "
        "{},\n   "
        "   \"bytes\": {}, \"memory bandwidth (GB/s)\": {}\n    }}\n  }},",
        external_, kStream[1], correlation, 1204224 + step % 5 * 4, 10.0352);
    arrow('f', "ac2g", correlation, 0, kStream[1], start);
    device_us_[1] = start + 121;
    host_us_ += 12;
  }

  void write_memory(int thread, int64_t time_us) {
    allocated_ = 900'000'000 + static_cast<int64_t>(random_() % 1000) * 512;
    print(
        "\n  {{\n    \"ph\": \"i\", \"s\": \"t\", \"name\": \"[memory]\",\n    \"pid\": {}, \"tid\": {},\n    \"ts\": "
        "{},\n    \"args\": {{\n      \"Total Reserved\": 1405091840, \"Total Allocated\": {}, \"Bytes\": 512, "
        "\"Addr\": "
        "140301410304000, \"Device Id\": 0, \"Device Type\": 1\n    }}\n  }},",
        kPid, thread, kStart + time_us, allocated_);
  }

  void call(const char* name, int thread, int64_t start, int64_t length, int cbid, int64_t correlation) {
    complete("cuda_runtime", name, kPid, thread, start, length);
    print("\n      \"External id\": {},\n      \"cbid\": {}, \"correlation\": {}\n    }}\n  }},", external_, cbid,
          correlation);
    if (cbid != 165) arrow('s', "ac2g", correlation, kPid, thread, start);
  }

  void complete(const char* category, std::string_view name, int pid, int tid, int64_t start, int64_t length) {
    ++written_;
    print(
        "\n  {{\n    \"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": {}, \"tid\": {},\n    \"ts\": {}, "
        "\"dur\": "
        "{},\n    \"args\": {{",
        category, name, pid, tid, kStart + start, length);
  }
  void arrow(char phase, const char* category, int64_t id, int pid, int tid, int64_t time_us) {
    print(
        "\n  {{\n    \"ph\": \"{}\", \"id\": {}, \"pid\": {}, \"tid\": {}, \"ts\": {},\n    \"cat\": \"{}\", \"name\": "
        "\"{}\"{}\n  }},",
        phase, id, pid, tid, kStart + time_us, category, category, phase == 'f' ? ", \"bp\": \"e\"" : "");
  }
  // The same on the way back.
  int64_t sequence_of(int index) const { return int64_t{step_} * kLayersOfStep + index; }

  static constexpr int kStream[2] = {7, 14};
  std::FILE* file_;
  uint64_t count_, written_ = 0;
  int step_ = 0;
  bool ok_ = true;
  fmt::memory_buffer buffer_;
  std::mt19937 random_{1};
  int64_t host_us_ = 0, backward_us_ = 0, device_us_[2] = {0, 0};
  int64_t correlation_ = 0, external_ = 0, event_ = 0, allocated_ = 0;
};

}  // namespace

Result<void> write_kineto(const std::filesystem::path& path, uint64_t count) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"), &std::fclose);
  if (!file) return io_error_errno("cannot be written").at(path.string());
  if (!Writer(file.get(), count).write() || std::fflush(file.get()) != 0)
    return io_error_errno("cannot be written").at(path.string());
  return {};
}

}  // namespace strobe::scale
