// NVTX payloads that a schema describes, taken apart into arguments.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "inject/arguments.h"
#include "inject/nvtx_abi.h"

namespace strobe::inject::nvtx {

// Adds one argument an entry, keyed by the entries' names (those of an inner schema "outer.inner"). Arrays become one
// text of their first 64 elements. A text that the schema marks as the event's message goes to `message`.
void expand(const PayloadData* payloads, size_t count, Arguments& arguments, std::string& message);

struct Number {
  bool is_real;
  bool is_unsigned;
  int64_t integer;
  double real;
};
// Of an entry type, out of the `left` bytes at an address; false for what is no number or does not fit.
bool read_number(uint64_t type, const void* at, size_t left, Number& number);

// The entries of a registered schema, each with its place; counters of a group.
struct Field {
  std::string name;
  uint64_t type;
  uint64_t offset;
};
std::vector<Field> fields_of(uint64_t schema);

bool attach_payload(ExtensionModule& module);
bool attach_counters(ExtensionModule& module);

}  // namespace strobe::inject::nvtx
