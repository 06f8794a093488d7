// The analyses of a trace: Timeline -> Table, handed over as (title, columns, rows, notes).
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "analyze/critical_path.h"
#include "analyze/idle.h"
#include "analyze/kernels.h"
#include "analyze/launches.h"
#include "analyze/layers.h"
#include "analyze/memcpy.h"
#include "analyze/pipeline.h"
#include "analyze/rules.h"
#include "analyze/stats.h"
#include "bindings.h"
#include "trace_holder.h"

namespace strobe::python {
namespace {

nb::object to_python(const Cell& cell) {
  if (const auto* whole = std::get_if<int64_t>(&cell)) return nb::int_(*whole);
  if (const auto* number = std::get_if<double>(&cell)) return nb::float_(*number);
  if (const auto* text = std::get_if<std::string>(&cell)) {
    PyObject* made = PyUnicode_DecodeUTF8(text->data(), static_cast<Py_ssize_t>(text->size()), "replace");
    if (made == nullptr) throw nb::python_error();
    return nb::steal(made);
  }
  return nb::none();
}

nb::tuple to_python(const Table& table) {
  nb::list columns, rows, notes;
  for (const Column& column : table.columns()) columns.append(nb::make_tuple(column.name, column.help));
  for (const auto& row : table.rows()) {
    nb::list cells;
    for (const Cell& cell : row) cells.append(to_python(cell));
    rows.append(nb::tuple(cells));
  }
  for (const std::string& note : table.notes) notes.append(nb::str(note.c_str()));
  return nb::make_tuple(table.title(), columns, rows, notes);
}

// Runs an analysis without holding the interpreter.
template <typename Analysis>
nb::tuple run(const Analysis& analysis) {
  Result<Table> table = [&]() -> Result<Table> {
    const nb::gil_scoped_release free;
    return analysis();
  }();
  return to_python(value_or_raise(std::move(table)));
}

}  // namespace

void bind_analyses(nb::class_<TraceHolder>& trace) {
  trace
      .def("stats",
           [](const TraceHolder& self, const std::string& by, size_t top) {
             return run([&]() -> Result<Table> {
               STROBE_ASSIGN(const auto what, analyze::parse_stats_by(by));
               return analyze::stats(*self.timeline, {.by = what, .top = top, .filter = {}});
             });
           })
      .def("kernels_summary",
           [](const TraceHolder& self, const std::string& by, size_t top) {
             return run([&]() -> Result<Table> {
               STROBE_ASSIGN(const auto what, analyze::parse_kernels_by(by));
               return analyze::kernels(*self.timeline, {.by = what, .top = top, .filter = {}});
             });
           })
      .def("critical_path",
           [](const TraceHolder& self, const std::string& range, int64_t instance, std::optional<int64_t> frame) {
             return run([&]() -> Result<Table> {
               STROBE_ASSIGN(
                   const auto path,
                   analyze::critical_path(*self.timeline, {.range = range, .instance = instance, .frame = frame}));
               return path.rows;
             });
           })
      .def("critical_path_segments", [](const TraceHolder& self, const std::string& range, int64_t instance,
                                        std::optional<int64_t> frame) {
        return run([&]() -> Result<Table> {
          STROBE_ASSIGN(const auto path,
                        analyze::critical_path(*self.timeline, {.range = range, .instance = instance, .frame = frame}));
          return analyze::path_segments(*self.timeline, path);
        });
      });
  const auto table = [&trace](const char* name, Table (*make)(const trace::Timeline&)) {
    trace.def(name,
              [make](const TraceHolder& self) { return run([&]() -> Result<Table> { return make(*self.timeline); }); });
  };
  table("stage_latency", analyze::stage_latency);
  table("frame_latency", analyze::frame_latency);
  table("throughput", analyze::throughput);
  table("layers", analyze::layers);
  const auto owned = [&trace](const char* name, Table (*make)(const trace::Timeline&, analyze::WorkBy)) {
    trace.def(name, [make](const TraceHolder& self, const std::string& by) {
      return run([&]() -> Result<Table> {
        STROBE_ASSIGN(const auto whose, analyze::parse_work_by(by));
        return make(*self.timeline, whose);
      });
    });
  };
  owned("memcpy_summary", analyze::memcpy_table);
  owned("memcpy_overlap", analyze::memcpy_overlap);
  owned("idle", [](const trace::Timeline& timeline, analyze::WorkBy by) {
    return by == analyze::WorkBy::kNobody ? analyze::idle(timeline, {}) : analyze::idle_by(timeline, {}, by);
  });
  owned("launches", [](const trace::Timeline& timeline, analyze::WorkBy by) {
    return analyze::launches(timeline, analyze::IdleRules::kStrobe, by);
  });
  table("advice", [](const trace::Timeline& timeline) { return analyze::rules(timeline, {}); });
}

}  // namespace strobe::python
