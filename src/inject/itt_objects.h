// What a program made with ITT, as the recorder's names.
#pragma once

#include <string>
#include <string_view>
#include <tuple>

#include "inject/arguments.h"
#include "inject/itt_abi.h"
#include "strobe/record/annotate.h"

namespace strobe::inject::itt {

// A function that this collector offers: its name in ITT and its address.
struct Function {
  const char* name;
  void* address;
};
template <typename F>
Function function(const char* name, F* address) {
  return {name, reinterpret_cast<void*>(address)};
}

Domain* create_domain(const char* name);
StringHandle* create_string(const char* text);

std::string_view domain_name(const Domain* domain);
// The domain as a category without a name. Cached in the objects; they are the program's, but the fields are ours.
record::Category category_of(const Domain* domain);
record::Name name_of(const StringHandle* handle);

// count values at data under one key: a number, or a text of several.
void add_values(record::Name key, int type, size_t count, const void* data, Arguments& arguments);
// One value; false for an unknown type.
bool read_value(int type, const void* data, bool& is_real, int64_t& integer, double& real);

// Functions of the parts of this collector, each list ending with a null name.
const Function* task_functions();
const Function* frame_functions();
const Function* counter_functions();
const Function* event_functions();
// A counter that the static part made before there was a collector.
void adopt_counter(CounterInfo* counter);

}  // namespace strobe::inject::itt
