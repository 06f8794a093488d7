// Start and stop, and the annotations that are not measured in nanoseconds.
#include <fcntl.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "bindings.h"
#include "gpu/collector.h"
#include "gpu/timeline/open.h"
#include "inject/start.h"
#include "range_type.h"
#include "record/high_file_numbers.h"
#include "record/thread_log.h"
#include "strobe/record/annotate.h"
#include "trace/store.h"

namespace strobe::python {
namespace {

Result<void> start_with(const record::Options& options) {
  const record::HighFileNumbers high;  // a program may close all files that it did not open
  return record::start(options);
}

void start(const std::string& folder, const std::string& process_name, size_t ring_bytes, bool block, int sync_ms,
           bool gpu) {
  record::Options options;
  options.folder = folder;
  options.process_name = process_name;
  options.ring_bytes = ring_bytes;
  options.block_when_full = block;
  options.sync_period_ms = sync_ms;
  options.gpu = gpu;
  const auto started = [&] {
    const nb::gil_scoped_release free;
    return start_with(options);
  }();
  if (!started) raise(started.error());
}

// (records, dropped, bytes)
nb::tuple stop() {
  auto totals = [] {
    const nb::gil_scoped_release free;
    return record::stop();
  }();
  if (!totals) raise(totals.error());
  return nb::make_tuple(totals->records, totals->dropped, totals->bytes);
}

// The recording that `strobe record` asks for through the environment. The folder, or None where there is none; what
// fails is left where `strobe record` looks for it.
std::optional<std::string> start_from_environment() {
  const char* folder = std::getenv(inject::kFolderVariable);
  if (folder == nullptr || folder[0] == 0) return std::nullopt;
  record::Options options;
  options.folder = folder;
  if (const char* bytes = std::getenv(inject::kRingVariable)) options.ring_bytes = std::strtoull(bytes, nullptr, 10);
  if (const char* block = std::getenv(inject::kBlockVariable)) options.block_when_full = std::strcmp(block, "1") == 0;
  if (const auto started = start_with(options); !started) {
    const std::string path = std::string(folder) + "/" + std::to_string(::getpid()) + ".failed";
    const std::string reason = started.error().to_string();
    if (const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644); file >= 0) {
      [[maybe_unused]] const ssize_t ignored = ::write(file, reason.data(), reason.size());
      ::close(file);
    }
    return std::nullopt;
  }
  return std::string(folder);
}

void write_trace(const std::string& spool, const std::string& path) {
  const auto written = [&]() -> Result<void> {
    const nb::gil_scoped_release free;
    STROBE_ASSIGN(const trace::Timeline timeline, gpu::import_folder(spool));
    return trace::write_store(timeline, path);
  }();
  if (!written) raise(written.error());
}

std::string text_of(nb::handle text) {
  std::string utf8;
  if (!to_utf8(text.ptr(), utf8)) throw nb::python_error();
  return utf8;
}

class Counter {
 public:
  Counter(nb::str name, bool of_thread) : name_(text_of(name)), of_thread_(of_thread) {}
  void set(nb::handle value) const {
    PyObject* object = value.ptr();
    if (PyFloat_CheckExact(object)) return put(PyFloat_AS_DOUBLE(object));
    if (PyIndex_Check(object)) {
      const nb::object whole = nb::steal(PyNumber_Index(object));
      if (whole.is_valid()) {
        int overflow = 0;
        const int64_t number = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
        if (overflow == 0) return put(number);
      }
      PyErr_Clear();
    }
    const double number = PyFloat_AsDouble(object);
    if (PyErr_Occurred()) {
      PyErr_Clear();
      throw nb::type_error(("Counter.set: expected a number, not " + std::string(Py_TYPE(object)->tp_name)).c_str());
    }
    put(number);
  }

 private:
  template <typename Number>
  void put(Number value) const {
    of_thread_ ? record::thread_counter(name_, value) : record::counter(name_, value);
  }
  record::Name name_;
  bool of_thread_;
};

}  // namespace

void bind_recording(nb::module_& module) {
  gpu::provide_to_recorder();
  module.def("_start", start);
  module.def("_stop", stop);
  module.def("_start_from_environment", start_from_environment);
  module.def("_write_trace", write_trace);
  module.def("recording", record::recording, "Whether annotations are being recorded.");
  nb::class_<Counter>(module, "counter",
                      "A number over time, of the process or, of_thread, of each thread that sets it.")
      .def(nb::init<nb::str, bool>(), nb::arg("name"), nb::kw_only(), nb::arg("of_thread") = false)
      .def("set", &Counter::set, nb::arg("value"));
  module.def(
      "flow_out", [](nb::str name, uint64_t id) { record::flow_out(record::Name(text_of(name)), id); }, nb::arg("name"),
      nb::arg("id"), "Begins an arrow at the innermost open range of this thread.");
  module.def(
      "flow_in", [](nb::str name, uint64_t id) { record::flow_in(record::Name(text_of(name)), id); }, nb::arg("name"),
      nb::arg("id"), "Ends the arrow of that name and id at the innermost open range of this thread.");
  module.def("new_id", record::new_id, "A number for an arrow, unique in the recording.");
  module.def(
      "name_thread", [](nb::str name) { record::name_thread(text_of(name)); }, nb::arg("name"),
      "Names the calling thread in the trace; without it Python's own name of the thread is taken.");
  module.def(
      "fact", [](nb::str key, nb::str value) { record::fact(text_of(key), text_of(value)); }, nb::arg("key"),
      nb::arg("value"), "A fact of this process for the whole trace; the last one of a key counts.");
}

}  // namespace strobe::python
