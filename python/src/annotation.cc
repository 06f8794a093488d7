// What every annotation is given in Python: names, payload, frame, category.
#include <cstring>

#include "range_type.h"
#include "record/thread_log.h"

namespace strobe::python {

bool to_utf8(PyObject* text, std::string& utf8) {
  Py_ssize_t bytes = 0;
  if (const char* whole = PyUnicode_AsUTF8AndSize(text, &bytes)) {
    utf8.assign(whole, static_cast<size_t>(bytes));
    return true;
  }
  if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) return false;
  PyErr_Clear();
  PyObject* replaced = PyUnicode_AsEncodedString(text, "utf-8", "replace");
  if (replaced == nullptr) return false;
  utf8.assign(PyBytes_AS_STRING(replaced), static_cast<size_t>(PyBytes_GET_SIZE(replaced)));
  Py_DECREF(replaced);
  return true;
}

bool Payload::add(PyObject* key, PyObject* value) {
  std::string text;
  if (!to_utf8(key, text)) return false;
  const record::Name name(text);
  if (PyUnicode_Check(value)) {
    if (!to_utf8(value, text)) return false;
    items_.push_back({name, text});
    return true;
  }
  if (PyFloat_Check(value)) {
    items_.push_back({name, PyFloat_AS_DOUBLE(value)});
    return true;
  }
  if (PyIndex_Check(value)) {  // int, bool, NumPy's whole numbers
    PyObject* whole = PyNumber_Index(value);
    if (whole != nullptr) {
      int overflow = 0;
      const int64_t number = PyLong_AsLongLongAndOverflow(whole, &overflow);
      if (overflow == 0) {
        items_.push_back({name, number});
      } else if (PyObject* digits = PyObject_Str(whole)) {
        const bool done = to_utf8(digits, text);
        if (done) items_.push_back({name, text});
        Py_DECREF(digits);
      }
      Py_DECREF(whole);
    }
    if (!PyErr_Occurred()) return true;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;  // e.g. an int with more digits than str() gives
    PyErr_Clear();
  } else if (PyNumber_Check(value)) {  // what has __float__: NumPy's numbers, Decimal, a tensor of one element
    const double number = PyFloat_AsDouble(value);
    if (!PyErr_Occurred()) {
      items_.push_back({name, number});
      return true;
    }
    PyErr_Clear();
  }
  PyErr_Format(PyExc_TypeError, "argument '%U': expected int, float or str, not %s", key, Py_TYPE(value)->tp_name);
  return false;
}

void Payload::add(record::Name key, int64_t value) {
  items_.push_back({key, value});
}

std::vector<record::Arg> Payload::args() const {
  std::vector<record::Arg> list;
  list.reserve(items_.size());
  for (const Item& item : items_) {
    if (const auto* whole = std::get_if<int64_t>(&item.value))
      list.emplace_back(item.key, *whole);
    else if (const auto* number = std::get_if<double>(&item.value))
      list.emplace_back(item.key, *number);
    else
      list.emplace_back(item.key, std::string_view(std::get<std::string>(item.value)));
  }
  return list;
}

void Payload::write() const {
  record::ThreadLog* log = record::current_log();
  if (log == nullptr) return;
  for (const Item& item : items_) {
    using record::RecordType;
    if (const auto* whole = std::get_if<int64_t>(&item.value))
      put_arg(*log, RecordType::kArgInt, item.key.id(), static_cast<uint64_t>(*whole));
    else if (const auto* number = std::get_if<double>(&item.value))
      put_arg(*log, RecordType::kArgDouble, item.key.id(), std::bit_cast<uint64_t>(*number));
    else
      put_text_arg(*log, item.key.id(), std::get<std::string>(item.value));
  }
}

namespace {

bool whole_number(const char* function, const char* key, PyObject* value, int64_t least, int64_t& number) {
  if (!PyIndex_Check(value)) {
    PyErr_Format(PyExc_TypeError, "%s: %s must be a whole number, not %s", function, key, Py_TYPE(value)->tp_name);
    return false;
  }
  PyObject* whole = PyNumber_Index(value);
  if (whole == nullptr) return false;
  int overflow = 0;
  number = PyLong_AsLongLongAndOverflow(whole, &overflow);
  Py_DECREF(whole);
  if (overflow == 0 && number >= least) return true;
  PyErr_Format(PyExc_ValueError, "%s: %s is %R, expected %lld to 2^63-1", function, key, value,
               static_cast<long long>(least));
  return false;
}

bool optional_text(const char* function, const char* key, PyObject* value, std::string& text) {
  if (value == Py_None) return true;
  if (PyUnicode_Check(value)) return to_utf8(value, text);
  PyErr_Format(PyExc_TypeError, "%s: %s must be a str, not %s", function, key, Py_TYPE(value)->tp_name);
  return false;
}

}  // namespace

bool parse_details(const char* function, PyObject* const* values, PyObject* names, Details& details) {
  std::string category, domain;
  const Py_ssize_t count = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* key = PyTuple_GET_ITEM(names, i);
    PyObject* value = values[i];
    const auto is = [key](const char* text) { return PyUnicode_CompareWithASCIIString(key, text) == 0; };
    int64_t number = 0;
    if (is("frame")) {
      if (value != Py_None && !whole_number(function, "frame", value, 0, details.frame)) return false;
    } else if (is("category")) {
      if (!optional_text(function, "category", value, category)) return false;
    } else if (is("domain")) {
      if (!optional_text(function, "domain", value, domain)) return false;
    } else if (is("batch")) {
      static const record::Name kIndex("batch_index");
      if (value == Py_None) continue;
      if (!whole_number(function, "batch", value, 0, number)) return false;
      details.payload.add(kIndex, number);
    } else if (is("items")) {
      static const record::Name kItems("total_items");
      if (value == Py_None) continue;
      if (!whole_number(function, "items", value, 0, number)) return false;
      details.payload.add(kItems, number);
    } else if (!details.payload.add(key, value)) {
      return false;
    }
  }
  if (!category.empty() || !domain.empty()) details.category = record::Category(category, domain);
  return true;
}

void name_thread_for_recording() {
  // Not by importing: a program without `threading` has only its main thread.
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* threading = modules != nullptr ? PyDict_GetItemString(modules, "threading") : nullptr;
  if (threading == nullptr) return;
  std::string name;
  // Asking for current_thread() would make an object for a thread that Python did not start.
  if (PyObject* threads = PyObject_CallMethod(threading, "enumerate", nullptr)) {
    const unsigned long own = PyThread_get_thread_ident();
    for (Py_ssize_t i = 0; PyList_Check(threads) && i < PyList_GET_SIZE(threads); ++i) {
      PyObject* thread = PyList_GET_ITEM(threads, i);
      PyObject* ident = PyObject_GetAttrString(thread, "ident");
      if (ident != nullptr && ident != Py_None && PyLong_AsUnsignedLong(ident) == own) {
        PyObject* text = PyObject_GetAttrString(thread, "name");
        if (text != nullptr && PyUnicode_Check(text)) to_utf8(text, name);
        Py_XDECREF(text);
      }
      Py_XDECREF(ident);
    }
    Py_DECREF(threads);
  }
  PyErr_Clear();  // a thread without a name is no reason to fail
  if (!name.empty() && name != "MainThread") record::name_thread(name);
}

}  // namespace strobe::python
