#include "strobe/base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace strobe {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return bad_data("odd number");
  return value / 2;
}

Result<int> quarter(int value) {
  STROBE_ASSIGN(const int once, half(value));
  STROBE_ASSIGN(const int twice, half(once));
  return twice;
}

Result<void> check_quarter(int value) {
  STROBE_TRY(quarter(value));
  return {};
}

TEST(Result, CarriesValuesThroughTry) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_TRUE(check_quarter(12));
}

TEST(Result, ReturnsTheFirstErrorThroughTry) {
  EXPECT_EQ(quarter(6).error().message(), "odd number");
  EXPECT_FALSE(check_quarter(6));
}

TEST(Result, MovesMoveOnlyValues) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  const std::unique_ptr<int> taken = std::move(*result);
  EXPECT_EQ(*taken, 7);
}

TEST(Result, ValueOfAFailedResultStopsTheProgram) {
  EXPECT_DEATH(half(1).value(), "odd number");
  EXPECT_DEATH(check_quarter(1).value(), "odd number");
}

TEST(Error, NamesPlacesFromTheOutsideInwards) {
  EXPECT_EQ(bad_data("negative duration").at("event 812").at("trace.json").to_string(),
            "trace.json: event 812: negative duration");
}

TEST(Error, ExitCodesAreThoseOfTheReadme) {
  EXPECT_EQ(usage_error("").exit_code(), 2);
  EXPECT_EQ(not_found("").exit_code(), 2);
  EXPECT_EQ(bad_data("").exit_code(), 2);
  EXPECT_EQ(unsupported("").exit_code(), 2);
  EXPECT_EQ(io_error("").exit_code(), 2);
  EXPECT_EQ(Error(ErrorKind::kCheckFailed, "").exit_code(), 1);
  EXPECT_EQ(Error(ErrorKind::kInterrupted, "").exit_code(), 130);
  EXPECT_EQ(engine_error("").exit_code(), 3);
  EXPECT_EQ(internal_error("").exit_code(), 3);
}

TEST(Error, IsOneLineWhateverItQuotes) {
  const Error error = bad_data("no key 'a\nb\tc'").at("x\r.yaml");
  EXPECT_EQ(error.to_string(), "x .yaml: no key 'a b c'");
}

}  // namespace
}  // namespace strobe
