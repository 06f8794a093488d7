// The kernels of one CUDA context, each run as often as its counters need (CUPTI's range profiler, one range a kernel).
// Kernels run one after the other meanwhile, at the clocks that the profiler sets: their times are no times of the
// program.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/cupti_replay.h"
#include "gpu/replay_choice.h"

namespace strobe::gpu {

// A kernel as its launch call told of it; an empty name: no call could be matched with its counters.
struct ReplayLaunch {
  std::string name;  // mangled
  std::array<uint32_t, 3> grid{}, block{};
  uint32_t thread = 0;
};

class ReplayContext {
 public:
  // Of each kernel: its launch, and its figures in the order of choice().metrics(), not a number where one has none.
  using Put = std::function<void(const ReplayLaunch&, const std::vector<double>&)>;
  // Kernels after which the counters are read: as many as the image holds.
  static constexpr size_t kRanges = 256;

  // Begins. All that can be refused is refused here, in one line. The table must outlive it. device: CUDA's number.
  // Errors: kUnsupported (no permission, held by somebody else, virtual GPU, MIG, chip not known, ...).
  static Result<std::unique_ptr<ReplayContext>> open(const CuptiReplay& cupti, void* context, uint32_t device,
                                                     const std::vector<std::string>& figures);
  ReplayContext(const ReplayContext&) = delete;
  ReplayContext& operator=(const ReplayContext&) = delete;
  ~ReplayContext();

  uint32_t device() const { return device_; }
  const std::string& chip() const { return chip_; }
  const ReplayChoice& choice() const { return choice_; }

  // Before a launch: reads what has come where the image is full.
  void make_room(const Put& put);
  // After it.
  void launched(ReplayLaunch launch) { waiting_.push_back(std::move(launch)); }
  // Reads what has come, and goes on.
  void collect(const Put& put);
  // Reads it and ends.
  void stop(const Put& put);

  uint64_t kernels() const { return kernels_; }
  uint64_t dropped() const { return dropped_; }      // had no room in the image
  uint64_t unmatched() const { return unmatched_; }  // launches or ranges without their counterpart
  uint64_t unreadable() const { return unreadable_; }
  const std::string& broken() const { return broken_; }  // why nothing comes any more; empty: it does

 private:
  ReplayContext(const CuptiReplay& cupti, uint32_t device, std::string chip, ReplayChoice choice)
      : cupti_(cupti), device_(device), chip_(std::move(chip)), choice_(std::move(choice)) {}
  Result<void> enable(void* context);
  Result<void> begin();
  void read(const Put& put);

  const CuptiReplay& cupti_;
  const uint32_t device_;
  const std::string chip_;
  const ReplayChoice choice_;
  void* profiler_ = nullptr;
  bool started_ = false;
  std::vector<uint8_t> image_;
  std::vector<ReplayLaunch> waiting_;
  std::vector<double> values_;
  uint64_t kernels_ = 0, dropped_ = 0, unmatched_ = 0, unreadable_ = 0;
  std::string broken_;
};

}  // namespace strobe::gpu
