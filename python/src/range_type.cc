#include "range_type.h"

#include <structmember.h>

#include <memory>
#include <span>

#include "record/thread_log.h"

namespace strobe::python {
namespace {

using record::ThreadLog;

struct RangeObject {
  PyObject_HEAD PyObject* name;
  uint32_t name_id;
  bool is_dynamic;  // the name is not in the table of names: there are too many different ones
  bool is_plain;    // neither a frame, a category nor payload
  uint32_t open;
  Entry first;               // the entry under way where there is one, as nearly always
  std::vector<Entry>* more;  // of a range entered again while it is open: recursion, several threads
  const Details* details;    // null when plain
};

// Names are interned for the life of the process, so only that many; beyond it they go through the recorder's cache.
constexpr Py_ssize_t kMostNames = 4096;
PyObject* interned_names;  // str -> int

PyTypeObject* range_type;

bool look_up_name(PyObject* name, uint32_t& id, bool& is_dynamic) {
  if (PyObject* known = PyDict_GetItemWithError(interned_names, name)) {
    id = static_cast<uint32_t>(PyLong_AsUnsignedLong(known));
    is_dynamic = false;
    return true;
  }
  if (PyErr_Occurred()) return false;
  id = 0;
  is_dynamic = PyDict_GET_SIZE(interned_names) >= kMostNames;
  if (is_dynamic) return true;
  std::string utf8;
  if (!to_utf8(name, utf8)) return false;
  id = record::Name(utf8).id();
  PyObject* number = PyLong_FromUnsignedLong(id);
  const bool done = number != nullptr && PyDict_SetItem(interned_names, name, number) == 0;
  Py_XDECREF(number);
  return done;
}

ThreadLog* log_of_thread() {
  const uint32_t session = record::active_session.load(std::memory_order_relaxed);
  if (session == 0) return nullptr;
  if (record::thread_log.session != session) [[unlikely]] {
    if (!record::thread_log.joining) name_thread_for_recording();
    return record::current_log();
  }
  return &record::thread_log;
}

// Begins a range; false with an exception set.
bool begin(ThreadLog& log, PyObject* name, uint32_t name_id, bool is_dynamic, const Details* details, bool& begun) {
  const int64_t frame = details != nullptr ? details->frame : record::kNoFrame;
  const uint32_t category = details != nullptr ? details->category.id() : 0;
  if (is_dynamic) {
    std::string utf8;
    if (!to_utf8(name, utf8)) return false;
    begun = record::begin_dynamic(log, utf8, frame, category);
  } else {
    begun =
        category == 0 ? record::put_begin(log, name_id, frame) : record::put_begin<true>(log, name_id, frame, category);
  }
  if (begun && details != nullptr) details->payload.write();
  return true;
}

inline bool begin_inline(const RangeObject& range, Entry& entry) {
  entry = {&record::thread_log, 0, 0};
  ThreadLog* log = log_of_thread();
  if (log == nullptr) return true;
  bool begun = false;
  if (range.is_plain) [[likely]]
    begun = record::put_begin(*log, range.name_id, record::kNoFrame);
  else if (!begin(*log, range.name, range.name_id, range.is_dynamic, range.details, begun))
    return false;
  if (begun) entry = {log, log->session, log->depth};
  return true;
}

bool warn_of_overlap(PyObject* name) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const bool done =
      PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                       "strobe.range(%R) is left while another range is the innermost: around an await or "
                       "a yield use 'async with', or decorate the function",
                       name) == 0;
  if (type == nullptr) return done;
  PyErr_Restore(type, value, trace);
  return true;
}

inline bool end_inline(const RangeObject& range, const Entry& entry, PyObject* exception_type) {
  ThreadLog& log = record::thread_log;
  // A range of an earlier recording, or of the parent before fork(), has no begin here.
  if (entry.session == 0 || entry.session != log.session ||
      entry.session != record::active_session.load(std::memory_order_relaxed))
    return true;
  const bool is_innermost = log.depth == entry.depth;
  if (exception_type != nullptr && is_innermost && PyType_Check(exception_type)) {
    static const record::Name kException("exception");
    put_text_arg(log, kException.id(), reinterpret_cast<PyTypeObject*>(exception_type)->tp_name);
  }
  record::put_end(log);
  return is_innermost || warn_of_overlap(range.name);
}

