// However long a recording: the program's memory stays what it was, whatever the names and however many threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "record/child.h"
#include "strobe/record/annotate.h"
#include "support/test_data.h"

namespace strobe::record {
namespace {

using strobe::test::ScratchFolder;

int64_t resident_kib() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

struct Measured {
  int64_t early_kib = 0, end_kib = 0;
  uint64_t records = 0, bytes = 0;
};

void record_much(int64_t ranges, int64_t first) {
  static const Name name("fixed"), key("key");
  for (int64_t i = first; i < first + ranges; ++i) {
    Range range(name, i);
    range.arg(key, i);
    if (i % 10 == 0) mark("never the same name " + std::to_string(i), i, {}, {{key, "text"}});
    if (i % 20'000 == 0) std::thread([i] { const Range passing("thread " + std::to_string(i)); }).join();
  }
}

TEST(Memory, OfALongRecordingStaysFlat) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's own memory grows";
#endif
  const ScratchFolder folder;
  test::Shared<Measured> measured;
  // In a process of its own, whose memory no other test has used.
  const pid_t child = test::fork_child([&] {
    Options options;
    options.folder = folder.path();
    options.ring_bytes = 256 << 10;
    options.block_when_full = true;
    if (!start(options)) ::_exit(3);
    record_much(200'000, 0);
    measured->early_kib = resident_kib();
    record_much(4'000'000, 200'000);
    measured->end_kib = resident_kib();
    const auto totals = stop();
    if (!totals || totals->dropped > 0) ::_exit(4);
    measured->records = totals->records;
    measured->bytes = totals->bytes;
  });
  ASSERT_EQ(test::wait_for(child), 0);
  EXPECT_GE(measured->records, 4'200'000U * 3);
  EXPECT_LT(measured->end_kib - measured->early_kib, 1024) << "of " << measured->early_kib << " KiB";
}

}  // namespace
}  // namespace strobe::record
