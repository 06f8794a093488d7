#include "tenants/cell_run.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "analyze/tenant_tables.h"
#include "collect/core_set.h"
#include "collect/machine.h"
#include "support/test_data.h"
#include "trace/spool_import.h"

namespace strobe::tenants {
namespace {

using testing::HasSubstr;

struct Ran {
  CellOutcome outcome;
  trace::Timeline timeline;
  analyze::TenantTrace trace;
};

TenantSpec spin(const std::string& name, const std::string& model, double rate_hz) {
  TenantSpec tenant;
  tenant.name = name;
  tenant.model = model;
  tenant.rate_hz = rate_hz;
  return tenant;
}

CellSpec short_cell(Policy policy, Isolation isolation) {
  CellSpec cell;
  cell.policy = policy;
  cell.isolation = isolation;
  cell.duration_s = 0.6;
  cell.warmup_s = 0.1;
  cell.hang_s = 20;  // busy machines and sanitizers are slow, and no hang
  return cell;
}

// In a child of its own where tenants are processes: they are forked from a process of one thread.
void run(const CellSpec& cell, Ran& ran, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder / "spool");
  std::filesystem::create_directories(folder / "predictions");
  auto outcome = run_cell(cell, {.spool = folder / "spool", .predictions = folder / "predictions"});
  ASSERT_TRUE(outcome) << outcome.error().to_string();
  ran.outcome = std::move(*outcome);
  auto timeline = trace::import_spool(folder / "spool");
  ASSERT_TRUE(timeline) << timeline.error().to_string();
  ran.timeline = std::move(*timeline);
  auto trace = analyze::tenant_trace(ran.timeline);
  if (trace) ran.trace = std::move(*trace);
}

class CellRunTest : public testing::TestWithParam<Isolation> {};

TEST_P(CellRunTest, EveryFrameIsOnTheTimeline) {
  const test::ScratchFolder folder;
  CellSpec cell = short_cell(Policy::kFifo, GetParam());
  cell.tenants = {spin("a", "spin:1ms", 50), spin("b", "spin:2ms/4", 30)};
  cell.tenants[0].deadline_ms = 200;
  Ran ran;
  ASSERT_NO_FATAL_FAILURE(run(cell, ran, folder.path()));
  ASSERT_TRUE(ran.outcome.succeeded());
  ASSERT_EQ(ran.trace.tenants.size(), 2u);
  EXPECT_EQ(ran.trace.tenants[0].deadline_ns, 200'000'000);
  int64_t finished[2] = {};
  for (size_t i = 0; i < ran.trace.frames.size(); ++i) {
    const analyze::TenantFrame& frame = ran.trace.frames[i];
    EXPECT_NE(frame.outcome, analyze::FrameOutcome::kLost);
    if (!frame.finished()) continue;
    ++finished[frame.tenant];
    EXPECT_EQ(frame.stage_count, 4);
    const auto parts = analyze::frame_parts(ran.trace, ran.timeline, i);
    EXPECT_EQ(parts.comm_ns + parts.queue_ns + parts.decode_ns + parts.work_ns, frame.latency_ns());
    EXPECT_GE(parts.queue_ns, 0);
  }
  for (size_t t = 0; t < 2; ++t) {
    EXPECT_EQ(finished[t], ran.outcome.tenants[t].finished);
    EXPECT_EQ(ran.outcome.tenants[t].sent, ran.outcome.tenants[t].finished + ran.outcome.tenants[t].dropped);
  }
  EXPECT_EQ(ran.outcome.tenants[0].sent, 35);  // 0.7 s at 50 Hz
  EXPECT_EQ(ran.timeline.losses.dropped_records, 0u);
}

// Those due when the window begins, too, although the supervisor wakes up later than that.
TEST_P(CellRunTest, EveryFrameThatIsDueInTheWindowCounts) {
  const test::ScratchFolder folder;
  CellSpec cell = short_cell(Policy::kFifo, GetParam());
  cell.tenants = {spin("a", "spin:1ms", 50), spin("b", "spin:1ms", 40)};
  Ran ran;
  ASSERT_NO_FATAL_FAILURE(run(cell, ran, folder.path()));
  const Table summary = analyze::tenant_summary(ran.trace);
  EXPECT_EQ(*summary.number(0, "frames"), 30);  // at 100, 120, ... 680 ms
  EXPECT_EQ(*summary.number(1, "frames"), 24);  // at 100, 125, ... 675 ms
}

TEST_P(CellRunTest, ALastBatchThatIsNotFullIsWorkedOn) {
  const test::ScratchFolder folder;
  CellSpec cell = short_cell(Policy::kFifo, GetParam());
  cell.tenants = {spin("a", "spin:1ms", 50)};
  cell.tenants[0].batch = 4;
  cell.tenants[0].queue = 20;
  Ran ran;
  ASSERT_NO_FATAL_FAILURE(run(cell, ran, folder.path()));
  EXPECT_EQ(ran.outcome.tenants[0].sent, 9);  // 35 pictures
  EXPECT_EQ(ran.outcome.tenants[0].finished, 9);
  ASSERT_EQ(ran.trace.frames.size(), 9u);
  EXPECT_GE(ran.trace.frames[7].arrival_ns - ran.trace.frames[7].stamp_ns, 59'000'000);
  EXPECT_GE(ran.trace.frames[8].arrival_ns - ran.trace.frames[8].stamp_ns, 39'000'000);
}

// Operations of a device that one holds at a time never overlap.
TEST_P(CellRunTest, TenantsTakeTurnsOnTheDevice) {
  const test::ScratchFolder folder;
  CellSpec cell = short_cell(Policy::kPriorityPreemptive, GetParam());
  cell.tenants = {spin("a", "spin:4ms/8", 60), spin("b", "spin:2ms/2", 80)};
  cell.tenants[1].priority = 1;
  for (TenantSpec& tenant : cell.tenants) tenant.queue = 100;  // no frame is left out, however slow the machine is
  Ran ran;
  ASSERT_NO_FATAL_FAILURE(run(cell, ran, folder.path()));
  std::vector<std::pair<int64_t, int64_t>> held;
  bool waited = false;
  for (const analyze::TenantOperation& operation : ran.trace.operations) {
    if (ran.trace.resources[static_cast<size_t>(operation.resource)].name != "device") continue;
    held.emplace_back(operation.start_ns, operation.end_ns);
    waited = waited || operation.start_ns - operation.ready_ns > 200'000;
  }
  std::sort(held.begin(), held.end());
  ASSERT_EQ(held.size(), 42u * 8 + 56u * 2);
  for (size_t i = 1; i < held.size(); ++i) EXPECT_GE(held[i].first, held[i - 1].second) << i;
  EXPECT_TRUE(waited);
}

TEST_P(CellRunTest, AFullQueueLosesFramesAndSaysSo) {
  const test::ScratchFolder folder;
  CellSpec cell = short_cell(Policy::kConcurrent, GetParam());
  cell.tenants = {spin("a", "spin:20ms", 200)};
  cell.tenants[0].queue = 2;
  cell.tenants[0].drop = QueueDrop::kNewest;
  Ran ran;
  ASSERT_NO_FATAL_FAILURE(run(cell, ran, folder.path()));
  EXPECT_GT(ran.outcome.tenants[0].dropped, 50);
  const Table summary = analyze::tenant_summary(ran.trace);
  EXPECT_GT(*summary.number(0, "dropped"), 50);
  EXPECT_GT(*summary.number(0, "miss_share"), 0.5);
  EXPECT_EQ(*summary.number(0, "frames"), *summary.number(0, "finished") + *summary.number(0, "dropped"));
}

TEST_P(CellRunTest, ASensorThatStopsIsMissed) {
  const test::ScratchFolder folder;
  CellSpec cell = short_cell(Policy::kFifo, GetParam());
  cell.tenants = {spin("a", "spin:1ms", 50), spin("b", "spin:1ms", 50)};
  cell.tenants[1].fault = {FaultSpec::Kind::kSensorStops, 10};
  Ran ran;
  ASSERT_NO_FATAL_FAILURE(run(cell, ran, folder.path()));
  EXPECT_EQ(ran.outcome.tenants[1].sent, 10);
  EXPECT_GE(ran.trace.tenants[1].not_sent, 20u);
  EXPECT_EQ(ran.trace.tenants[0].not_sent, 0u);
}

TEST_P(CellRunTest, ATenantThatCannotLoadKeepsTheCellFromBeginning) {
  const test::ScratchFolder folder;
  CellSpec cell = short_cell(Policy::kFifo, GetParam());
  cell.tenants = {spin("a", "spin:1ms", 50), spin("b", "no-such-network", 50)};
  cell.tenants[1].source.kind = SourceSpec::Kind::kMedia;
  cell.tenants[1].source.path = "/nonexistent.jpg";
  Ran ran;
  ASSERT_NO_FATAL_FAILURE(run(cell, ran, folder.path()));
  EXPECT_FALSE(ran.outcome.succeeded());
  EXPECT_FALSE(ran.outcome.began);
  EXPECT_THAT(ran.outcome.tenants[1].end, HasSubstr("/nonexistent.jpg"));
  EXPECT_EQ(ran.outcome.tenants[0].end, "not begun");
}

TEST_P(CellRunTest, StopsWhenAsked) {
  const test::ScratchFolder folder;
  CellSpec cell = short_cell(Policy::kFifo, GetParam());
  cell.duration_s = 60;
  cell.tenants = {spin("a", "spin:1ms", 50)};
  std::filesystem::create_directories(folder / "spool");
  std::atomic<bool> stop{false};
  const auto outcome = run_cell(cell, {.spool = folder / "spool",
                                       .predictions = folder.path(),
                                       .stop = &stop,
                                       .on_progress = [&](double seconds, double) { stop = seconds > 0.2; }});
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->stopped);
  EXPECT_GT(outcome->tenants[0].finished, 0);
}

