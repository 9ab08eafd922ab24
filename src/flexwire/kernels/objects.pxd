"""The program of a message version: where its fields stand on the wire, and in which objects.

A structure of the schema is a `Structure`, made once. Addresses of Python objects in it are borrowed;
its `Program` keeps what they point to.
"""

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t, uint64_t

cdef extern from "objects.h":
    # New references, or NULL with an error set.
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
    # For an object of that class.
    long long PyLong_AsLongLongAndOverflow(PyObject *number, int *overflow)
    double PyFloat_AS_DOUBLE(PyObject *number)
    const char *PyUnicode_AsUTF8AndSize(PyObject *text, Py_ssize_t *size)
    const char *PyBytes_AS_STRING(PyObject *data)
    Py_ssize_t PyBytes_GET_SIZE(PyObject *data)
    Py_ssize_t PyList_GET_SIZE(PyObject *items)
    PyObject *PyList_GET_ITEM(PyObject *items, Py_ssize_t index)
    PyObject *PyTuple_New(Py_ssize_t size)
    bint PyTuple_CheckExact(PyObject *object)
    # Takes ownership of the item.
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
    # Takes ownership of the item.
    void PyList_SET_ITEM(PyObject *list, Py_ssize_t index, PyObject *item)
    PyObject **field_at(PyObject *object, Py_ssize_t slot)
    object as_object(PyObject *object)
    # Objects that other threads may replace, if there is no GIL; see objects.h.
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

# The kinds of fields, after the types of fixed width in `cursor.pxd`.
ctypedef int Code

cdef enum:
    STRING = 9
    BYTES, ARRAY, STRUCT, NULLABLE_STRUCT, TAGGED_STRUCT

# How to make a field that was not on the wire.
cdef enum Making:
    SHARED, NEW_LIST, NEW_DICT, CALLED

# The default of a field that may be left out.
cdef enum Default:
    NULL_VALUE, NUMBER, REAL, SAME, EMPTY_LIST, EMPTY_BYTES, EQUAL, NEVER

cdef enum:
    MOST_TAGS = 64         # those that are present are the bits of a number

cdef struct Field:
    Code code
    Code element           # of an array
    bint nullable
    bint compact
    uint64_t tag
    Py_ssize_t slot        # where the class keeps it, in bytes
    const Structure *inner
    Default at_default
    int64_t number         # of NUMBER
    double real            # of REAL
    PyObject *value        # of SAME and EQUAL

# A field that may be missing on the wire, and how to make it in that case.
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
    Field *fields          # those that are not tagged
    Field *tagged
    Field *absent          # of other versions, which must be at their defaults
    Filling *fillings      # of all that may not be on the wire
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
    """What a C function of a message version knows: the program, and what judges its refusals."""

    cdef Program program
    cdef object fallback


cdef dict slots_of(cls)
cdef object call_fallback(PyObject *fallback, PyObject **arguments, size_t count, PyObject *names)


cdef inline PyMethodDef method(const char *name, void *function) noexcept:
    """Return the definition of a function that takes its arguments side by side (METH_FASTCALL)."""
    cdef PyMethodDef definition
    definition.ml_name, definition.ml_meth = name, as_method(function)
    definition.ml_flags, definition.ml_doc = METH_FASTCALL, NULL
    return definition


cdef inline PyObject *make_list(Py_ssize_t count) noexcept:
    """Make a list of so many empty places; a new reference, or NULL.

    What kernels make are trees, as their classes say with gc=False, so the collector need not look
    at them. The list is untracked while it is empty: the collector shows other threads what it knows.
    """
    cdef PyObject *items = PyList_New(count)
    if items != NULL:
        PyObject_GC_UnTrack(items)
    return items


cdef inline bint to_int64(PyObject *value, int64_t *number) noexcept:
    """Take the number that an exact int is, if it has no more than 64 bits."""
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


# The offsets, in bytes, at which a UUID object keeps its parts.
cdef Py_ssize_t UUID_INT
cdef Py_ssize_t UUID_IS_SAFE
