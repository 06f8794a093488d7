#include "strobe/record/annotate_c.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/recorded.h"
#include "support/test_data.h"

extern "C" int record_from_c(const char* folder, char* message, size_t message_bytes, uint64_t* dropped);

namespace strobe::record {
namespace {

TEST(AnnotateC, EveryCallArrives) {
  const strobe::test::ScratchFolder folder;
  char message[200] = "";
  uint64_t dropped = 1;
  ASSERT_EQ(record_from_c(folder.path().c_str(), message, sizeof message, &dropped), 0) << message;
  strobe_name_thread("");  // the name would stay with this thread
  EXPECT_EQ(dropped, 0U);
  auto recorded = test::read_all(folder.path());
  ASSERT_TRUE(recorded);
  EXPECT_THAT(recorded->summary.faults, testing::IsEmpty());
  std::vector<int> types;
  for (const auto& event : recorded->threads.at(0).events) types.push_back(static_cast<int>(event.type));
  using test::Type;
  std::vector<int> expected;
  for (const Type type : {Type::kRangeBegin, Type::kArgumentInt, Type::kArgumentDouble, Type::kArgumentText,
                          Type::kRangeBegin, Type::kRangeEnd, Type::kRangeEnd, Type::kAsyncBegin, Type::kAsyncEnd,
                          Type::kFlowOut, Type::kFlowIn, Type::kMark, Type::kCounter,
                          // Those of categories and payloads.
                          Type::kRangeBegin, Type::kArgumentInt, Type::kArgumentInt, Type::kRangeBegin, Type::kRangeEnd,
                          Type::kRangeEnd, Type::kAsyncBegin, Type::kArgumentInt, Type::kAsyncEnd, Type::kArgumentInt,
                          Type::kAsyncBegin, Type::kAsyncEnd, Type::kAsyncBegin, Type::kAsyncEndAny, Type::kMark,
                          Type::kArgumentInt, Type::kArgumentDouble, Type::kArgumentText, Type::kMark, Type::kCounter,
                          Type::kCounter, Type::kCounter, Type::kThreadName, Type::kFact, Type::kFact})
    expected.push_back(static_cast<int>(type));
  EXPECT_EQ(types, expected);
  uint64_t in_library = 0;
  for (const auto& event : recorded->threads[0].events)
    if (event.category == "kind" && event.domain == "library") ++in_library;
  EXPECT_EQ(in_library, 4U) << "two ranges, one interval, one mark";
}

TEST(AnnotateC, AFailureIsACodeAndALine) {
  char message[16] = "";
  EXPECT_EQ(strobe_start(nullptr, message, sizeof message), 2);
  EXPECT_EQ(std::string(message), "record: no fold");
}

}  // namespace
}  // namespace strobe::record