std::string isolation_name(const testing::TestParamInfo<Isolation>& info) {
  return info.param == Isolation::kThreads ? "Threads" : "Processes";
}
INSTANTIATE_TEST_SUITE_P(All, CellRunTest, testing::Values(Isolation::kThreads, Isolation::kProcesses), isolation_name);

class FaultTest : public testing::TestWithParam<std::pair<FaultSpec::Kind, std::string>> {};

// The others go on, the trace is whole, and the outcome says what happened.
TEST_P(FaultTest, OfAProcessLeavesTheOthersAlone) {
  const test::ScratchFolder folder;
  CellSpec cell = short_cell(Policy::kFifo, Isolation::kProcesses);
  cell.duration_s = 1.5;
  if (GetParam().first == FaultSpec::Kind::kHang) cell.hang_s = 2;
  cell.tenants = {spin("good", "spin:1ms", 40), spin("bad", "spin:1ms", 40)};
  cell.tenants[1].fault = {GetParam().first, 8};
  Ran ran;
  ASSERT_NO_FATAL_FAILURE(run(cell, ran, folder.path()));
  EXPECT_FALSE(ran.outcome.succeeded());
  EXPECT_TRUE(ran.outcome.tenants[0].succeeded);
  EXPECT_EQ(ran.outcome.tenants[0].sent, 64);
  EXPECT_EQ(ran.outcome.tenants[0].finished + ran.outcome.tenants[0].dropped, 64);
  EXPECT_THAT(ran.outcome.tenants[1].end, HasSubstr(GetParam().second));
  int64_t finished = 0;
  for (const analyze::TenantFrame& frame : ran.trace.frames)
    if (frame.tenant == 1 && frame.finished()) ++finished;
  EXPECT_EQ(finished, ran.outcome.tenants[1].finished);
  // What it would have had to do counts as missed.
  const Table summary = analyze::tenant_summary(ran.trace);
  EXPECT_GT(*summary.number(1, "miss_share"), 0.5);
}

