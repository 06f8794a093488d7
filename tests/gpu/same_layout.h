// Holds our declarations of a library's structures against its own headers, at compile time. A file that uses it names
// the namespace of ours `abi`.
#pragma once

#include <cstddef>

#define SAME_SIZE(ours, theirs) static_assert(sizeof(abi::ours) == sizeof(theirs))
// Of one that tells the library its own size.
#define SAME_STRUCT_SIZE(ours, theirs) \
  static_assert(sizeof(abi::ours) == sizeof(theirs) && abi::kStructSize<abi::ours> == theirs##_STRUCT_SIZE)
#define SAME_PLACE(ours, field, theirs, their_field)                           \
  static_assert(offsetof(abi::ours, field) == offsetof(theirs, their_field) && \
                sizeof(abi::ours::field) == sizeof(theirs::their_field))
