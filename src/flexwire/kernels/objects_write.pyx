"""Writes Python objects as messages: one kernel for all messages, controlled by a program.

The input is an object of the message's class, whose values have exactly the classes of a decoded
message. Anything else is refused. The fallback, which is Python code, is then called with the same
arguments. A value is borrowed from its object, with a reference while any part of it is written.
Comparing with a default runs Python code, which could let another thread change the object that is
being encoded.
"""

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

import uuid

# The definitions for this file: the primitives for writing, and a program for objects.
from flexwire.kernels.cursor cimport *
from flexwire.kernels.objects cimport *
from flexwire.kernels.output cimport Output, PyMem_Free, begin_output, reserve, write_bytes

cdef enum:
    FIRST_SIZE = 256       # the first size of the output, in bytes
    WIDEST = 8             # the largest size of a number, a length or the marker of a structure
    LIKELY_HEADER = 2      # the number of bytes before most tagged fields

cdef object UUID_CLASS = uuid.UUID
cdef object TO_BYTES = int.to_bytes
cdef object SIXTEEN = 16

cdef inline bint write_length(Output *out, bint compact, int width, int64_t length) noexcept:
    """Write a length or a count, or -1 for null."""
    cdef uint8_t *at = reserve(out, WIDEST)
    if at == NULL:
        return False
    if compact:
        out.at = write_varint(at, length + 1)
        return True
    if width == STRING_WIDTH:
        store_uint16(at, <uint16_t> length)
    else:
        store_uint32(at, <uint32_t> length)
    out.at = at + width
    return True


cdef inline bint write_byte(Output *out, uint8_t byte) noexcept:
    cdef uint8_t *at = reserve(out, 1)
    if at == NULL:
        return False
    at[0] = byte
    out.at = at + 1
    return True


# Numbers and text must have exactly their class. Otherwise they are refused.

cdef inline bint write_integer(Output *out, Code code, PyObject *value) noexcept:
    """Write an int if it is in the range of its type."""
    cdef int64_t number
    cdef uint8_t *at = reserve(out, WIDEST)
    if at == NULL or not to_int64(value, &number) or not is_in_range(code, number):
        return False
    out.at = store_number(code, at, number)
    return True


cdef bint write_uuid(Output *out, PyObject *value) noexcept:
    """Write a UUID from its number."""
    cdef PyObject *number
    cdef PyObject *raw
    cdef bint is_written
    if Py_TYPE(value) != <PyTypeObject *> UUID_CLASS:
        return False
    number = hold_field(value, UUID_INT)
    raw = NULL
    # For an exact int no other code runs. The function returns as many bytes as requested, or an
    # error.
    if number != NULL and PyLong_CheckExact(number):
        raw = PyObject_CallFunctionObjArgs(
            <PyObject *> TO_BYTES, number, <PyObject *> SIXTEEN, <PyObject *> NULL
        )
    Py_XDECREF(number)
    if raw == NULL:
        return False
    is_written = write_bytes(out, PyBytes_AS_STRING(raw), UUID_SIZE)
    Py_DECREF(raw)
    return is_written


cdef inline bint write_number(Output *out, Code code, PyObject *value) noexcept:
    """Write a boolean, a number or a UUID."""
    cdef uint8_t *at
    cdef double number
    cdef uint64_t bits
    if code == BOOL:
        return (value == Py_True or value == Py_False) and write_byte(out, value == Py_True)
    if code < FLOAT64:
        return write_integer(out, code, value)
    if code == UUID:
        return write_uuid(out, value)
    if not PyFloat_CheckExact(value):
        return False
    at = reserve(out, WIDEST)
    if at == NULL:
        return False
    number = PyFloat_AS_DOUBLE(value)
    memcpy(&bits, &number, sizeof(bits))
    store_uint64(at, bits)
    out.at = at + 8
    return True


cdef inline bint write_text(
    Output *out, bint is_string, bint compact, PyObject *value
) noexcept:
    """Write a str or bytes."""
    cdef Py_ssize_t size
    cdef const char *source
    if is_string:
        if not PyUnicode_CheckExact(value):
            return False
        source = PyUnicode_AsUTF8AndSize(value, &size)
        if source == NULL or size > LONGEST_STRING:
            return False
        return write_length(out, compact, STRING_WIDTH, size) and write_bytes(out, source, size)
    if not PyBytes_CheckExact(value):
        return False
    size = PyBytes_GET_SIZE(value)
    if size > LONGEST or not write_length(out, compact, WIDTH, size):
        return False
    return write_bytes(out, PyBytes_AS_STRING(value), size)


# Arrays and structures.

