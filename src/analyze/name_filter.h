#pragma once

#include <regex.h>

#include <memory>
#include <string>
#include <string_view>

#include "strobe/base/result.h"

namespace strobe::analyze {

// Which names are meant: those in which an extended regular expression (as of grep -E) is found. Made from nothing:
// all.
class NameFilter {
 public:
  NameFilter() = default;
  // Errors: kUsage with the reason. An empty pattern means all.
  static Result<NameFilter> parse(const std::string& pattern);
  bool matches(std::string_view name) const;
  bool is_set() const { return expression_ != nullptr; }

 private:
  std::shared_ptr<const regex_t> expression_;
};

}  // namespace strobe::analyze
