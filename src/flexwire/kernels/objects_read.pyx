"""Reads messages into Python objects: one kernel for all messages, controlled by a program.

The input is an exact bytes object, which is one complete message. Each length is compared with the
remaining bytes before it is used. An object is stored in its place as soon as it exists, either in
its list or where its class stores it. Places that are not filled yet are empty. If a message is
refused, releasing its root therefore releases all of it. The fallback, which is Python code, is
then called with the same arguments.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t, uint8_t, uint64_t

import sys
import uuid

# The definitions for this file: the primitives for reading, and a program for objects.
from flexwire.kernels.cursor cimport *
from flexwire.kernels.objects cimport *

cdef enum:
    NULL_LENGTH = -1
    # from this many bytes on, the collector is turned off while objects are made
    LARGE = 1024
    VERSIONS = 64          # messages have about twenty versions; the fallback handles more

cdef object UUID_CLASS = uuid.UUID
cdef object UNKNOWN = uuid.SafeUUID.unknown
cdef object FROM_BYTES = int.from_bytes
cdef object VERSION = sys.intern("version")


# Numbers and text.

cdef inline PyObject *make_number(Code code, const uint8_t *at) noexcept:
    """Make the object for a value of fixed width from its bytes; a new reference, or NULL."""
    # Most types are integers, whose codes are adjacent.
    if INT8 <= code <= INT64:
        return PyLong_FromLongLong(load_number(code, at))
    if code == BOOL:
        return PyBool_FromLong(at[0]) if at[0] <= 1 else NULL
    return PyFloat_FromDouble(load_float64(at)) if code == FLOAT64 else make_uuid(at)


cdef PyObject *make_uuid(const uint8_t *at) noexcept:
    """Make a UUID from 16 bytes, as its constructor does."""
    cdef PyObject *result = NULL
    cdef PyObject *raw = PyBytes_FromStringAndSize(<const char *> at, UUID_SIZE)
    cdef PyObject *number = NULL
    if raw != NULL:
        number = PyObject_CallOneArg(<PyObject *> FROM_BYTES, raw)
        Py_XDECREF(raw)
    if number != NULL:
        result = PyType_GenericAlloc(<PyTypeObject *> UUID_CLASS, 0)
        if result == NULL:
            Py_XDECREF(number)
    if result != NULL:
        # A UUID has only a number and a name, which the garbage collector does not need to examine.
        PyObject_GC_UnTrack(result)
        field_at(result, UUID_INT)[0] = number
        field_at(result, UUID_IS_SAFE)[0] = Py_NewRef(<PyObject *> UNKNOWN)
    return result


cdef inline PyObject *read_number(Cursor *cursor, Code code) noexcept:
    """Read a number; a new reference, or NULL."""
    cdef const uint8_t *at = take(cursor, width_of(code))
    return NULL if at == NULL else make_number(code, at)


cdef inline PyObject *read_text(
    Cursor *cursor, bint is_string, bint compact, bint nullable
) noexcept:
    """Read a string or bytes; a new reference, or NULL."""
    cdef int64_t size
    cdef const uint8_t *at
    if not read_length(cursor, compact, nullable, STRING_WIDTH if is_string else WIDTH, &size):
        return NULL
    if size == NULL_LENGTH:
        return Py_NewRef(<PyObject *> None)
    at = take(cursor, size)
    if at == NULL or (is_string and size > LONGEST_STRING):
        return NULL
    if is_string:
        return PyUnicode_DecodeUTF8(<const char *> at, size, NULL)
    return PyBytes_FromStringAndSize(<const char *> at, size)


# Arrays and structures. Each function returns whether it has filled the place that it was given.

cdef bint read_array(Cursor *cursor, const Field *field, PyObject **where) noexcept:
    """Read an array into a list."""
    cdef int64_t count, index
    cdef PyObject *item
    cdef bint is_read
    if not read_length(cursor, field.compact, field.nullable, WIDTH, &count):
        return False
    if count == NULL_LENGTH:
        where[0] = Py_NewRef(<PyObject *> None)
        return True
    # Every element has at least one byte.
    if count > left(cursor):
        return False
    where[0] = make_list(count)
    if where[0] == NULL:
        return False
    for index in range(count):
        item = NULL
        is_read = True
        if field.element == STRUCT:
            is_read = read_struct(cursor, field.inner, &item)
        elif field.element < STRING:
            item = read_number(cursor, field.element)
        else:
            # An element is never null, and it is compact if its array is compact.
            item = read_text(cursor, field.element == STRING, field.compact, False)
        if item == NULL:
            return False
        PyList_SET_ITEM(where[0], index, item)
        if not is_read:
            return False
    return True


cdef inline bint read_value(Cursor *cursor, const Field *field, PyObject **where) noexcept:
    """Read the value of any field."""
    cdef const uint8_t *marker
    if field.code < STRING:
        where[0] = read_number(cursor, field.code)
        return where[0] != NULL
    if field.code <= BYTES:
        where[0] = read_text(cursor, field.code == STRING, field.compact, field.nullable)
        return where[0] != NULL
    if field.code == ARRAY:
        return read_array(cursor, field, where)
    if field.code != STRUCT:
        marker = take(cursor, 1)
        if marker == NULL:
            return False
        if marker[0] == (0 if field.code == TAGGED_STRUCT else 0xFF):
            where[0] = Py_NewRef(<PyObject *> None)
            return True
        if marker[0] != 1:
            return False
    return read_struct(cursor, field.inner, where)


cdef bint read_struct(Cursor *cursor, const Structure *structure, PyObject **where) noexcept:
    """Read a structure: its fields, its tag section, and the fields that are not in the message.

    The fields are stored where the class stores them. Its constructor would only copy them there.
    """
    cdef int index
    cdef const Field *field
    cdef const Filling *filling
    cdef PyObject *result = PyType_GenericAlloc(structure.type, 0)
    where[0] = result
    if result == NULL:
        return False
    for index in range(structure.field_count):
        field = &structure.fields[index]
        if unlikely(not read_value(cursor, field, field_at(result, field.slot))):
            return False
    if structure.flexible and not read_tags(cursor, structure, result):
        return False
    for index in range(structure.filling_count):
        filling = &structure.fillings[index]
        if field_at(result, filling.slot)[0] == NULL:
            field_at(result, filling.slot)[0] = fill(filling)
            if field_at(result, filling.slot)[0] == NULL:
                return False
    return True


cdef bint read_tags(Cursor *cursor, const Structure *structure, PyObject *result) noexcept:
    """Read a tag section. Each tagged field has exactly its declared size."""
    cdef uint64_t count, tag, size, least = 0
    cdef Cursor field
    if not read_varint(cursor, &count):
        return False
    while count > 0:
        if not (read_varint(cursor, &tag) and read_varint(cursor, &size)):
            return False
        if tag < least or tag > HIGHEST_TAG or is_refused(structure, tag):
            return False
        field.at = take(cursor, size)
        field.end = cursor.at
        if field.at == NULL or not read_tagged(&field, structure, tag, result):
            return False
        if field.at != field.end:
            return False
        least = tag + 1
        count -= 1
    return True


cdef bint read_tagged(
    Cursor *cursor, const Structure *structure, uint64_t tag, PyObject *result
) noexcept:
    """Read one tagged field, known or unknown."""
    cdef int index
    cdef const Field *field
    cdef PyObject **unknown = field_at(result, structure.unknown_slot)
    cdef PyObject *key
    cdef PyObject *value
    cdef bint is_put
    for index in range(structure.tagged_count):
        field = &structure.tagged[index]
        if field.tag == tag:
            return read_value(cursor, field, field_at(result, field.slot))
    if unknown[0] == NULL:
        unknown[0] = PyDict_New()
    key = PyLong_FromLongLong(tag)
    value = PyBytes_FromStringAndSize(<const char *> cursor.at, left(cursor))
    cursor.at = cursor.end
    is_put = unknown[0] != NULL and key != NULL and value != NULL
    is_put = is_put and PyDict_SetItem(unknown[0], key, value) == 0
    Py_XDECREF(key)
    Py_XDECREF(value)
    return is_put


cdef PyObject *fill(const Filling *filling) noexcept:
    """Make a field that is not in the message; a new reference, or NULL."""
    if filling.how == SHARED:
        return Py_NewRef(filling.value)
    if filling.how == NEW_DICT:
        return PyDict_New()
    if filling.how == NEW_LIST:
        return PyList_New(0)
    return PyObject_CallNoArgs(filling.value)


# Functions for whole messages.

cdef PyObject *read_message(const Structure *root, PyObject *data) noexcept:
    """Read one complete message, which must be bytes; a new reference, or NULL."""
    cdef PyObject *result = NULL
    cdef Cursor cursor
    cdef bint was_on, is_read
    if not PyBytes_CheckExact(data):
        return NULL
    cursor.at = <const uint8_t *> PyBytes_AS_STRING(data)
    cursor.end = cursor.at + PyBytes_GET_SIZE(data)
    # The collector could not free any of the new objects, however often it ran. Without a GIL, two
    # threads would turn the collector off and on for each other.
    was_on = not WITHOUT_GIL and left(&cursor) >= LARGE and PyGC_Disable()
    is_read = read_struct(&cursor, root, &result)
    if was_on:
        PyGC_Enable()
    if is_read and cursor.at == cursor.end:
        return result
    Py_XDECREF(result)
    return NULL


cdef object decode(object itself, PyObject **arguments, Py_ssize_t count):
    """Decode one complete message; the fallback handles unusual calls."""
    cdef Call call = <Call> itself
    cdef PyObject *result
    if count == 1:
        result = read_message(call.program.root, arguments[0])
        if result != NULL:
            return as_object(result)
    return call_fallback(<PyObject *> call.fallback, arguments, count, NULL)


cdef PyMethodDef DECODE = method("decode", <void *> decode)


def decoder(Program program, fallback):
    """Return the function that decodes one message; ``fallback`` handles unusual calls."""
    return PyCFunction_NewEx(&DECODE, Call(program, fallback), NULL)


_DOC = """decode(data, version, *, lenient=False, encoding=...)
--