bool check_name(const char* function, PyObject* name) {
  if (PyUnicode_Check(name)) return true;
  PyErr_Format(PyExc_TypeError, "%s: the name must be a str, not %s", function, Py_TYPE(name)->tp_name);
  return false;
}

// `range(name, **details)`, or a function to be decorated.
PyObject* make_range(PyObject* /*type*/, PyObject* const* args, size_t flagged_count, PyObject* keywords) {
  const Py_ssize_t count = PyVectorcall_NARGS(flagged_count);
  if (count != 1) {
    PyErr_Format(PyExc_TypeError, "strobe.range: expected one name, then keyword arguments; got %zd positional ones",
                 count);
    return nullptr;
  }
  PyObject* name = args[0];
  if (!PyUnicode_Check(name) && PyCallable_Check(name) && keywords == nullptr) {
    PyObject* decorate = PyImport_ImportModule("strobe._decorate");
    if (decorate == nullptr) return nullptr;
    PyObject* made = PyObject_CallMethod(decorate, "by_own_name", "O", name);
    Py_DECREF(decorate);
    return made;
  }
  if (!check_name("strobe.range", name)) return nullptr;
  std::unique_ptr<Details> details;
  if (keywords != nullptr && PyTuple_GET_SIZE(keywords) > 0) {
    details = std::make_unique<Details>();
    if (!parse_details("strobe.range", args + count, keywords, *details)) return nullptr;
  }
  uint32_t id = 0;
  bool is_dynamic = false;
  if (!look_up_name(name, id, is_dynamic)) return nullptr;
  auto* made = PyObject_New(RangeObject, range_type);
  if (made == nullptr) return nullptr;
  Py_INCREF(name);
  made->name = name;
  made->name_id = id;
  made->is_dynamic = is_dynamic;
  made->is_plain = details == nullptr && !is_dynamic;
  made->open = 0;
  made->more = nullptr;
  made->details = details.release();
  return reinterpret_cast<PyObject*>(made);
}

PyObject* new_range(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  // Only for those that call __new__ by hand; calls of the type take make_range.
  const Py_ssize_t count = PyTuple_GET_SIZE(args);
  if (keywords != nullptr && PyDict_GET_SIZE(keywords) > 0) {
    PyErr_SetString(PyExc_TypeError, "strobe.range.__new__: expected one name; call strobe.range(...) itself");
    return nullptr;
  }
  std::vector<PyObject*> list;
  for (Py_ssize_t i = 0; i < count; ++i) list.push_back(PyTuple_GET_ITEM(args, i));
  return make_range(reinterpret_cast<PyObject*>(type), list.data(), static_cast<size_t>(count), nullptr);
}

