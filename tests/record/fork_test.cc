#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using test::Type;
using test::wait_for;
using testing::IsEmpty;

TEST(Fork, ChildRecordsIntoItsOwnFilesWhileTheParentGoesOn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer knows no threads in the child of a process with threads";
#endif
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer's allocator may be locked by another thread at the fork, and stays so in the child";
#endif
  constexpr int kChildren = 20;
  constexpr int kMarks = 2000;
  const ScratchFolder folder;
  Options options;
  options.folder = folder.path();
  options.ring_bytes = 65'536;
  options.block_when_full = true;
  ASSERT_TRUE(start(options));
  std::atomic<bool> done{false};
  uint64_t busy_marks = 0;
  // Keeps locks of the recorder busy at the moments of the forks.
  std::thread busy([&] {
    for (; !done.load(); ++busy_marks) mark(Name("busy " + std::to_string(busy_marks % 5000)), 1);
  });
  std::vector<pid_t> children;
  {
    const Range across(Name("across"), 1);  // begun here, never ended in a child
    for (int i = 0; i < kChildren; ++i) {
      const Range round(Name("round"), i);
      children.push_back(fork_child([&] {
        for (int k = 0; k < kMarks; ++k) mark(Name("child mark " + std::to_string(k % 10)), k);
        std::thread([] { mark(Name("child thread"), 1); }).join();
        if (i % 2 == 0 && !stop()) ::_exit(4);
      }));
      mark(Name("forked"), i);
    }
    for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
  }
  done = true;
  busy.join();
  auto totals = stop();
  ASSERT_TRUE(totals) << totals.error().to_string();

  auto recorded = read_all(folder.path());
  ASSERT_TRUE(recorded);
  EXPECT_THAT(recorded->summary.faults, IsEmpty());
  EXPECT_EQ(recorded->summary.dropped, 0U);
  std::map<int32_t, uint64_t> child_marks;
  uint64_t parent_marks = 0;
  for (const auto& thread : recorded->threads) {
    for (const auto& event : thread.events) {
      if (thread.pid == ::getpid()) {
        EXPECT_NE(event.name.substr(0, 5), "child");
        if (event.type == Type::kMark && event.name.starts_with("busy")) ++parent_marks;
      } else {
        EXPECT_NE(event.type, Type::kRangeEnd);
        EXPECT_NE(event.name, "busy");
        if (event.name.starts_with("child")) ++child_marks[thread.pid];
      }
    }
  }
  EXPECT_EQ(parent_marks, busy_marks);
  EXPECT_EQ(child_marks.size(), static_cast<size_t>(kChildren));
  for (const pid_t child : children) EXPECT_EQ(child_marks[child], static_cast<uint64_t>(kMarks) + 1) << child;
  EXPECT_EQ(recorded->count(Type::kRangeBegin, "round"), static_cast<uint64_t>(kChildren));
}

TEST(Fork, ChildThatRecordsNothingMakesNoFiles) {
  const ScratchFolder folder;
  Options options;
  options.folder = folder.path();
  ASSERT_TRUE(start(options));
  mark(Name("m"), 1);
  EXPECT_EQ(wait_for(fork_child([] {
              if (!recording()) ::_exit(5);
            })),
            0);
  ASSERT_TRUE(stop());
  int spools = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() == ".spool") ++spools;
  }
  EXPECT_EQ(spools, 1);
}

TEST(Fork, NewIdsOfParentAndChildDiffer) {
  test::Shared<uint64_t> of_child;
  const uint64_t first = new_id();
  wait_for(fork_child([&] { *of_child = new_id(); }));
  const uint64_t second = new_id();
  EXPECT_NE(first, second);
  EXPECT_NE(*of_child, second);
}

}  // namespace
}  // namespace strobe::record
