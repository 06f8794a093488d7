#include "collect/core_run_log.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/file.h"
#include "support/test_data.h"

namespace strobe::collect {
namespace {

std::string written(const std::function<void(CoreRunLog&)>& write) {
  const test::ScratchFolder folder;
  const auto path = folder.path() / "cores.runs";
  {
    auto log = CoreRunLog::create(path);
    EXPECT_TRUE(log);
    write(*log);
  }
  return *read_file(path);
}

TEST(CoreRunLog, GivesBackWhatWasWritten) {
  const std::string bytes = written([](CoreRunLog& log) {
    log.run({1000, 3000, 1, 42, 43, true});
    log.run({500, 900, 0, 7, 7, false});
    log.name(43, "a rather long name of a thread");
    log.name(7, "\xff\n");
    log.parent(43, 42);
    log.lost(3);
    log.lost(4);
    log.covered(400, 2000);
    log.covered(400, 4000);
  });
  const auto found = parse_core_runs(bytes);
  ASSERT_TRUE(found) << found.error().to_string();
  ASSERT_EQ(found->runs.size(), 2U);
  EXPECT_EQ(found->runs[0].core, 0);  // by core, then time
  EXPECT_EQ(found->runs[1].start_ns, 1000);
  EXPECT_EQ(found->runs[1].end_ns, 3000);
  EXPECT_EQ(found->runs[1].tid, 43);
  EXPECT_TRUE(found->runs[1].preempted);
  EXPECT_FALSE(found->runs[0].preempted);
  EXPECT_EQ(found->names.at(43), "a rather long n");
  EXPECT_EQ(found->names.at(7), "??");
  EXPECT_EQ(found->parents.at(43), 42);
  EXPECT_EQ(found->lost, 7U);
  EXPECT_EQ(found->from_ns, 400);
  EXPECT_EQ(found->to_ns, 4000);
}

TEST(CoreRunLog, HalfARecordAtTheEndIsNotThere) {
  std::string bytes = written([](CoreRunLog& log) {
    log.run({1, 2, 0, 1, 1, false});
    log.run({3, 4, 0, 1, 1, false});
  });
  bytes.resize(bytes.size() - 5);
  const auto found = parse_core_runs(bytes);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->runs.size(), 1U);
}

TEST(CoreRunLog, RefusesWhatCannotBe) {
  EXPECT_EQ(parse_core_runs("STRBCORX").error().kind(), ErrorKind::kBadData);
  EXPECT_EQ(parse_core_runs("").error().kind(), ErrorKind::kBadData);
  const std::string backwards = written([](CoreRunLog& log) { log.run({5, 4, 0, 1, 1, false}); });
  EXPECT_EQ(parse_core_runs(backwards).error().to_string(),
            "log of core runs, byte 8: a run has a core of at least 0 and ends after its start");
  std::string unknown = written([](CoreRunLog& log) { log.run({4, 5, 0, 1, 1, false}); });
  unknown[8] = 9;
  EXPECT_EQ(parse_core_runs(unknown).error().kind(), ErrorKind::kBadData);
}

}  // namespace
}  // namespace strobe::collect