void free_range(PyObject* self) {
  auto* range = reinterpret_cast<RangeObject*>(self);
  Py_DECREF(range->name);
  delete range->more;
  delete range->details;
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject* enter(PyObject* self, PyObject* /*none*/) {
  auto* range = reinterpret_cast<RangeObject*>(self);
  Entry entry;
  if (!begin_inline(*range, entry)) return nullptr;
  if (range->open++ == 0) [[likely]] {
    range->first = entry;
  } else {
    if (range->more == nullptr) range->more = new std::vector<Entry>;
    range->more->push_back(entry);
  }
  Py_INCREF(self);
  return self;
}

// The latest entry of this thread, taken out; false when there is none.
bool take_entry(RangeObject& range, const ThreadLog* log, Entry& entry) {
  if (range.open == 0) return false;
  if (range.open == 1) [[likely]] {
    if (range.first.log != log) return false;
    entry = range.first;
    range.open = 0;
    return true;
  }
  std::vector<Entry>& more = *range.more;
  for (size_t i = more.size(); i-- > 0;) {
    if (more[i].log != log) continue;
    entry = more[i];
    more.erase(more.begin() + static_cast<std::ptrdiff_t>(i));
    --range.open;
    return true;
  }
  if (range.first.log != log) return false;
  entry = range.first;
  range.first = more.front();
  more.erase(more.begin());
  --range.open;
  return true;
}

PyObject* leave(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  auto* range = reinterpret_cast<RangeObject*>(self);
  Entry entry{};
  if (!take_entry(*range, &record::thread_log, entry)) {
    PyErr_Format(PyExc_RuntimeError, "strobe.range(%R): left on a thread that has not entered it", range->name);
    return nullptr;
  }
  if (!end_inline(*range, entry, count > 0 && args[0] != Py_None ? args[0] : nullptr)) return nullptr;
  Py_RETURN_NONE;
}

// An interval that need not nest: for coroutines and generators, which others run between.
PyObject* async_begin(PyObject* self, PyObject* /*none*/) {
  auto* range = reinterpret_cast<RangeObject*>(self);
  if (log_of_thread() == nullptr) return PyLong_FromLong(0);
  const uint64_t id = record::new_id();
  const int64_t frame = range->details != nullptr ? range->details->frame : record::kNoFrame;
  const record::Category category = range->details != nullptr ? range->details->category : record::Category();
  const auto list = range->details != nullptr ? range->details->payload.args() : std::vector<record::Arg>();
  const std::span<const record::Arg> args(list);
  if (range->is_dynamic) {
    std::string utf8;
    if (!to_utf8(range->name, utf8)) return nullptr;
    record::async_begin(utf8, id, frame, category, args);
  } else {
    record::async_begin(record::Name::with_id(range->name_id), id, frame, category, args);
  }
  return PyLong_FromUnsignedLongLong(id);
}

PyObject* async_end(PyObject* /*self*/, PyObject* const* args, Py_ssize_t count) {
  if (count < 1 || count > 2) {
    PyErr_SetString(PyExc_TypeError, "_async_end: expected an id, and the exception's type or None");
    return nullptr;
  }
  const uint64_t id = PyLong_AsUnsignedLongLong(args[0]);
  if (PyErr_Occurred()) return nullptr;
  if (id == 0) Py_RETURN_NONE;  // nothing recorded at the begin
  if (count == 2 && PyType_Check(args[1])) {
    const record::Arg failed(record::Name("exception"), reinterpret_cast<PyTypeObject*>(args[1])->tp_name);
    record::async_end(id, {failed});
  } else {
    record::async_end(id);
  }
  Py_RETURN_NONE;
}

PyObject* call_range(PyObject* self, PyObject* args, PyObject* keywords) {
  if (PyTuple_GET_SIZE(args) != 1 || (keywords != nullptr && PyDict_GET_SIZE(keywords) > 0)) {
    PyErr_SetString(PyExc_TypeError, "a strobe.range is called with the function that it decorates, and nothing else");
    return nullptr;
  }
  PyObject* decorate = PyImport_ImportModule("strobe._decorate");
  if (decorate == nullptr) return nullptr;
  PyObject* made = PyObject_CallMethod(decorate, "by_range", "OO", self, PyTuple_GET_ITEM(args, 0));
  Py_DECREF(decorate);
  return made;
}

PyObject* represent(PyObject* self) {
  return PyUnicode_FromFormat("strobe.range(%R)", reinterpret_cast<RangeObject*>(self)->name);
}

// Payload of the innermost open range of this thread.
PyObject* write_payload(PyObject* result, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  if (count != 0) {
    PyErr_SetString(PyExc_TypeError, "arg: expected keyword arguments only, as in arg(boxes=12)");
    return nullptr;
  }
  Payload payload;
  for (Py_ssize_t i = 0; keywords != nullptr && i < PyTuple_GET_SIZE(keywords); ++i)
    if (!payload.add(PyTuple_GET_ITEM(keywords, i), args[i])) return nullptr;
  if (log_of_thread() != nullptr) payload.write();
  Py_INCREF(result);
  return result;
}

PyObject* range_arg(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return write_payload(self, args, count, keywords);
}
PyObject* module_arg(PyObject* /*module*/, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return write_payload(Py_None, args, count, keywords);
}

PyObject* module_push(PyObject* /*module*/, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  if (count != 1) {
    PyErr_SetString(PyExc_TypeError, "strobe.push: expected one name, then keyword arguments");
    return nullptr;
  }
  if (!check_name("strobe.push", args[0])) return nullptr;
  Details details;
  if (keywords != nullptr && !parse_details("strobe.push", args + count, keywords, details)) return nullptr;
  ThreadLog* log = log_of_thread();
  if (log == nullptr) Py_RETURN_NONE;
  uint32_t id = 0;
  bool is_dynamic = false, begun = false;
  if (!look_up_name(args[0], id, is_dynamic)) return nullptr;
  if (!begin(*log, args[0], id, is_dynamic, &details, begun)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* module_pop(PyObject* /*module*/, PyObject* /*none*/) {
  if (ThreadLog* log = log_of_thread()) record::put_end(*log);
  Py_RETURN_NONE;
}

PyObject* module_mark(PyObject* /*module*/, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  if (count != 1) {
    PyErr_SetString(PyExc_TypeError, "strobe.mark: expected one name, then keyword arguments");
    return nullptr;
  }
  if (!check_name("strobe.mark", args[0])) return nullptr;
  Details details;
  if (keywords != nullptr && !parse_details("strobe.mark", args + count, keywords, details)) return nullptr;
  if (log_of_thread() == nullptr) Py_RETURN_NONE;
  std::string utf8;
  if (!to_utf8(args[0], utf8)) return nullptr;
  const auto list = details.payload.args();
  record::mark(utf8, details.frame, details.category, std::span<const record::Arg>(list));
  Py_RETURN_NONE;
}

template <typename Function>
PyCFunction as_method(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef range_methods[] = {
    {"__enter__", enter, METH_NOARGS, nullptr},
    {"__exit__", as_method(leave), METH_FASTCALL, nullptr},
    {"arg", as_method(range_arg), METH_FASTCALL | METH_KEYWORDS,
     "arg($self, /, **values)\n--\n\nAdds payload to the innermost open range of this thread."},
    {"_async_begin", async_begin, METH_NOARGS, nullptr},
    {"_async_end", as_method(async_end), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef range_members[] = {
    {"name", T_OBJECT_EX, offsetof(RangeObject, name), READONLY, "The range's name."},
    {nullptr, 0, 0, 0, nullptr},
};

constexpr const char kRangeDoc[] =
    "range(name, /, *, frame=None, category=None, domain=None, batch=None, items=None, **values)\n--\n\n"
    "A named interval: `with range(...)`, `async with range(...)`, `@range`, `@range(...)`.\n\n"
    "frame: id of the unit of input that it belongs to; ranges inside inherit it. category, domain: what kind of\n"
    "thing it is, and which library says so. batch, items: the batch's index and how many items it holds.\n"
    "Further keywords are payload: int, float or str.";

PyType_Slot range_slots[] = {
    {Py_tp_doc, const_cast<char*>(kRangeDoc)},
    {Py_tp_new, reinterpret_cast<void*>(new_range)},
    {Py_tp_dealloc, reinterpret_cast<void*>(free_range)},
    {Py_tp_call, reinterpret_cast<void*>(call_range)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_methods, range_methods},
    {Py_tp_members, range_members},
    {0, nullptr},
};
PyType_Spec range_spec{"strobe.range", sizeof(RangeObject), 0, Py_TPFLAGS_DEFAULT, range_slots};

PyMethodDef module_functions[] = {
    {"push", as_method(module_push), METH_FASTCALL | METH_KEYWORDS,
     "push(name, /, *, frame=None, category=None, domain=None, batch=None, items=None, **values)\n--\n\n"
     "Begins a range on this thread, until pop()."},
    {"pop", module_pop, METH_NOARGS, "pop()\n--\n\nEnds the innermost range of this thread."},
    {"mark", as_method(module_mark), METH_FASTCALL | METH_KEYWORDS,
     "mark(name, /, *, frame=None, category=None, domain=None, batch=None, items=None, **values)\n--\n\n"
     "An instant with payload."},
    {"arg", as_method(module_arg), METH_FASTCALL | METH_KEYWORDS,
     "arg(**values)\n--\n\nAdds payload to the innermost open range of this thread."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool begin_range(PyObject* range, Entry& entry) {
  return begin_inline(*reinterpret_cast<RangeObject*>(range), entry);
}
bool end_range(PyObject* range, const Entry& entry, PyObject* exception_type) {
  return end_inline(*reinterpret_cast<RangeObject*>(range), entry, exception_type);
}

int add_range_type(PyObject* module) {
  interned_names = PyDict_New();
  if (interned_names == nullptr) return -1;
  range_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&range_spec));
  if (range_type == nullptr) return -1;
  range_type->tp_vectorcall = make_range;
  if (PyModule_AddObjectRef(module, "range", reinterpret_cast<PyObject*>(range_type)) < 0) return -1;
  if (add_function_type(module, range_type) < 0) return -1;
  return PyModule_AddFunctions(module, module_functions);
}

}  // namespace strobe::python
