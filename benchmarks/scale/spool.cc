#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "scale/traces.h"
#include "strobe/record/annotate.h"

namespace strobe::scale {

namespace {

constexpr uint64_t kThreads = 4, kRangesOfFrame = 40;

std::atomic<uint64_t> frames_done[kThreads];

// Every frame comes from the thread before by a flow and has three levels of ranges.
void record_frames(uint64_t thread, uint64_t frames) {
  record::name_thread("stage " + std::to_string(thread));
  const record::Name stage("stage " + std::to_string(thread)), flow("queue"), depth("queue depth"), bytes("bytes");
  std::vector<record::Name> layers;
  for (int i = 0; i < 12; ++i) layers.emplace_back("layer_" + std::to_string(i));
  for (uint64_t frame = 0; frame < frames; ++frame) {
    while (thread > 0 && frames_done[thread - 1].load(std::memory_order_acquire) <= frame) std::this_thread::yield();
    record::Range whole(stage, static_cast<int64_t>(frame));
    if (thread > 0) record::flow_in(flow, frame * kThreads + thread - 1);
    whole.arg(bytes, static_cast<int64_t>(frame % 4096));
    record::counter(depth, static_cast<double>(frame % 5));
    for (uint64_t i = 0; i < (kRangesOfFrame - 1) / 3; ++i) {
      const record::Range outer(layers[i % layers.size()]);
      { const record::Range inner(layers[(i + 3) % layers.size()]); }
      { const record::Range inner(layers[(i + 5) % layers.size()]); }
    }
    if (thread + 1 < kThreads) record::flow_out(flow, frame * kThreads + thread);
    frames_done[thread].store(frame + 1, std::memory_order_release);
  }
}

}  // namespace

Result<void> record_spool(const std::filesystem::path& folder, uint64_t count) {
  record::Options options;
  options.folder = folder;
  options.process_name = "scale";
  options.block_when_full = true;
  STROBE_TRY(record::start(options));
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) threads.emplace_back(record_frames, i, count / kThreads / kRangesOfFrame);
  for (std::thread& thread : threads) thread.join();
  STROBE_ASSIGN(const record::Totals totals, record::stop());
  if (totals.dropped > 0) return internal_error("the recorder dropped records although it may wait");
  return {};
}

}  // namespace strobe::scale
