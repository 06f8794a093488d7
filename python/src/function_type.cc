// A function with a range around each call: what @strobe.range makes of functions. In C++, since a function of Python
// around another one would cost three times as much as the range.
#include <Python.h>
#include <structmember.h>

#include "range_type.h"

namespace strobe::python {
namespace {

struct FunctionObject {
  PyObject_HEAD PyObject* range;
  PyObject* function;
  PyObject* dict;  // __name__, __doc__, __wrapped__, ... as functools.wraps sets them
  PyObject* weak_references;
  vectorcallfunc vectorcall;
};

PyTypeObject* known_range_type;

PyObject* call(PyObject* self, PyObject* const* args, size_t flagged_count, PyObject* keywords) {
  auto* ranged = reinterpret_cast<FunctionObject*>(self);
  Entry entry;
  if (!begin_range(ranged->range, entry)) return nullptr;
  PyObject* result = PyObject_Vectorcall(ranged->function, args, flagged_count, keywords);
  if (!end_range(ranged->range, entry, result == nullptr ? PyErr_Occurred() : nullptr)) Py_CLEAR(result);
  return result;
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  PyObject *range = nullptr, *function = nullptr;
  if (keywords != nullptr && PyDict_GET_SIZE(keywords) > 0) {
    PyErr_SetString(PyExc_TypeError, "ranged: expected a range and a function");
    return nullptr;
  }
  if (!PyArg_ParseTuple(args, "O!O:ranged", known_range_type, &range, &function)) return nullptr;
  auto* made = reinterpret_cast<FunctionObject*>(type->tp_alloc(type, 0));
  if (made == nullptr) return nullptr;
  made->range = Py_NewRef(range);
  made->function = Py_NewRef(function);
  made->vectorcall = call;
  return reinterpret_cast<PyObject*>(made);
}

PyObject* bind(PyObject* self, PyObject* object, PyObject* /*type*/) {
  return object == nullptr || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  auto* ranged = reinterpret_cast<FunctionObject*>(self);
  Py_VISIT(ranged->range);
  Py_VISIT(ranged->function);
  Py_VISIT(ranged->dict);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

int clear(PyObject* self) {
  auto* ranged = reinterpret_cast<FunctionObject*>(self);
  Py_CLEAR(ranged->range);
  Py_CLEAR(ranged->function);
  Py_CLEAR(ranged->dict);
  return 0;
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (reinterpret_cast<FunctionObject*>(self)->weak_references != nullptr) PyObject_ClearWeakRefs(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* represent(PyObject* self) {
  return PyUnicode_FromFormat("<%R around %R>", reinterpret_cast<FunctionObject*>(self)->range,
                              reinterpret_cast<FunctionObject*>(self)->function);
}

// Pickled by name, as functions are.
PyObject* reduce(PyObject* self, PyObject* /*none*/) {
  return PyObject_GetAttrString(self, "__qualname__");
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(FunctionObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(FunctionObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyGetSetDef attributes[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

template <typename Function>
void* slot(Function function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

int add_function_type(PyObject* module, PyTypeObject* range_type) {
  known_range_type = range_type;
  PyType_Slot slots[] = {
      {Py_tp_new, slot(make)},
      {Py_tp_dealloc, slot(destroy)},
      {Py_tp_call, slot(PyVectorcall_Call)},
      {Py_tp_descr_get, slot(bind)},
      {Py_tp_traverse, slot(traverse)},
      {Py_tp_clear, slot(clear)},
      {Py_tp_repr, slot(represent)},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
      {Py_tp_getset, attributes},
      {0, nullptr},
  };
  PyType_Spec spec{"strobe._strobe.ranged", sizeof(FunctionObject), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                   slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) return -1;
  const int added = PyModule_AddObjectRef(module, "ranged", type);
  Py_DECREF(type);
  return added;
}

}  // namespace strobe::python
