// What is left when the recorded process dies: everything that a call returned from, once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "record/child.h"
#include "record/recorded.h"
#include "strobe/record/annotate.h"
#include "support/test_data.h"

namespace strobe::record {
namespace {

using strobe::test::ScratchFolder;
using test::fork_child;
using test::read_all;
using test::Shared;
using test::Type;
using test::wait_for;
using testing::IsEmpty;

constexpr int kThreads = 3;
struct Acknowledged {
  std::array<std::atomic<int64_t>, kThreads> marks;
};

std::string dynamic_name(int64_t i) {
  return "step " + std::to_string(i % 700);
}

// Records until it is killed, and says after every round how far it came.
void record_forever(const ScratchFolder& folder, Acknowledged& done, size_t ring_bytes) {
  Options options;
  options.folder = folder.path();
  options.ring_bytes = ring_bytes;
  options.block_when_full = true;
  options.drain_period_ms = 1;
  if (!start(options)) ::_exit(3);
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&done, id] {
      name_thread("worker " + std::to_string(id));
      for (int64_t i = 0;; ++i) {
        {
          const Range range(std::string_view{dynamic_name(i)}, i);
          mark(Name("mark " + std::to_string(id)), i);
        }
        done.marks[static_cast<size_t>(id)].store(i + 1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

void expect_everything_acknowledged(const test::Recorded& recorded, const Acknowledged& done) {
  int found = 0;
  for (const auto& thread : recorded.threads) {
    int64_t next_begin = 0;
    int64_t next_mark = 0;
    int64_t ends = 0;
    size_t id = kThreads;
    for (const auto& event : thread.events) {
      if (event.type == Type::kThreadName) id = static_cast<size_t>(event.text.back() - '0');
      if (event.type == Type::kRangeBegin) {
        ASSERT_EQ(event.frame, next_begin++);
        ASSERT_EQ(event.name, dynamic_name(event.frame));
      }
      if (event.type == Type::kMark) {
        ASSERT_EQ(event.frame, next_mark++);
        ASSERT_EQ(event.name, "mark " + std::to_string(id));
      }
      if (event.type == Type::kRangeEnd) ++ends;
    }
    if (id == kThreads) continue;
    ++found;
    const int64_t acknowledged = done.marks[id].load();
    EXPECT_GE(ends, acknowledged);
    EXPECT_LE(next_begin, acknowledged + 1);
    EXPECT_FALSE(thread.ended);
  }
  for (const auto& count : done.marks) {
    if (count.load() > 0) --found;
  }
  EXPECT_GE(found, 0) << "a thread that acknowledged records is missing";
}

TEST(Crash, NothingAcknowledgedIsLostOrDoubledByKill) {
  std::mt19937 random(20261121);
  for (int round = 0; round < 30; ++round) {
    const ScratchFolder folder;
    Shared<Acknowledged> done;
    const size_t ring_bytes = size_t{16384} << round % 5;
    const pid_t child = fork_child([&] { record_forever(folder, *done, ring_bytes); });
    while (done->marks[0].load() == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
    ::kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(wait_for(child)));
    auto recorded = read_all(folder.path());
    ASSERT_TRUE(recorded) << recorded.error().to_string();
    // A block that was being written is damage in the file; its records are still in the ring.
    recorded->summary.faults.erase("damaged block");
    EXPECT_THAT(recorded->summary.faults, IsEmpty()) << "round " << round;
    EXPECT_EQ(recorded->summary.dropped, 0U);
    expect_everything_acknowledged(*recorded, *done);
    if (HasFailure()) break;
  }
}

TEST(Crash, AbortLosesNothing) {
  const ScratchFolder folder;
  const pid_t child = fork_child([&] {
    Options options;
    options.folder = folder.path();
    if (!start(options)) ::_exit(3);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    const Range outer(Name("outer"), 1);
    for (int i = 0; i < 1000; ++i) mark(Name("m"), i);
    std::abort();
  });
  EXPECT_EQ(WTERMSIG(wait_for(child)), SIGABRT);
  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded);
  EXPECT_EQ(recorded->count(Type::kMark, "m"), 1000U);
  EXPECT_EQ(recorded->count(Type::kRangeBegin, "outer"), 1U);
  EXPECT_EQ(recorded->count(Type::kRangeEnd), 0U);
}

TEST(Crash, ExitWithoutStopCompletesTheFiles) {
  const ScratchFolder folder;
  const pid_t child = fork_child([&] {
    Options options;
    options.folder = folder.path();
    if (!start(options)) ::_exit(3);
    mark(Name("m"), 1);
    std::exit(0);  // NOLINT(concurrency-mt-unsafe)
  });
  EXPECT_EQ(wait_for(child), 0);
  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded);
  ASSERT_EQ(recorded->threads.size(), 1U);
  EXPECT_TRUE(recorded->threads[0].ended);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    EXPECT_NE(entry.path().extension(), ".ring");
}

struct Outcome {
  bool stopped_well = true;
  ErrorKind kind{};
  char message[256] = {};
};

TEST(Crash, AFileSizeLimitEndsNeitherTheProgramNorTheRecording) {
  constexpr int64_t kMarks = 400'000;
  const ScratchFolder folder;
  Shared<Outcome> outcome;
  const pid_t child = fork_child([&] {
    const rlimit limit{300'000, 300'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Options options;
    options.folder = folder.path();
    options.ring_bytes = 65'536;
    options.block_when_full = true;  // must not wait for a file that takes no more
    if (!start(options)) ::_exit(3);
    const Name name("m");
    for (int64_t i = 0; i < kMarks; ++i) mark(name, static_cast<int64_t>(i * 2'654'435'761) % 1'000'003);
    auto stopped = stop();
    outcome->stopped_well = stopped.has_value();
    if (!stopped) {
      outcome->kind = stopped.error().kind();
      stopped.error().to_string().copy(outcome->message, sizeof outcome->message - 1);
    }
  });
  EXPECT_EQ(wait_for(child), 0) << "killed by SIGXFSZ?";
  EXPECT_FALSE(outcome->stopped_well);
  EXPECT_EQ(outcome->kind, ErrorKind::kIo);
  EXPECT_THAT(outcome->message, testing::HasSubstr("File too large"));
  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded) << recorded.error().to_string();
  EXPECT_THAT(recorded->summary.faults, IsEmpty());
  const uint64_t marks = recorded->count(Type::kMark);
  EXPECT_GT(marks, 20'000U);
  EXPECT_GT(recorded->summary.dropped, 0U);
  EXPECT_EQ(marks + recorded->summary.dropped, static_cast<uint64_t>(kMarks));
}

TEST(Crash, NoRoomForTheRingIsAnErrorAtStart) {
  const ScratchFolder folder;
  Shared<Outcome> outcome;
  const pid_t child = fork_child([&] {
    const rlimit limit{200'000, 200'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Options options;
    options.folder = folder.path();
    options.ring_bytes = 1 << 20;
    auto started = start(options);
    outcome->stopped_well = started.has_value();
    if (!started) started.error().to_string().copy(outcome->message, sizeof outcome->message - 1);
  });
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_FALSE(outcome->stopped_well);
  EXPECT_THAT(outcome->message, testing::HasSubstr("File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "nothing half-made is left";
}

}  // namespace
}  // namespace strobe::record
