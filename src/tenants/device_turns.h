// RecordedTurns: a task's pieces of work on the device, in the order that the arbiter gives and on the timeline.
#pragma once

#include <optional>

#include "strobe/record/annotate.h"
#include "tenants/task.h"
#include "tenants/tenant_run.h"
#include "tenants/thread_clock.h"

namespace strobe::tenants {

class RecordedTurns : public DeviceTurns {
 public:
  // resource: what the pieces hold: "device" where tenants take turns, else the cores. clock: of the worker's thread.
  RecordedTurns(const TenantPlace& place, const std::vector<WorkPiece>& pieces, const std::string& resource,
                ThreadClock& clock);

  // Before a frame's first piece.
  void next_frame(int64_t frame, const Claim& claim);
  using DeviceTurns::begin;
  void begin(size_t piece, const std::function<void()>& finish) override;
  void end(size_t piece) override;
  // After the frame's last piece, or when it failed on the way: the device is free again.
  void release();

 private:
  struct Names {
    record::Name name;
    record::Category work_class;
  };
  const TenantPlace& place_;
  std::vector<Names> pieces_;
  std::string resource_;
  ThreadClock& clock_;
  int64_t frame_ = record::kNoFrame;
  Claim claim_;
  bool holds_ = false;
  std::optional<record::Range> range_;
  ThreadTimes before_;
  int64_t waited_ns_ = 0;
};

}  // namespace strobe::tenants
