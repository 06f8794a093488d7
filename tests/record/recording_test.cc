// Threads, full rings, restarts and misuse.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <set>
#include <thread>
#include <vector>

#include "record/recorded.h"
#include "strobe/record/annotate.h"
#include "support/test_data.h"

namespace strobe::record {
namespace {

using strobe::test::ScratchFolder;
using test::read_all;
using test::Type;
using testing::Contains;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

Options options_for(const ScratchFolder& folder, size_t ring_bytes = 1 << 20) {
  Options options;
  options.folder = folder.path();
  options.ring_bytes = ring_bytes;
  return options;
}

TEST(Recording, EightThreadsBlockingLoseNothing) {
  constexpr int64_t kRanges = 200'000;
  const ScratchFolder folder;
  Options options = options_for(folder);
  options.block_when_full = true;
  ASSERT_TRUE(start(options));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([] {
      const Name name("work");
      for (int64_t i = 0; i < kRanges; ++i) const Range range(name, i);
    });
  }
  for (auto& thread : threads) thread.join();
  auto totals = stop();
  ASSERT_TRUE(totals) << totals.error().to_string();
  EXPECT_EQ(totals->records, 16U * kRanges);
  EXPECT_EQ(totals->dropped, 0U);
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) bytes += entry.file_size();
  EXPECT_EQ(totals->bytes, bytes);

  std::map<int32_t, int64_t> next;
  int open = 0;
  auto summary = read_spool(folder.path(), [&](const SpoolThread& who, const SpoolEvent& event) {
    if (event.type == Type::kRangeBegin) {
      ASSERT_EQ(event.frame, next[who.tid]++);
      ++open;
    } else if (event.type == Type::kRangeEnd) {
      --open;
    }
  });
  ASSERT_TRUE(summary);
  EXPECT_THAT(summary->faults, IsEmpty());
  EXPECT_EQ(open, 0);
  ASSERT_EQ(next.size(), 8U);
  for (const auto& [tid, count] : next) EXPECT_EQ(count, kRanges);
}

