"""The program of a message version: where its fields are in bytes, and in which objects.

Each structure of the schema is a `Structure`, which is made once. It has borrowed addresses of
Python objects, to which its `Program` keeps references.
"""

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t, uint64_t

cdef extern from "objects.h":
    # These return new references, or NULL with an error set.
    PyObject *PyBool_FromLong(long truth)
    PyObject *PyLong_FromLongLong(long long number)
    PyObject *PyFloat_FromDouble(double number)
    PyObject *PyUnicode_DecodeUTF8(const char *at, Py_ssize_t size, const char *errors)
    PyObject *PyBytes_FromStringAndSize(const char *at, Py_ssize_t size)
    PyObject *PyList_New(Py_ssize_t size)
    PyObject *PyDict_New()
    PyObject *PyType_GenericAlloc(PyTypeObject *type, Py_ssize_t size)
    PyObject *PyObject_CallNoArgs(PyObject *function)
    PyObject *PyObject_CallOneArg(PyObject *function, PyObject *argument)
    PyObject *PyObject_CallFunctionObjArgs(PyObject *function, ...)
    int PyObject_RichCompareBool(PyObject *one, PyObject *other, int how)
    int Py_EQ
    PyObject *Py_True
    PyObject *Py_False
    PyObject *PyObject_Vectorcall(
        PyObject *function, PyObject **arguments, size_t count, PyObject *names
    )
    PyObject *Py_NewRef(PyObject *object)
    void Py_INCREF(PyObject *object)
    void Py_DECREF(PyObject *object)
    void Py_XDECREF(PyObject *object)
    PyTypeObject *Py_TYPE(PyObject *object)
    # Whether an object is of exactly this class.
    bint PyLong_CheckExact(PyObject *object)
    bint PyFloat_CheckExact(PyObject *object)
    bint PyUnicode_CheckExact(PyObject *object)
    bint PyBytes_CheckExact(PyObject *object)
    bint PyList_CheckExact(PyObject *object)
    bint PyDict_CheckExact(PyObject *object)
    # These are for an object of exactly that class.
    long long PyLong_AsLongLongAndOverflow(PyObject *number, int *overflow)
    double PyFloat_AS_DOUBLE(PyObject *number)
    const char *PyUnicode_AsUTF8AndSize(PyObject *text, Py_ssize_t *size)
    const char *PyBytes_AS_STRING(PyObject *data)
    Py_ssize_t PyBytes_GET_SIZE(PyObject *data)
    Py_ssize_t PyList_GET_SIZE(PyObject *items)
    PyObject *PyList_GET_ITEM(PyObject *items, Py_ssize_t index)
    PyObject *PyTuple_New(Py_ssize_t size)
    bint PyTuple_CheckExact(PyObject *object)
    # This takes ownership of the item.
    void PyTuple_SET_ITEM(PyObject *items, Py_ssize_t index, PyObject *item)
    Py_ssize_t PyTuple_GET_SIZE(PyObject *items)
    PyObject *PyTuple_GET_ITEM(PyObject *items, Py_ssize_t index)
    Py_ssize_t PyDict_Size(PyObject *items)
    bint PyDict_Next(PyObject *items, Py_ssize_t *place, PyObject **key, PyObject **value)
    int PyDict_SetItem(PyObject *dict, PyObject *key, PyObject *value)
    void PyObject_GC_UnTrack(PyObject *object)
    int PyGC_Disable()
    int PyGC_Enable()
    void PyErr_Clear()
    bint PyErr_ExceptionMatches(PyObject *type)
    PyObject *PyErr_Occurred()
    # This takes ownership of the item.
    void PyList_SET_ITEM(PyObject *list, Py_ssize_t index, PyObject *item)
    PyObject **field_at(PyObject *object, Py_ssize_t slot)
    object as_object(PyObject *object)
    # Objects that other threads may replace if there is no GIL; see objects.h.
    bint WITHOUT_GIL
    ctypedef struct Turn:
        pass
    void begin_turn(Turn *turn, PyObject *object)
    void end_turn(Turn *turn)
    PyObject *hold_field(PyObject *object, Py_ssize_t slot)
    PyObject *hold_item(PyObject *items, Py_ssize_t index)
    PyObject *lend_field(PyObject *object, Py_ssize_t slot)
    PyObject *lend_item(PyObject *items, Py_ssize_t index)
    void give_back(PyObject *value)
    ctypedef void *PyCFunction
    ctypedef struct PyMethodDef:
        const char *ml_name
        PyCFunction ml_meth
        int ml_flags
        const char *ml_doc
    int METH_FASTCALL
    int METH_KEYWORDS
    PyCFunction as_method(void *function)
    object PyCFunction_NewEx(PyMethodDef *method, object itself, PyObject *module)

