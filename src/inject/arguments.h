// Payload on its way into the recorder, with the memory of its texts.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/record/annotate.h"

namespace strobe::inject {

class Arguments {
 public:
  void add(record::Name key, int64_t value) { list_.emplace_back(key, value); }
  // Beyond int64 the number is kept as text: nothing is rounded.
  void add_unsigned(record::Name key, uint64_t value);
  void add(record::Name key, double value) { list_.emplace_back(key, value); }
  void add(record::Name key, std::string text);

  bool empty() const { return list_.empty(); }
  record::Args list() const { return std::span<const record::Arg>(list_); }
  // Gives all to the innermost open range of this thread.
  void put_on_innermost() const;

 private:
  std::vector<record::Arg> list_;
  std::deque<std::string> texts_;  // views in list_ point here
};

}  // namespace strobe::inject