INSTANTIATE_TEST_SUITE_P(All, FaultTest,
                         testing::Values(std::pair(FaultSpec::Kind::kCrash, "signal 11"),
                                         std::pair(FaultSpec::Kind::kExit, "exit 7"),
                                         std::pair(FaultSpec::Kind::kHang, "no sign of life")));

TEST(FaultTest, ALeakEndsAtItsLimit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers map more memory than any limit leaves";
#endif
  const test::ScratchFolder folder;
  CellSpec cell = short_cell(Policy::kFifo, Isolation::kProcesses);
  cell.tenants = {spin("good", "spin:1ms", 40), spin("bad", "spin:1ms", 40)};
  cell.tenants[1].fault = {FaultSpec::Kind::kLeak, 2};
  cell.tenants[1].queue = 100;  // it takes ten frames that leak
  cell.tenants[1].memory_limit = int64_t{300} << 20;
  Ran ran;
  ASSERT_NO_FATAL_FAILURE(run(cell, ran, folder.path()));
  EXPECT_THAT(ran.outcome.tenants[1].end, HasSubstr("out of memory (memory_limit: 314572800 bytes)"));
  EXPECT_TRUE(ran.outcome.tenants[0].succeeded);
}

// Threads of one process are bound one by one: a tenant that is bound takes nobody along.
TEST(CellTest, CoresOfATenantAreItsOwn) {
  if (collect::allowed_cores() < 2) GTEST_SKIP() << "one core alone";
  const auto allowed = collect::parse_cores(collect::allowed_core_list());
  ASSERT_TRUE(allowed);
  const std::string first = std::to_string(allowed->front()), last = std::to_string(allowed->back());
  const test::ScratchFolder folder;
  CellSpec cell = short_cell(Policy::kConcurrent, Isolation::kThreads);
  cell.duration_s = 1.5;
  cell.tenants = {spin("a", "spin:1ms", 50), spin("b", "spin:1ms", 50), spin("c", "spin:1ms", 50)};
  cell.tenants[0].cores = first;
  cell.tenants[1].cores = last;
  std::filesystem::create_directories(folder / "spool");
  std::filesystem::create_directories(folder / "predictions");
  std::map<std::string, std::string> cores;  // by the name of the thread
  CellOptions options{.spool = folder / "spool", .predictions = folder / "predictions"};
  options.on_progress = [&cores](double, double) {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream status(task.path() / "status");
      std::string line, name;
      while (std::getline(status, line)) {
        if (line.starts_with("Name:\t")) name = line.substr(6);
        if (line.starts_with("Cpus_allowed_list:\t")) cores[name] = line.substr(19);
      }
    }
  };
  ASSERT_TRUE(run_cell(cell, options));
  EXPECT_EQ(cores["tenant a"], first);
  EXPECT_EQ(cores["source a"], first);
  EXPECT_EQ(cores["tenant b"], last);
  EXPECT_EQ(cores["tenant c"], collect::allowed_core_list());
  EXPECT_EQ(collect::parse_cores(collect::allowed_core_list())->size(), allowed->size());
}

TEST(CellTest, PredictionsAreOneLineAFrame) {
  const test::ScratchFolder folder;
  CellSpec cell = short_cell(Policy::kFifo, Isolation::kThreads);
  cell.tenants = {spin("a", "spin:1ms", 50)};
  cell.tenants[0].queue = 100;  // a busy machine makes frames wait, not be dropped
  Ran ran;
  ASSERT_NO_FATAL_FAILURE(run(cell, ran, folder.path()));
  std::ifstream file(folder.path() / "predictions" / "a.jsonl");
  int64_t lines = 0;
  for (std::string line; std::getline(file, line); ++lines)
    EXPECT_EQ(nlohmann::json::parse(line)["token"], "synthetic-" + std::to_string(lines));
  EXPECT_EQ(lines, ran.outcome.tenants[0].finished);
}

}  // namespace
}  // namespace strobe::tenants
