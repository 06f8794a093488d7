#include "tenants/device_turns.h"

#include "base/tenant_words.h"

namespace strobe::tenants {

RecordedTurns::RecordedTurns(const TenantPlace& place, const std::vector<WorkPiece>& pieces,
                             const std::string& resource, ThreadClock& clock)
    : place_(place), resource_(resource), clock_(clock) {
  for (const WorkPiece& piece : pieces)
    pieces_.push_back({record::Name(piece.name), record::Category(piece.work_class, tenant_words::kOperationDomain)});
}

void RecordedTurns::next_frame(int64_t frame, const Claim& claim) {
  frame_ = frame;
  claim_ = claim;
}

void RecordedTurns::begin(size_t piece, const std::function<void()>& finish) {
  const int64_t asked = monotonic_ns();
  if (!holds_) {
    place_.arbiter->acquire(place_.index, claim_);
    holds_ = true;
  } else {
    place_.arbiter->give_way(place_.index, finish);
  }
  waited_ns_ = place_.arbiter->takes_turns() ? monotonic_ns() - asked : 0;
  before_ = clock_.read();
  range_.emplace(pieces_[piece].name, frame_, pieces_[piece].work_class);
}

void RecordedTurns::end(size_t) {
  static const record::Name kResource(tenant_words::kResource), kWaited(tenant_words::kWaitedNs),
      kCpu(tenant_words::kCpuNs), kRunnable(tenant_words::kRunnableNs);
  const ThreadTimes after = clock_.read();
  range_->arg(kResource, resource_);
  if (waited_ns_ > 0) range_->arg(kWaited, waited_ns_);
  range_->arg(kCpu, after.cpu_ns - before_.cpu_ns);
  if (after.runnable_ns > before_.runnable_ns) range_->arg(kRunnable, after.runnable_ns - before_.runnable_ns);
  range_.reset();
}

void RecordedTurns::release() {
  range_.reset();
  if (!holds_) return;
  place_.arbiter->release(place_.index);
  holds_ = false;
}

}  // namespace strobe::tenants