# The kinds of fields, which come after the types of fixed width in `cursor.pxd`.
ctypedef int Code

cdef enum:
    STRING = 9
    BYTES, ARRAY, STRUCT, NULLABLE_STRUCT, TAGGED_STRUCT

# How to make a field that was not in the message.
cdef enum Making:
    SHARED, NEW_LIST, NEW_DICT, CALLED

# The default of a field that may be left out.
cdef enum Default:
    NULL_VALUE, NUMBER, REAL, SAME, EMPTY_LIST, EMPTY_BYTES, EQUAL, NEVER

cdef enum:
    MOST_TAGS = 64         # the tags that are present are the bits of a number

cdef struct Field:
    Code code
    Code element           # the code of an array's elements
    bint nullable
    bint compact
    uint64_t tag
    Py_ssize_t slot        # the offset, in bytes, at which the class stores it
    const Structure *inner
    Default at_default
    int64_t number         # for NUMBER
    double real            # for REAL
    PyObject *value        # for SAME and EQUAL

# A field that may be missing in the message, and how to make it in that case.
cdef struct Filling:
    Making how
    PyObject *value
    Py_ssize_t slot

cdef struct Structure:
    PyTypeObject *type
    bint flexible
    int field_count
    int tagged_count
    int absent_count
    int filling_count
    int refused_count
    Field *fields          # the fields that are not tagged
    Field *tagged
    Field *absent          # the fields of other versions, which must have their defaults
    Filling *fillings      # for all fields that may be missing in the message
    uint64_t *refused_tags
    Py_ssize_t unknown_slot

cdef extern from "objects.h":
    void publish(const Structure **place, const Structure *pointer)
    const Structure *published(const Structure **place)


cdef class Program:
    cdef const Structure *root
    cdef object classes
    cdef dict structures
    cdef list kept
    cdef void *room(self, size_t size) except NULL
    cdef PyObject *borrowed(self, value) except NULL
    cdef const Structure *structure(self, schema) except NULL
    cdef Field *fields(self, schema_fields, slots) except NULL
    cdef int default(self, Field *row, field) except -1
    cdef Filling *fillings(self, cls, slots, names) except NULL


cdef class Call:
    """The data of a C function for a message version: the program, and the fallback."""

    cdef Program program
    cdef object fallback


cdef dict slots_of(cls)
cdef object call_fallback(PyObject *fallback, PyObject **arguments, size_t count, PyObject *names)


cdef inline PyMethodDef method(const char *name, void *function) noexcept:
    """Return the definition of a function that takes its arguments one by one (METH_FASTCALL)."""
    cdef PyMethodDef definition
    definition.ml_name, definition.ml_meth = name, as_method(function)
    definition.ml_flags, definition.ml_doc = METH_FASTCALL, NULL
    return definition


cdef inline PyObject *make_list(Py_ssize_t count) noexcept:
    """Make a list with this many empty places; a new reference, or NULL.

    Kernels make only trees of objects, as their classes say with gc=False, so the collector need
    not examine them. The list is untracked while it is empty, because the collector shows the
    objects that it tracks to other threads.
    """
    cdef PyObject *items = PyList_New(count)
    if items != NULL:
        PyObject_GC_UnTrack(items)
    return items


cdef inline bint to_int64(PyObject *value, int64_t *number) noexcept:
    """Return the value of an exact int, if it has at most 64 bits."""
    cdef int overflow = 0
    if not PyLong_CheckExact(value):
        return False
    number[0] = PyLong_AsLongLongAndOverflow(value, &overflow)
    return not overflow


cdef inline bint is_refused(const Structure *structure, uint64_t tag) noexcept:
    """Return whether a tag belongs to another version's field."""
    cdef int index
    for index in range(structure.refused_count):
        if structure.refused_tags[index] == tag:
            return True
    return False


# The offsets, in bytes, at which a UUID object stores its parts.
cdef Py_ssize_t UUID_INT
cdef Py_ssize_t UUID_IS_SAFE
