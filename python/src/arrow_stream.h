// Columns through the Arrow C stream interface (https://arrow.apache.org/docs/format/CStreamInterface.html), which
// needs no library: pyarrow, polars, DuckDB and others take it as it is.
#pragma once

#include <Python.h>

#include <memory>

#include "columns.h"

namespace strobe::python {

// A capsule "arrow_array_stream" with one batch; texts are dictionary-encoded. Null with an exception set.
PyObject* arrow_stream(std::shared_ptr<const Columns> columns);

}  // namespace strobe::python
