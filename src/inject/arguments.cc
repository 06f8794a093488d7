#include "inject/arguments.h"

#include <limits>

#include "strobe/record/annotate_c.h"

namespace strobe::inject {

void Arguments::add_unsigned(record::Name key, uint64_t value) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    add(key, static_cast<int64_t>(value));
  else
    add(key, std::to_string(value));
}

void Arguments::add(record::Name key, std::string text) {
  texts_.push_back(std::move(text));
  list_.emplace_back(key, std::string_view(texts_.back()));
}

void Arguments::put_on_innermost() const {
  for (const record::Arg& arg : list_) {
    if (const auto* number = std::get_if<int64_t>(&arg.value))
      strobe_arg_int(arg.key.id(), *number);
    else if (const auto* real = std::get_if<double>(&arg.value))
      strobe_arg_double(arg.key.id(), *real);
    else  // one of texts_, which ends with 0
      strobe_arg_text(arg.key.id(), std::get<std::string_view>(arg.value).data());
  }
}

}  // namespace strobe::inject
