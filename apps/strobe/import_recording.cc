#include "import_recording.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/tenant_words.h"
#include "collect/core_run_log.h"
#include "gpu/timeline/open.h"
#include "tenants/cell_run.h"

namespace strobe::app {

namespace fs = std::filesystem;
namespace words = tenant_words;
using trace::StringId;

namespace {

// Whom a thread works for: the tenant whose stages it runs, or that of the thread that made it; else strobe itself, if
// it belongs to one of its processes; else the system.
class Holders {
 public:
  Holders(trace::Timeline& timeline, const collect::CoreRuns& log)
      : log_(log),
        recorder_(timeline.strings.intern(words::kRecorder)),
        system_(timeline.strings.intern(words::kSystem)) {
    const int64_t domain = timeline.strings.find(words::kTenantDomain);
    const trace::Ranges& ranges = timeline.ranges;
    for (size_t i = 0; domain != trace::kNone && i < ranges.size(); ++i) {
      if (int64_t{ranges.domain_of(i)} != domain || ranges.is_async[i] != 0) continue;
      const trace::Lane& lane = timeline.lanes[static_cast<size_t>(ranges.lane[i])];
      known_[lane.tid] = ranges.category_of(i);
      tenants_of_pid_[lane.pid].insert(ranges.category_of(i));
    }
    for (const trace::Process& process : timeline.processes) own_.insert(process.pid);
    for (const trace::Lane& lane : timeline.lanes) own_.insert(lane.pid);
  }

  StringId of(int32_t pid, int32_t tid) {
    // Each process that records has a thread of the recorder.
    const auto name = log_.names.find(tid);
    if (own_.count(pid) > 0 && name != log_.names.end() && name->second == "strobe-drain") return recorder_;
    if (const auto found = known_.find(tid); found != known_.end()) return found->second;
    StringId holder = own_.count(pid) > 0 ? recorder_ : system_;
    // A process of one tenant is that tenant's with all its threads.
    const auto alone = tenants_of_pid_.find(pid);
    if (alone != tenants_of_pid_.end() && alone->second.size() == 1 && tenants_of_pid_.size() > 1)
      holder = *alone->second.begin();
    constexpr int kDeepest = 64;
    int32_t at = tid;
    for (int depth = 0; depth < kDeepest; ++depth) {
      const auto parent = log_.parents.find(at);
      if (parent == log_.parents.end()) break;
      at = parent->second;
      const auto found = known_.find(at);
      if (found == known_.end()) continue;
      holder = found->second;
      break;
    }
    return known_[tid] = holder;
  }

 private:
  const collect::CoreRuns& log_;
  StringId recorder_, system_;
  std::unordered_map<int32_t, StringId> known_;                     // by thread
  std::unordered_map<int32_t, std::set<StringId>> tenants_of_pid_;  // by process
  std::set<int32_t> own_;                                           // processes that were recorded
};

void add_core_runs(trace::Timeline& timeline, const collect::CoreRuns& log) {
  const int64_t zero = timeline.monotonic_start_ns;
  const auto within = [&](int64_t time) { return std::clamp(time - zero, int64_t{0}, timeline.duration_ns); };
  if (log.lost > 0) {
    timeline.facts[words::kCoreRuns] = "off: the kernel lost " + std::to_string(log.lost) + " switches";
    return;
  }
  timeline.facts[words::kCoreRunsFromNs] = std::to_string(within(log.from_ns));
  timeline.facts[words::kCoreRunsToNs] = std::to_string(within(log.to_ns));
  Holders holders(timeline, log);
  const StringId nameless = timeline.strings.intern("?");
  std::unordered_map<int32_t, StringId> names;
  for (const auto& [tid, name] : log.names) names[tid] = timeline.strings.intern(name);
  // A thread has the name of the one that made it until it takes another.
  const auto name_of = [&](int32_t tid) {
    constexpr int kDeepest = 8;
    for (int depth = 0; depth < kDeepest; ++depth) {
      if (const auto name = names.find(tid); name != names.end()) return name->second;
      const auto parent = log.parents.find(tid);
      if (parent == log.parents.end()) break;
      tid = parent->second;
    }
    return nameless;
  };
  for (const collect::CoreRun& run : log.runs) {
    const int64_t start = within(run.start_ns), end = within(run.end_ns);
    if (end <= start) continue;
    auto& runs = timeline.core_runs;
    // One core runs one thread at a time; what says otherwise is not believed.
    if (!runs.empty() && runs.back().core == run.core && runs.back().end_ns > start) {
      ++timeline.losses.faults["a core that ran two threads at once"];
      continue;
    }
    runs.push_back(
        {start, end, run.core, run.pid, run.tid, name_of(run.tid), holders.of(run.pid, run.tid), run.preempted});
  }
}

}  // namespace

Result<trace::Timeline> import_recording(const fs::path& folder) {
  STROBE_ASSIGN(trace::Timeline timeline, gpu::import_folder(folder));
  const fs::path path = folder / tenants::kCoreRunsFile;
  std::error_code ignored;
  if (!fs::exists(path, ignored) || timeline.monotonic_start_ns == 0) return timeline;
  if (const auto log = collect::read_core_runs(path))
    add_core_runs(timeline, *log);
  else
    timeline.facts[words::kCoreRuns] = "off: " + log.error().to_string();
  return timeline;
}

}  // namespace strobe::app