cdef bint write_array(Output *out, const Field *field, PyObject *value) noexcept:
    """Write a list, whose length must not change in the meantime."""
    cdef Py_ssize_t count, index
    cdef PyObject *item
    cdef bint is_written
    if not PyList_CheckExact(value):
        return False
    count = PyList_GET_SIZE(value)
    if count > LONGEST or not write_length(out, field.compact, WIDTH, count):
        return False
    for index in range(count):
        item = hold_item(value, index)
        if item == NULL:
            return False
        if field.element == STRUCT:
            is_written = write_struct(out, field.inner, item)
        elif field.element < STRING:
            is_written = write_number(out, field.element, item)
        else:
            is_written = write_text(out, field.element == STRING, field.compact, item)
        Py_DECREF(item)
        if not is_written:
            return False
    return PyList_GET_SIZE(value) == count


cdef bint write_null(Output *out, const Field *field) noexcept:
    """Write null if the field allows it."""
    if not field.nullable or field.code == STRUCT:
        return False
    if field.code >= NULLABLE_STRUCT:
        return write_byte(out, 0 if field.code == TAGGED_STRUCT else 0xFF)
    return write_length(out, field.compact, STRING_WIDTH if field.code == STRING else WIDTH, -1)


cdef inline bint write_value(Output *out, const Field *field, PyObject *value) noexcept:
    """Write the value of any field."""
    if field.code < STRING:
        return write_number(out, field.code, value)
    if value == <PyObject *> None:
        return write_null(out, field)
    if field.code <= BYTES:
        return write_text(out, field.code == STRING, field.compact, value)
    if field.code == ARRAY:
        return write_array(out, field, value)
    if field.code != STRUCT and not write_byte(out, 1):
        return False
    return write_struct(out, field.inner, value)


cdef bint write_field(Output *out, const Field *field, PyObject *message) noexcept:
    """Write one field of an object, with a reference to the object while it is written."""
    cdef PyObject *value = hold_field(message, field.slot)
    cdef bint is_written
    if value == NULL:
        return False
    is_written = write_value(out, field, value)
    Py_DECREF(value)
    return is_written


cdef bint write_struct(Output *out, const Structure *structure, PyObject *message) noexcept:
    """Write a structure, which must be exactly of its class: its fields, then its tag section."""
    cdef int index
    cdef PyObject *unknown
    cdef bint is_written
    if Py_TYPE(message) != structure.type:
        return False
    for index in range(structure.absent_count):
        if is_at_default(&structure.absent[index], message) != 1:
            return False
    for index in range(structure.field_count):
        if not write_field(out, &structure.fields[index], message):
            return False
    unknown = hold_field(message, structure.unknown_slot)
    if unknown == NULL:
        return False
    is_written = False
    if PyDict_CheckExact(unknown):
        if structure.flexible:
            is_written = write_tags(out, structure, message, unknown)
        else:
            is_written = PyDict_Size(unknown) == 0
    Py_DECREF(unknown)
    return is_written


# Tagged fields.

cdef int is_default(const Field *field, PyObject *value) noexcept:
    """Return whether a tagged or absent field has its default: 1, 0, or -1 for an error.

    It is also 0 if this is unclear, because a value that is invalid for the field cannot be written
    anyway.
    """
    cdef int64_t number
    if field.at_default == NULL_VALUE:
        return value == <PyObject *> None
    if field.at_default == SAME:
        return value == field.value
    if field.at_default == NEVER:
        return 0
    if field.at_default == NUMBER:
        return to_int64(value, &number) and number == field.number
    if field.at_default == EMPTY_LIST:
        return PyList_CheckExact(value) and PyList_GET_SIZE(value) == 0
    if field.at_default == EMPTY_BYTES:
        return PyBytes_CheckExact(value) and PyBytes_GET_SIZE(value) == 0
    if field.at_default == REAL:
        return PyFloat_CheckExact(value) and PyFloat_AS_DOUBLE(value) == field.real
    if Py_TYPE(value) != Py_TYPE(field.value):
        return 0
    return PyObject_RichCompareBool(value, field.value, Py_EQ)


cdef int is_at_default(const Field *field, PyObject *message) noexcept:
    """Return whether a field of an object has its default, as `is_default` does."""
    cdef PyObject *value = hold_field(message, field.slot)
    cdef int answer
    if value == NULL:
        return -1
    answer = is_default(field, value)
    Py_DECREF(value)
    return answer


cdef bint write_tags(
    Output *out, const Structure *structure, PyObject *message, PyObject *unknown
) noexcept:
    """Write a tag section, ascending: known fields that are not defaults, and unknown ones."""
    cdef uint64_t present = 0
    cdef int64_t count = PyDict_Size(unknown)
    cdef int64_t others = count
    cdef Py_ssize_t position = 0
    cdef int64_t least = 0
    cdef int index, answer
    cdef uint8_t *at
    for index in range(structure.tagged_count):
        answer = is_at_default(&structure.tagged[index], message)
        if answer < 0:
            return False
        present |= <uint64_t> (answer == 0) << index
        count += answer == 0
    at = reserve(out, VARINT_GROUPS)
    if at == NULL:
        return False
    out.at = write_varint(at, count)
    for index in range(structure.tagged_count):
        if not present >> index & 1:
            continue
        if others and not write_unknown(
            out, structure, unknown, structure.tagged[index].tag, &position, &least, &others
        ):
            return False
        if not write_tagged(out, &structure.tagged[index], message):
            return False
    if others and not write_unknown(
        out, structure, unknown, HIGHEST_TAG, &position, &least, &others
    ):
        return False
    return others == 0