{}"""


@cython.final
@cython.no_gc_clear  # the function that it made reads it as long as the function exists
cdef class VersionMethod:
    """The ``decode`` of a class for all its versions, which finds the program of a version itself.

    In Python, finding the program would take longer than decoding a small message.
    """

    cdef const Structure *roots[VERSIONS]
    cdef PyMethodDef definition
    cdef object fallback
    cdef bytes doc
    cdef list programs

    def __init__(self, fallback):
        self.fallback, self.programs = fallback, []
        # The form in which Python shows the signature of a C function.
        self.doc = _DOC.format(fallback.__doc__).encode()
        self.definition.ml_name = "decode"
        self.definition.ml_meth = as_method(<void *> decode_version)
        self.definition.ml_flags = METH_FASTCALL | METH_KEYWORDS
        self.definition.ml_doc = self.doc

    def function(self):
        """Return this object as a function with a ``fallback``."""
        return PyCFunction_NewEx(&self.definition, self, NULL)

    def add(self, int version, Program program):
        """Add a version that the function decodes."""
        if version < VERSIONS:
            self.programs.append(program)
            publish(&self.roots[version], program.root)

    cdef const Structure *root(self, PyObject **arguments, Py_ssize_t count, PyObject *names):
        """Return the program for the version in a call, if the call has bytes and a version."""
        cdef int64_t version
        if names != NULL:
            # A keyword in a call is normally the interned string. The fallback handles any other
            # string.
            if count != 1 or PyTuple_GET_SIZE(names) != 1:
                return NULL
            if PyTuple_GET_ITEM(names, 0) != <PyObject *> VERSION:
                return NULL
        elif count != 2:
            return NULL
        if not to_int64(arguments[1], &version) or not 0 <= version < VERSIONS:
            return NULL
        return published(&self.roots[version])


cdef object decode_version(
    object itself, PyObject **arguments, Py_ssize_t count, PyObject *names
):
    """Decode one complete message of a version; the fallback handles unusual calls."""
    cdef VersionMethod method = <VersionMethod> itself
    cdef const Structure *root = method.root(arguments, count, names)
    cdef PyObject *result
    if root != NULL:
        result = read_message(root, arguments[0])
        if result != NULL:
            return as_object(result)
    return call_fallback(<PyObject *> method.fallback, arguments, count, names)
