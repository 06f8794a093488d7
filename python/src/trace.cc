// strobe.open: a trace, its columns as NumPy arrays over the timeline's own memory, its analyses.
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <filesystem>

#include "arrow_stream.h"
#include "bindings.h"
#include "columns.h"
#include "gpu/timeline/open.h"
#include "importers/importer.h"
#include "range_type.h"
#include "trace_holder.h"

namespace strobe::python {
namespace {

TraceHolder open_trace(const std::string& path) {
  auto opened = [&]() -> Result<trace::Timeline> {
    const nb::gil_scoped_release free;
    auto own = gpu::open_trace(path);
    std::error_code code;
    if (own || own.error().kind() != ErrorKind::kBadData || !std::filesystem::is_regular_file(path, code)) return own;
    auto imported = importers::import_trace(path, {});
    if (imported) return imported;
    return own;
  }();
  return {std::make_shared<const trace::Timeline>(value_or_raise(std::move(opened)))};
}

// The columns of a table, kept alive by every array made of them.
struct ColumnsHolder {
  std::shared_ptr<const Columns> columns;
};

template <typename T>
nb::object array_of(const ColumnView& column, size_t rows) {
  // An array without elements still wants a place.
  static const T kNothing{};
  const void* data = rows > 0 ? column.data : &kNothing;
  auto* owner = new std::shared_ptr<const void>(column.owner);
  const nb::capsule keeper(owner, [](void* kept) noexcept { delete static_cast<std::shared_ptr<const void>*>(kept); });
  return nb::cast(nb::ndarray<nb::numpy, const T, nb::ndim<1>>(data, {rows}, keeper));
}

nb::object array_of(const ColumnView& column, size_t rows) {
  switch (column.type) {
    case ColumnType::kInt64:
      return array_of<int64_t>(column, rows);
    case ColumnType::kInt32:
      return array_of<int32_t>(column, rows);
    case ColumnType::kUint32:
    case ColumnType::kText:
      return array_of<uint32_t>(column, rows);
    case ColumnType::kUint8:
    case ColumnType::kText8:
      return array_of<uint8_t>(column, rows);
    case ColumnType::kBool:
      return array_of<bool>(column, rows);
    case ColumnType::kDouble:
      return array_of<double>(column, rows);
  }
  return nb::none();
}

nb::str to_str(std::string_view text) {
  PyObject* made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (made == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(made);
}

nb::dict to_dict(const std::map<std::string, std::string>& facts) {
  nb::dict result;
  for (const auto& [key, value] : facts) result[to_str(key)] = to_str(value);
  return result;
}

struct TextsHolder {
  std::shared_ptr<const Texts> texts;
};

template <typename Code>
using Codes = nb::ndarray<const Code, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// (codes in terms of those that occur, the texts that occur)
template <typename Code>
nb::tuple compact_of(const TextsHolder& holder, const Codes<Code>& codes) {
  CompactTexts result = compact(codes.data(), codes.size(), holder.texts->size());
  nb::list texts;
  for (const uint32_t code : result.used) texts.append(to_str((*holder.texts)[code]));
  const auto owner = std::make_shared<const std::vector<int32_t>>(std::move(result.codes));
  const ColumnView view{"", ColumnType::kInt32, owner->data(), owner, nullptr};
  return nb::make_tuple(array_of(view, owner->size()), texts);
}

void bind_columns(nb::module_& module) {
  nb::class_<TextsHolder>(module, "Texts", "What the codes of a text column stand for.")
      .def("__len__", [](const TextsHolder& self) { return self.texts->size(); })
      .def("__getitem__",
           [](const TextsHolder& self, int64_t code) {
             if (code < 0 || code >= static_cast<int64_t>(self.texts->size())) throw nb::index_error("no such text");
             return to_str((*self.texts)[static_cast<size_t>(code)]);
           })
      .def("find",
           [](const TextsHolder& self, nb::str text) {
             std::string utf8;
             if (!to_utf8(text.ptr(), utf8)) throw nb::python_error();
             return self.texts->find(utf8);
           })
      .def("compact", compact_of<uint8_t>, nb::arg("codes").noconvert())
      .def("compact", compact_of<uint32_t>, nb::arg("codes").noconvert());
  nb::class_<ColumnsHolder>(module, "Columns", "Columns of a trace as they lie in memory.")
      .def_prop_ro("title", [](const ColumnsHolder& self) { return self.columns->title; })
      .def("__len__", [](const ColumnsHolder& self) { return self.columns->rows; })
      .def("columns",
           [](const ColumnsHolder& self) {
             nb::list list;
             for (const ColumnView& column : self.columns->list)
               list.append(nb::make_tuple(column.name, array_of(column, self.columns->rows),
                                          column.texts ? nb::cast(TextsHolder{column.texts}) : nb::object(nb::none())));
             return list;
           })
      .def("arrow_stream", [](const ColumnsHolder& self) {
        PyObject* capsule = arrow_stream(self.columns);
        if (capsule == nullptr) throw nb::python_error();
        return nb::steal(capsule);
      });
}

}  // namespace

void bind_trace(nb::module_& module) {
  bind_columns(module);
  module.def("_open", open_trace, nb::arg("path"));
  nb::class_<TraceHolder> trace(module, "Timeline");
  const auto table = [&trace](const char* name, Columns (*make)(const SharedTimeline&)) {
    trace.def(name, [make](const TraceHolder& self) {
      const nb::gil_scoped_release free;
      return ColumnsHolder{std::make_shared<const Columns>(make(self.timeline))};
    });
  };
  table("ranges", range_columns);
  table("kernels", kernel_columns);
  table("memcpys", memcpy_columns);
  table("api_calls", api_call_columns);
  table("arguments", argument_columns);
  table("marks", mark_columns);
  table("mark_arguments", mark_argument_columns);
  table("flows", flow_columns);
  table("counters", counter_columns);
  table("frames", frame_columns);
  table("lanes", lane_columns);
  table("processes", process_columns);
  trace.def_prop_ro("facts", [](const TraceHolder& self) { return to_dict(self.timeline->facts); })
      .def_prop_ro("faults", [](const TraceHolder& self) { return self.timeline->losses.faults; })
      .def_prop_ro("dropped_records", [](const TraceHolder& self) { return self.timeline->losses.dropped_records; })
      .def_prop_ro("duration_ns", [](const TraceHolder& self) { return self.timeline->duration_ns; })
      .def_prop_ro("utc_start_ns", [](const TraceHolder& self) { return self.timeline->utc_start_ns; });
  bind_analyses(trace);
}

}  // namespace strobe::python
