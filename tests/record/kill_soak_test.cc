// Kills at random moments, of programs with threads that record everything there is, and with forks. How many:
// STROBE_KILLS (default 10); the target kill_soak makes it 200.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "record/child.h"
#include "record/recorded.h"
#include "strobe/record/annotate.h"
#include "support/test_data.h"

namespace strobe::record {
namespace {

using strobe::test::ScratchFolder;
using test::Event;
using test::fork_child;
using test::read_all;
using test::Shared;
using test::Type;

constexpr int kWorkers = 3;   // threads that live on
constexpr int kForks = 2;     // children of the recorded program, each with a thread or two
constexpr int kPassing = 64;  // threads that come and go, one after the other
constexpr int kSlots = kWorkers + 2 * kForks + kPassing;

// What each recording thread has done; shared with the programs that are killed.
struct Acknowledged {
  std::array<std::atomic<int64_t>, kSlots> rounds;
};

std::string dynamic_name(int64_t round) {
  return "step " + std::to_string(round % 700);
}
int64_t frame_of(int64_t round) {
  return round % 3 == 0 ? round + (int64_t{1} << 40) : round;
}
int64_t counted(int64_t round) {
  return round * (round % 2 == 0 ? 1 : -1'000'000'007);
}
constexpr int kEventsARound = 14;

// One of everything, in a fixed order.
void record_round(int64_t round) {
  static const Name key("key"), text("text"), fixed("fixed"), count("count");
  static const Category category("stage", "soak");
  {
    Range outer(std::string_view{dynamic_name(round)}, frame_of(round), category);
    outer.arg(key, round);
    {
      Range inner(fixed, round);
      inner.arg(key, round).arg(text, dynamic_name(round));
      mark(fixed, round, category, {{key, round}, {text, dynamic_name(round)}});
    }
    const auto id = static_cast<uint64_t>(round);
    async_begin(std::string_view{dynamic_name(round)}, id, round);
    async_end(id, {{key, round}});
    thread_counter(count, counted(round));
  }
}

void work(Acknowledged& done, int slot, int64_t rounds) {
  name_thread("slot " + std::to_string(slot));
  for (int64_t round = 0; round < rounds; ++round) {
    record_round(round);
    done.rounds[static_cast<size_t>(slot)].store(round + 1, std::memory_order_release);
  }
}

// Until it is killed.
void run_program(const ScratchFolder& folder, Acknowledged& done, size_t ring_bytes, uint32_t seed) {
  ::setpgid(0, 0);
  Options options;
  options.folder = folder.path();
  options.ring_bytes = ring_bytes;
  options.block_when_full = true;
  options.drain_period_ms = 1;
  if (!start(options)) ::_exit(3);
  constexpr int64_t kForever = INT64_MAX;
  std::vector<std::thread> threads;
  for (int slot = 0; slot < kWorkers; ++slot) threads.emplace_back([&done, slot] { work(done, slot, kForever); });
  std::mt19937 random(seed);
  for (int fork = 0; fork < kForks; ++fork) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 8000));
    const int slot = kWorkers + 2 * fork;
    fork_child([&] {
      std::thread second([&done, slot] { work(done, slot + 1, kForever); });
      work(done, slot, kForever);
    });
  }
  for (int slot = kSlots - kPassing; slot < kSlots; ++slot)
    std::thread([&] { work(done, slot, 1 + static_cast<int64_t>(random() % 200)); }).join();
  for (auto& thread : threads) thread.join();
}

Event event_of(Type type, const std::string& name = {}) {
  Event event;
  event.type = type;
  event.name = name;
  return event;
}
Event integer(const std::string& key, int64_t value, bool of_event) {
  Event event = event_of(Type::kArgumentInt, key);
  event.integer = value;
  event.of_event = of_event;
  return event;
}

// What record_round leaves.
std::array<Event, kEventsARound> events_of(int64_t round) {
  const std::string name = dynamic_name(round);
  Event outer = event_of(Type::kRangeBegin, name), inner = event_of(Type::kRangeBegin, "fixed");
  outer.frame = frame_of(round);
  outer.category = "stage";
  outer.domain = "soak";
  inner.frame = round;
  Event text = event_of(Type::kArgumentText, "text");
  text.text = name;
  Event mark = event_of(Type::kMark, "fixed"), text_of_mark = text;
  mark.frame = round;
  mark.category = "stage";
  mark.domain = "soak";
  text_of_mark.of_event = true;
  Event begin = event_of(Type::kAsyncBegin, name), end = event_of(Type::kAsyncEndAny);
  begin.id = end.id = static_cast<uint64_t>(round);
  begin.frame = round;
  Event counter = event_of(Type::kCounter, "count");
  counter.integer = counted(round);
  counter.number = static_cast<double>(counted(round));
  counter.of_thread = true;
  const Event range_end = event_of(Type::kRangeEnd);
  return {outer,
          integer("key", round, false),
          inner,
          integer("key", round, false),
          text,
          mark,
          integer("key", round, true),
          text_of_mark,
          range_end,
          begin,
          end,
          integer("key", round, true),
          counter,
          range_end};
}

