// What the files of the module share.
#pragma once

#include <nanobind/nanobind.h>

#include "strobe/base/result.h"

namespace strobe::python {

namespace nb = nanobind;

// Raises strobe.Error with the error's one line.
[[noreturn]] void raise(const Error& error);
template <typename T>
T value_or_raise(Result<T>&& result) {
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

void bind_recording(nb::module_& module);
void bind_trace(nb::module_& module);
void bind_bench(nb::module_& module);
struct TraceHolder;
void bind_analyses(nb::class_<TraceHolder>& trace);

}  // namespace strobe::python