cdef bint write_unknown(
    Output *out, const Structure *structure, PyObject *unknown, int64_t until,
    Py_ssize_t *position, int64_t *least, int64_t *rest
) noexcept:
    """Write the unknown tagged fields up to a tag, starting at a position of the dict."""
    cdef Turn turn
    cdef bint is_written
    begin_turn(&turn, unknown)
    is_written = write_entries(out, structure, unknown, until, position, least, rest)
    end_turn(&turn)
    return is_written


cdef bint write_entries(
    Output *out, const Structure *structure, PyObject *unknown, int64_t until,
    Py_ssize_t *position, int64_t *least, int64_t *rest
) noexcept:
    """Write the entries of a dict up to a tag.

    If the dict has the order of the tags, as after reading, the entries are written without
    sorting. In any other order they are refused. They are also refused if a key is not an allowed
    tag, or a value is not bytes.
    """
    cdef PyObject *key
    cdef PyObject *value
    cdef Py_ssize_t after = position[0]
    cdef int64_t tag
    while PyDict_Next(unknown, &after, &key, &value):
        if not to_int64(key, &tag) or not least[0] <= tag <= HIGHEST_TAG:
            return False
        if not PyBytes_CheckExact(value) or PyBytes_GET_SIZE(value) > LONGEST:
            return False
        if is_refused(structure, tag) or is_known(structure, tag):
            return False
        if tag > until:
            break
        if not write_header(out, tag, PyBytes_GET_SIZE(value)):
            return False
        if not write_bytes(out, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value)):
            return False
        position[0], least[0] = after, tag + 1
        rest[0] -= 1
    return True


cdef bint is_known(const Structure *structure, uint64_t tag) noexcept:
    """Return whether a tag belongs to a known field."""
    cdef int index
    for index in range(structure.tagged_count):
        if structure.tagged[index].tag == tag:
            return True
    return False


cdef bint write_header(Output *out, uint64_t tag, uint64_t size) noexcept:
    """Write the header before the value of a tagged field."""
    cdef uint8_t *at = reserve(out, 2 * VARINT_GROUPS)
    if at == NULL:
        return False
    out.at = write_varint(write_varint(at, tag), size)
    return True


cdef bint write_tagged(Output *out, const Field *field, PyObject *message) noexcept:
    """Write one tagged field: its header, and then its value, whose size is known only afterwards.

    The value is written after the usual size of a header, and is moved if the header has another
    size.
    """
    cdef int64_t begin = out.at - out.begin
    cdef int64_t size
    cdef int header
    cdef uint8_t *at = reserve(out, LIKELY_HEADER)
    if at == NULL:
        return False
    out.at = at + LIKELY_HEADER
    if not write_field(out, field, message) or reserve(out, 2 * VARINT_GROUPS) == NULL:
        return False
    at = out.begin + begin
    size = out.at - at - LIKELY_HEADER
    header = groups_of(field.tag) + groups_of(size)
    if header != LIKELY_HEADER:
        memmove(at + header, at + LIKELY_HEADER, size)
    write_varint(write_varint(at, field.tag), size)
    out.at = at + header + size
    return True


# The function for whole messages.

cdef PyObject *write_message(const Structure *root, PyObject *message) noexcept:
    """Return one message as bytes; a new reference, or NULL."""
    cdef PyObject *result = NULL
    cdef Output out
    if not begin_output(&out, FIRST_SIZE):
        return NULL
    if write_struct(&out, root, message):
        result = PyBytes_FromStringAndSize(<const char *> out.begin, out.at - out.begin)
    PyMem_Free(out.begin)
    return result


cdef object encode(object itself, PyObject **arguments, Py_ssize_t count):
    """Encode one message; the fallback handles unusual calls."""
    cdef Call call = <Call> itself
    cdef PyObject *result
    if count == 1:
        result = write_message(call.program.root, arguments[0])
        if result != NULL:
            return as_object(result)
    return call_fallback(<PyObject *> call.fallback, arguments, count, NULL)


cdef PyMethodDef ENCODE = method("encode", <void *> encode)


def encoder(Program program, fallback):
    """Return the function that encodes a message object; ``fallback`` handles other calls."""
    return PyCFunction_NewEx(&ENCODE, Call(program, fallback), NULL)