bool same(const Event& a, const Event& b) {
  return a.type == b.type && a.name == b.name && a.frame == b.frame && a.id == b.id && a.integer == b.integer &&
         a.number == b.number && a.text == b.text && a.category == b.category && a.domain == b.domain &&
         a.of_event == b.of_event && a.of_thread == b.of_thread;
}

void expect_round(const std::vector<Event>& events, size_t at, int64_t round) {
  const auto expected = events_of(round);
  for (size_t i = 0; i < expected.size() && at + i < events.size(); ++i) {
    if (!same(events[at + i], expected[i])) {
      ADD_FAILURE() << "round " << round << " event " << i << ": type " << static_cast<int>(events[at + i].type)
                    << " name " << events[at + i].name << " frame " << events[at + i].frame;
      return;
    }
  }
}

// All of what each thread acknowledged, once, in order, and at most one round more.
void expect_everything(const test::Recorded& recorded, const Acknowledged& done) {
  std::map<int, size_t> found;
  for (const auto& thread : recorded.threads) {
    if (thread.events.empty() || thread.events[0].type != Type::kThreadName) continue;
    const int slot = std::stoi(thread.events[0].text.substr(5));
    EXPECT_TRUE(found.emplace(slot, thread.events.size() - 1).second) << "slot " << slot << " is there twice";
    for (size_t at = 1; at < thread.events.size() && !testing::Test::HasFailure(); at += kEventsARound)
      expect_round(thread.events, at, static_cast<int64_t>((at - 1) / kEventsARound));
  }
  for (int slot = 0; slot < kSlots; ++slot) {
    const auto acknowledged = static_cast<size_t>(done.rounds[static_cast<size_t>(slot)].load());
    const size_t events = found.contains(slot) ? found[slot] : 0;
    EXPECT_GE(events, acknowledged * kEventsARound) << "slot " << slot;
    EXPECT_LE(events, (acknowledged + 1) * kEventsARound) << "slot " << slot;
  }
}

int kills() {
  const char* wanted = std::getenv("STROBE_KILLS");  // NOLINT(concurrency-mt-unsafe)
  return wanted != nullptr ? std::stoi(wanted) : 10;
}

TEST(KillSoak, EveryAcknowledgedRecordIsThereOnce) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "sanitizers know no threads in the child of a program with threads";
#endif
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // forked children of a killed program are waited for here
  std::mt19937 random(std::random_device{}());
  uint64_t rounds = 0, forked = 0, events = 0;
  for (int kill = 0; kill < kills() && !HasFailure(); ++kill) {
    const ScratchFolder folder;
    Shared<Acknowledged> done;
    const size_t ring_bytes = size_t{16'384} << random() % 6;
    const auto seed = static_cast<uint32_t>(random());
    const uint32_t moment_us = random() % 40'000;
    SCOPED_TRACE("kill " + std::to_string(kill) + " after " + std::to_string(moment_us) + " us, seed " +
                 std::to_string(seed) + ", rings of " + std::to_string(ring_bytes));
    const pid_t child = fork_child([&] { run_program(folder, *done, ring_bytes, seed); });
    while (done->rounds[0].load() == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
    std::this_thread::sleep_for(std::chrono::microseconds(moment_us));
    ::kill(-child, SIGKILL);
    while (::waitpid(-child, nullptr, 0) > 0) {
    }
    auto recorded = read_all(folder.path());
    ASSERT_TRUE(recorded) << recorded.error().to_string();
    // A block that was being written is damage in the file; its records are still in the ring.
    recorded->summary.faults.erase("damaged block");
    EXPECT_THAT(recorded->summary.faults, testing::IsEmpty());
    EXPECT_EQ(recorded->summary.dropped, 0U);
    expect_everything(*recorded, *done);
    for (const auto& count : done->rounds) rounds += static_cast<uint64_t>(count.load());
    for (int slot = kWorkers; slot < kWorkers + 2 * kForks; ++slot)
      forked += done->rounds[static_cast<size_t>(slot)].load() > 0 ? 1 : 0;
    events += recorded->summary.events;
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  EXPECT_GT(forked, 0U) << "no forked thread recorded anything before its end";
  std::cout << kills() << " kills: " << rounds * kEventsARound << " acknowledged events, " << events << " found, "
            << forked << " threads of forked children\n";
}

}  // namespace
}  // namespace strobe::record
