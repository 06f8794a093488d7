// The Python type strobe.range, written against CPython itself: entering and leaving it is what the package is measured
// by, and a general binding would cost as much again as the two time stamps.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/record/annotate.h"

namespace strobe::record {
struct ThreadLog;
}

namespace strobe::python {

// One passage through a range: where it began. session 0: nothing recorded then.
struct Entry {
  const record::ThreadLog* log = nullptr;
  uint32_t session = 0;
  uint32_t depth = 0;
};
// Begins and ends a strobe.range without Python in between. The end gets the type of the exception that passes, or
// null. False with an exception set; an exception that is already set stays.
bool begin_range(PyObject* range, Entry& entry);
bool end_range(PyObject* range, const Entry& entry, PyObject* exception_type);

// Adds the type of functions that a range is around (`_strobe.ranged`); -1 with an exception set where that fails.
int add_function_type(PyObject* module, PyTypeObject* range_type);

// Adds `range`, `push`, `pop`, `mark` and `arg` to the module; -1 with an exception set where that fails.
int add_range_type(PyObject* module);

// UTF-8 of a str; what UTF-8 cannot hold (lone surrogates of file names) becomes "?". False with an exception set.
bool to_utf8(PyObject* text, std::string& utf8);

// Payload given as keyword arguments: whole numbers, other numbers, texts. Numbers beyond 64 bits become text.
class Payload {
 public:
  // False with a TypeError set, which names the key.
  bool add(PyObject* key, PyObject* value);
  void add(record::Name key, int64_t value);
  bool empty() const { return items_.empty(); }
  // Views of this object.
  std::vector<record::Arg> args() const;
  // As payload of the innermost open range of the calling thread.
  void write() const;

 private:
  struct Item {
    record::Name key;
    std::variant<int64_t, double, std::string> value;
  };
  std::vector<Item> items_;
};

// What all annotations take besides a name: frame, category, domain, batch, items; the rest of the keywords is payload.
struct Details {
  int64_t frame = record::kNoFrame;
  record::Category category;
  Payload payload;
};
// From the keyword arguments of a vectorcall. False with an exception set, in which `function` names the call.
bool parse_details(const char* function, PyObject* const* values, PyObject* names, Details& details);

// Gives the recorder's thread Python's name of it, when it has one and was not named in this recording yet.
void name_thread_for_recording();

}  // namespace strobe::python
