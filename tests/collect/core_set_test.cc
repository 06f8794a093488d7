#include "collect/core_set.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <thread>

namespace strobe::collect {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Cores, ListsAndRanges) {
  EXPECT_THAT(*parse_cores("0"), ElementsAre(0));
  EXPECT_THAT(*parse_cores("5,1"), ElementsAre(1, 5));
  EXPECT_THAT(*parse_cores("2-4,3,0"), ElementsAre(0, 2, 3, 4));
}

TEST(Cores, OtherTextsAreRefused) {
  for (const char* text : {"", ",", "a", "1,", "3-1", "-1", "1-", "0 1", "99999", "1;2"}) {
    const auto cores = parse_cores(text);
    ASSERT_FALSE(cores) << text;
    EXPECT_THAT(cores.error().to_string(), HasSubstr("expected numbers and ranges"));
  }
}

TEST(Cores, BindingHoldsForThreadsThatAreStartedLater) {
  // On a thread of its own: the test's other threads keep their cores.
  std::thread([] {
    const int core = ::sched_getcpu();
    ASSERT_TRUE(bind_to_cores(std::to_string(core)));
    std::thread([core] {
      cpu_set_t set;
      ASSERT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
      EXPECT_EQ(CPU_COUNT(&set), 1);
      EXPECT_TRUE(CPU_ISSET(core, &set));
    }).join();
    const auto missing = bind_to_cores("4000");
    ASSERT_FALSE(missing);
    EXPECT_THAT(missing.error().to_string(), HasSubstr("core 4000 is not there for this process; there are"));
  }).join();
}

}  // namespace
}  // namespace strobe::collect
