#include "inject/late_range.h"

#include <ctime>

namespace strobe::inject {

int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void put_late_range(record::Name name, std::string_view domain, int64_t begin_ns, int64_t end_ns) {
  static const record::Name began{kBeganAgo};
  static const record::Name ended{kEndedAgo};
  const record::Category category(kLateRange, domain);
  const int64_t now = now_ns();
  record::mark(name, record::kNoFrame, category, {{began, now - begin_ns}, {ended, now - end_ns}});
}

}  // namespace strobe::inject
