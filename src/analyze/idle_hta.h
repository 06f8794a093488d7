// HolisticTraceAnalysis' view of a trace: which device operations it keeps and the times that it gives them. Only for
// comparing with its figures; docs/analysis-definitions.md says where they differ from Strobe's.
#pragma once

#include <string_view>
#include <vector>

#include "strobe/trace/timeline.h"

namespace strobe::analyze {

enum class WorkType : uint8_t { kCompute, kCommunication, kMemory, kOther };

// By the name, as HTA does: "Memcpy", "SyncBatchNorm" are no computation.
WorkType hta_type(std::string_view name);

class HtaView {
 public:
  explicit HtaView(const trace::Timeline& timeline);

  struct Op {
    int32_t range;
    int32_t launch;  // kNone: not in the trace
    bool is_sync;    // counts in spans and unions, but is no work of a stream
  };
  // In time order. Synchronisation that names a stream is among them. With two or more ProfilerSteps what the last one
  // launched is left out.
  const std::vector<Op>& ops() const { return ops_; }
  // Times of any range, nanoseconds: in a trace with fractions of microseconds starts are rounded up and ends down.
  int64_t start_ns(int32_t range) const;
  int64_t end_ns(int32_t range) const;

 private:
  const trace::Timeline& timeline_;
  std::vector<Op> ops_;
  int64_t origin_ns_ = 0;  // time 0 as the file writes it
  bool rounds_ = false;
};

}  // namespace strobe::analyze