TEST(Recording, FullRingDropsWholeRangesAndSaysHowMany) {
  constexpr uint64_t kRounds = 300'000;
  const ScratchFolder folder;
  ASSERT_TRUE(start(options_for(folder, 16'384)));
  const Name outer("outer");
  const Name key("key");
  for (uint64_t i = 0; i < kRounds; ++i) {
    Range a(outer, static_cast<int64_t>(i));
    a.arg(key, static_cast<int64_t>(i));
    const Range b(std::string_view{"inner"}, static_cast<int64_t>(i));
  }
  auto totals = stop();
  ASSERT_TRUE(totals);
  EXPECT_GT(totals->dropped, 0U) << "the ring never filled: the test shows nothing";
  EXPECT_EQ(totals->records + totals->dropped, 5 * kRounds);

  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded);
  EXPECT_THAT(recorded->summary.faults, IsEmpty()) << "nesting is whole";
  EXPECT_EQ(recorded->summary.dropped, totals->dropped);
  EXPECT_EQ(recorded->count(Type::kRangeBegin), recorded->count(Type::kRangeEnd));
  // The losses lie where they happened, and add up.
  int64_t in_place = 0;
  std::vector<std::pair<std::string, int64_t>> open;
  for (const auto& event : recorded->threads.at(0).events) {
    if (event.type == Type::kDropped) in_place += event.integer;
    if (event.type == Type::kRangeBegin) open.emplace_back(event.name, event.frame);
    if (event.type == Type::kArgumentInt) {
      ASSERT_EQ(open.back(), std::pair(std::string("outer"), event.integer)) << "of its own range only";
    }
    if (event.type == Type::kRangeEnd) open.pop_back();
  }
  EXPECT_EQ(in_place, static_cast<int64_t>(totals->dropped));
}

TEST(Recording, ThreadsThatEndHandOverTheirRings) {
  constexpr int kThreads = 400;
  const ScratchFolder folder;
  ASSERT_TRUE(start(options_for(folder, 16'384)));
  for (int t = 0; t < kThreads; ++t) {
    std::thread([t] {
      name_thread("short " + std::to_string(t));
      const Range range(std::string_view{"life " + std::to_string(t)}, t);
    }).join();
  }
  int rings = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() == ".ring") ++rings;
  }
  EXPECT_LT(rings, kThreads * 3 / 4) << "rings of ended threads are used again";
  ASSERT_TRUE(stop());
  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded);
  EXPECT_THAT(recorded->summary.faults, IsEmpty());
  std::set<std::string> names;
  for (const auto& thread : recorded->threads) {
    EXPECT_TRUE(thread.ended);
    for (const auto& event : thread.events) {
      if (event.type == Type::kRangeBegin) names.insert(event.name);
    }
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kThreads));
}

TEST(Recording, ALiveRecordingReadsWhole) {
  const ScratchFolder folder;
  Options options = options_for(folder, 65'536);
  options.block_when_full = true;
  ASSERT_TRUE(start(options));
  std::atomic<int64_t> done{0};
  std::atomic<bool> enough{false};
  std::thread busy([&] {
    while (!enough.load()) {
      mark(Name("m"), done.load());
      // Slow enough that reading everything again stays quick.
      if (done.fetch_add(1) % 100 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  while (done.load() == 0) std::this_thread::yield();
  for (int round = 0; round < 20; ++round) {
    const int64_t before = done.load();
    int64_t next = 0;
    auto summary = read_spool(folder.path(), [&](const SpoolThread& who, const SpoolEvent& event) {
      if (event.type != Type::kMark) return;
      ASSERT_EQ(event.frame, next++);
      ASSERT_FALSE(who.ended);
    });
    ASSERT_TRUE(summary);
    // The last block may be half there; what it holds is still in the ring.
    summary->faults.erase("damaged block");
    EXPECT_THAT(summary->faults, IsEmpty());
    EXPECT_GE(next, before);
  }
  enough = true;
  busy.join();
  ASSERT_TRUE(stop());
}

TEST(Recording, RestartsAfterStopAndKeepsRecordingsApart) {
  const ScratchFolder first;
  const ScratchFolder second;
  mark(Name("before any"), 1);
  name_thread("kept name");
  ASSERT_TRUE(start(options_for(first)));
  EXPECT_EQ(start(options_for(second)).error().kind(), ErrorKind::kUsage);
  auto across = std::make_unique<Range>(Name("across"), 1);
  push(Name("pushed"), 1);
  ASSERT_TRUE(stop());
  mark(Name("between"), 1);
  ASSERT_TRUE(start(options_for(second)));
  across.reset();
  mark(Name("second"), 1);
  ASSERT_TRUE(stop());
  name_thread("");
  auto nothing = stop();
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->records, 0U);

  auto one = read_all(first.path());
  auto two = read_all(second.path());
  ASSERT_TRUE(one);
  ASSERT_TRUE(two);
  EXPECT_EQ(one->count(Type::kRangeBegin), 2U);
  EXPECT_EQ(one->summary.events, 3U);
  EXPECT_EQ(two->summary.events, 2U);
  EXPECT_EQ(two->count(Type::kMark, "second"), 1U);
  EXPECT_EQ(two->threads.at(0).events.at(0).text, "kept name");
  EXPECT_THAT(two->summary.faults, IsEmpty());
}

TEST(Recording, UnmatchedPopsAreFaultsAndDoNoHarm) {
  const ScratchFolder folder;
  ASSERT_TRUE(start(options_for(folder)));
  pop();
  push(Name("a"), 1);
  pop();
  pop();
  pop();
  { const Range b(Name("b"), 2); }
  ASSERT_TRUE(stop());
  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded);
  EXPECT_THAT(recorded->summary.faults, UnorderedElementsAre(Pair("range end without begin", 3U)));
  EXPECT_EQ(recorded->count(Type::kRangeBegin), 2U);
  EXPECT_EQ(recorded->count(Type::kRangeEnd), 2U);
}

TEST(Recording, NamesAreCopiedBeforeTheirMemoryGoes) {
  const ScratchFolder folder;
  ASSERT_TRUE(start(options_for(folder)));
  void* library = ::dlopen(STROBE_NAME_LIBRARY, RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  using NameFn = const char* (*)();
  const char* literal = reinterpret_cast<NameFn>(::dlsym(library, "name_of_unloaded_library"))();
  const Name from_library(literal);
  { const Range dynamic(std::string_view{literal}, 1); }
  ASSERT_EQ(::dlclose(library), 0);
  ASSERT_EQ(::dlopen(STROBE_NAME_LIBRARY, RTLD_NOW | RTLD_NOLOAD), nullptr) << "still loaded";
  { const Range again(from_library, 2); }
  std::string buffer = "first text";
  { const Range range(std::string_view{buffer}, 3); }
  buffer = "other text";  // the same memory
  { const Range range(std::string_view{buffer}, 4); }
  ASSERT_TRUE(stop());
  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded);
  EXPECT_EQ(recorded->count(Type::kRangeBegin, "a literal of an unloaded library"), 2U);
  EXPECT_EQ(recorded->count(Type::kRangeBegin, "first text"), 1U);
  EXPECT_EQ(recorded->count(Type::kRangeBegin, "other text"), 1U);
}

TEST(Recording, DynamicNamesOfEverySizeAndNumber) {
  const ScratchFolder folder;
  ASSERT_TRUE(start(options_for(folder, 8 << 20)));
  std::vector<std::string> names;
  for (size_t i = 0; i < 3000; ++i) names.push_back(std::string(i % 300, 'x') + std::to_string(i));
  names.emplace_back();
  names.push_back("with \0 inside" + std::string(1, '\0'));
  for (int round = 0; round < 2; ++round)
    for (const auto& name : names) const Range range(std::string_view{name}, 1);
  ASSERT_TRUE(stop());
  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded);
  EXPECT_THAT(recorded->summary.faults, IsEmpty());
  std::vector<std::string> read;
  for (const auto& event : recorded->threads.at(0).events)
    if (event.type == Type::kRangeBegin) read.push_back(event.name);
  ASSERT_EQ(read.size(), 2 * names.size());
  for (size_t i = 0; i < read.size(); ++i) ASSERT_EQ(read[i], names[i % names.size()]);
}

TEST(Recording, LongTextsAreCutAtACharacterAndSaySo) {
  const ScratchFolder folder;
  ASSERT_TRUE(start(options_for(folder, 16'384)));
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "ä";
  {
    Range range(Name("r"), 1);
    range.arg(Name("text"), std::string_view{text});
  }
  fact("long", text);
  ASSERT_TRUE(stop());
  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded);
  const std::string& kept = recorded->threads.at(0).events.at(1).text;
  EXPECT_GT(kept.size(), 1000U);
  EXPECT_TRUE(kept.ends_with("ä..."));
  EXPECT_TRUE(recorded->threads.at(0).events.at(3).text.ends_with("ä..."));
  EXPECT_EQ(recorded->threads.at(0).events.at(3).name, "long");
}

TEST(Recording, DeepNestingFillsTheRingAndStaysWhole) {
  const ScratchFolder folder;
  ASSERT_TRUE(start(options_for(folder, 16'384)));
  constexpr int kDepth = 20'000;
  const Name name("deep");
  for (int i = 0; i < kDepth; ++i) push(name, i);
  for (int i = 0; i < kDepth; ++i) pop();
  { const Range range(Name("after"), 1); }
  auto totals = stop();
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->records + totals->dropped, 2U * kDepth + 2);
  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded);
  EXPECT_THAT(recorded->summary.faults, IsEmpty());
  EXPECT_EQ(recorded->count(Type::kRangeBegin), recorded->count(Type::kRangeEnd));
}

// Made before any signal comes: making a name takes a lock and memory, which the interrupted code may hold.
uint32_t handler_name = 0;
std::atomic<uint64_t> handled{0};
void record_in_handler(int /*signal*/) {
  push(Name::with_id(handler_name), 5);
  pop();
  handled.fetch_add(1);
}

TEST(Recording, SignalHandlersMayRecordAnywhere) {
  const ScratchFolder folder;
  Options options = options_for(folder, 8 << 20);
  options.block_when_full = true;
  ASSERT_TRUE(start(options));
  handler_name = Name("in handler").id();
  handled = 0;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = record_in_handler;
  ::sigaction(SIGUSR1, &action, &before);
  std::atomic<bool> done{false};
  const pthread_t self = ::pthread_self();
  int sent = 0;
  std::thread sender([&] {
    for (; !done.load(); ++sent) {
      ::pthread_kill(self, SIGUSR1);
      std::this_thread::sleep_for(std::chrono::microseconds(5));
    }
  });
  const Name outer("outer");
  uint64_t ranges = 0;
  // Until signals came; on a busy machine the sender may have to wait for a core.
  for (; ranges < 300'000 || (handled.load() < 100 && ranges < 100'000'000); ++ranges)
    const Range range(outer, static_cast<int64_t>(ranges));
  done = true;
  sender.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  auto totals = stop();
  ASSERT_TRUE(totals);
  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded);
  EXPECT_THAT(recorded->summary.faults, IsEmpty());
  EXPECT_EQ(recorded->count(Type::kRangeBegin, "outer"), ranges) << "the program's own records are whole";
  EXPECT_GT(recorded->count(Type::kRangeBegin, "in handler"), 0U);
  EXPECT_EQ(recorded->count(Type::kRangeBegin), recorded->count(Type::kRangeEnd));
  EXPECT_EQ(recorded->summary.dropped, totals->dropped);
}

TEST(Recording, UsageErrorsSayWhatWasExpected) {
  const ScratchFolder folder;
  EXPECT_EQ(start({}).error().kind(), ErrorKind::kUsage);
  Options options = options_for(folder);
  options.drain_period_ms = 0;
  EXPECT_THAT(start(options).error().to_string(), testing::HasSubstr("expected 1 or more"));
  options = options_for(folder);
  options.folder = "/proc/no/such";
  EXPECT_EQ(start(options).error().kind(), ErrorKind::kIo);
  EXPECT_FALSE(recording());
}

TEST(Reader, SaysWhenThereIsNothingToRead) {
  const ScratchFolder folder;
  const auto ignore = [](const SpoolThread&, const SpoolEvent&) {};
  EXPECT_EQ(read_spool(folder / "none", ignore).error().kind(), ErrorKind::kNotFound);
  EXPECT_EQ(read_spool(folder.path(), ignore).error().kind(), ErrorKind::kBadData);
}

}  // namespace
}  // namespace strobe::record
