#include <nanobind/nanobind.h>

#include "base/version.h"
#include "bindings.h"
#include "range_type.h"

namespace strobe::python {
namespace {
PyObject* error_type;
}  // namespace

void raise(const Error& error) {
  const std::string line = error.to_string();
  PyObject* text = PyUnicode_DecodeUTF8(line.data(), static_cast<Py_ssize_t>(line.size()), "replace");
  if (text != nullptr) {
    PyErr_SetObject(error_type, text);
    Py_DECREF(text);
  }
  throw nb::python_error();
}

}  // namespace strobe::python

NB_MODULE(_strobe, module) {
  namespace nb = nanobind;
  using namespace strobe::python;
  // The recorder and the tables of names belong to the process, not to an interpreter.
  if (PyInterpreterState_Get() != PyInterpreterState_Main())
    throw nb::import_error("strobe works in the main interpreter only, not in sub-interpreters");
  error_type = PyErr_NewExceptionWithDoc("strobe.Error", "What failed, where, and what was expected, in one line.",
                                         nullptr, nullptr);
  if (error_type == nullptr) throw nb::python_error();
  module.attr("Error") = nb::borrow(error_type);
  module.attr("__version__") = strobe::version();
  if (add_range_type(module.ptr()) < 0) throw nb::python_error();
  bind_recording(module);
  bind_trace(module);
  bind_bench(module);
}
