/* Places in objects, and C functions, that Cython has no words for. */
#ifndef FLEXWIRE_OBJECTS_H
#define FLEXWIRE_OBJECTS_H
#include <Python.h>
/* The place in an object that is so many bytes behind its beginning. */
#define field_at(object, slot) ((PyObject **)((char *)(object) + (slot)))
/* A Python object of a reference that is given away; NULL raises the error that is set. */
#define as_object(object) (object)
/* A function that is called with its arguments side by side, as METH_FASTCALL has it. */
#define as_method(function) ((PyCFunction)(void (*)(void))(function))

/* Objects that another thread may replace at any time where there is no GIL. With a GIL nobody can
   while a kernel runs, unless it runs Python code. `hold` gives a new reference, for what may run
   Python code. `lend` borrows with a GIL and holds without one, and `give_back` releases what was lent.
   All give NULL, and no error, where there is nothing. */
#ifdef Py_GIL_DISABLED
enum { WITHOUT_GIL = 1 };
/* The turn of one thread at an object: setting a member, a list and a dict take the same one. */
typedef PyCriticalSection Turn;
#define begin_turn(turn, object) PyCriticalSection_Begin(turn, object)
#define end_turn(turn) PyCriticalSection_End(turn)
static inline PyObject *hold_field(PyObject *object, Py_ssize_t slot) {
    Turn turn;
    begin_turn(&turn, object);
    PyObject *value = Py_XNewRef(*field_at(object, slot));
    end_turn(&turn);
    return value;
}
static inline PyObject *hold_item(PyObject *items, Py_ssize_t index) {
    PyObject *item = PyList_GetItemRef(items, index);
    if (!item) PyErr_Clear();
    return item;
}
#define lend_field(object, slot) hold_field(object, slot)
#define lend_item(items, index) hold_item(items, index)
#define give_back(value) Py_XDECREF(value)
#else
enum { WITHOUT_GIL = 0 };
typedef struct { char none; } Turn;
#define begin_turn(turn, object) ((void)(turn))
#define end_turn(turn) ((void)(turn))
#define lend_field(object, slot) (*field_at(object, slot))
static inline PyObject *lend_item(PyObject *items, Py_ssize_t index) {
    return index < PyList_GET_SIZE(items) ? PyList_GET_ITEM(items, index) : NULL;
}
#define hold_field(object, slot) Py_XNewRef(lend_field(object, slot))
#define hold_item(items, index) Py_XNewRef(lend_item(items, index))
#define give_back(value) ((void)(value))
#endif
/* A pointer that one thread sets when what it points to is complete, and others read. */
#define publish(place, pointer) __atomic_store_n(place, pointer, __ATOMIC_RELEASE)
#define published(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
#endif
