#include "analyze/name_filter.h"

namespace strobe::analyze {

Result<NameFilter> NameFilter::parse(const std::string& pattern) {
  NameFilter filter;
  if (pattern.empty()) return filter;
  auto* expression = new regex_t;
  // POSIX matching takes a linear amount of stack, whatever the name: names come from files.
  if (const int code = ::regcomp(expression, pattern.c_str(), REG_EXTENDED | REG_NOSUB); code != 0) {
    char reason[200];
    ::regerror(code, expression, reason, sizeof reason);
    delete expression;
    return usage_error("'" + pattern + "' is no regular expression: " + reason);
  }
  filter.expression_ = std::shared_ptr<const regex_t>(expression, [](const regex_t* owned) {
    auto* mutable_expression = const_cast<regex_t*>(owned);
    ::regfree(mutable_expression);
    delete mutable_expression;
  });
  return filter;
}

bool NameFilter::matches(std::string_view name) const {
  return !expression_ || ::regexec(expression_.get(), std::string(name).c_str(), 0, nullptr, 0) == 0;
}

}  // namespace strobe::analyze
