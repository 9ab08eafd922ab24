"""Makes the program that reads and writes the objects of one version of a message.

The input is a resolved schema and the classes of its structures. `UnsuitableError` refuses a schema
or class that the kernels do not support: tagged fields in a form other than Kafka's, more than
`MOST_TAGS` tags, and classes whose objects have more than their fields. Python reads and writes
such messages.
"""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport uint64_t

import uuid

import msgspec

# The types of fixed width. The names in `objects.pxd` are available here without an import.
from flexwire.kernels.cursor cimport *

from flexwire.wire.schema import NullableStruct, Presence, Schema, struct_of
from flexwire.wire.tags import TagForm
from flexwire.wire.types import ArrayType, Boolean, Bytes, Float64, Integer, String, Uuid


cdef extern from "Python.h":
    char *PyByteArray_AsString(object memory) except NULL

cdef enum:
    SLOT = 8
    # flags of Python: the class has a dict, weak references or the collector
    HAS_MORE = 1 << 2 | 1 << 3 | 1 << 4 | 1 << 14


class UnsuitableError(Exception):
    """A schema or class that the kernels do not support; Python code handles it."""


cdef object call_fallback(PyObject *fallback, PyObject **arguments, size_t count, PyObject *names):
    """Call the function that handles a refusal, with the arguments of the call that was refused.

    If an error is set, it was only the reason for the refusal. If it is not an `Exception`, it is
    an interrupt and is passed on.
    """
    cdef PyObject *answer = NULL
    if PyErr_Occurred() == NULL or PyErr_ExceptionMatches(<PyObject *> Exception):
        PyErr_Clear()
        answer = PyObject_Vectorcall(fallback, arguments, count, names)
    return as_object(answer)


# The offsets at which a class stores its fields.

# The number of bytes of an object before its fields: 16, or 32 without a GIL.
cdef Py_ssize_t FIRST_SLOT = object.__basicsize__


cdef Py_ssize_t size_of(cls) except -1:
    """Return the size of an object of a class in bytes."""
    return type.__dict__["__basicsize__"].__get__(cls)


cdef Py_ssize_t slot_of(whole, mark) except -1:
    """Return the offset at which an object stores a unique mark."""
    cdef Py_ssize_t slot
    for slot in range(FIRST_SLOT, size_of(type(whole)), SLOT):
        if field_at(<PyObject *> whole, slot)[0] == <PyObject *> mark:
            return slot
    raise UnsuitableError(f"the fields of {type(whole)} are not where they were")


cdef dict slots_of(cls):
    """Return the offset of each field in an object of a class, found and tested with one object."""
    if cls.__flags__ & HAS_MORE:
        raise UnsuitableError(f"{cls.__name__} is looked after by the collector")
    marks = {name: object() for name in cls.__struct_fields__}
    whole = cls(**marks)
    slots = {name: slot_of(whole, mark) for name, mark in marks.items()}
    if len(slots) * SLOT + FIRST_SLOT != size_of(cls):
        raise UnsuitableError(f"objects of {cls.__name__} hold more than their fields")
    return slots


_marks = {"int": object(), "is_safe": object()}
_whole = object.__new__(uuid.UUID)
for _name, _mark in _marks.items():
    object.__setattr__(_whole, _name, _mark)
UUID_INT = slot_of(_whole, _marks["int"])
UUID_IS_SAFE = slot_of(_whole, _marks["is_safe"])


# Descriptions of fields.

_INTEGERS = {
    "INT8": INT8, "INT16": INT16, "UINT16": UINT16, "INT32": INT32, "UINT32": UINT32, "INT64": INT64,
}
_OTHERS = {
    Boolean: BOOL, Float64: FLOAT64, Uuid: UUID, String: STRING, Bytes: BYTES, ArrayType: ARRAY,
    Schema: STRUCT,
}


cdef Code code_of(kind) except -1:
    """Return the code in a program for a type."""
    if isinstance(kind, Integer):
        return _INTEGERS[kind.name]
    if isinstance(kind, NullableStruct):
        return TAGGED_STRUCT if kind.tagged else NULLABLE_STRUCT
    return _OTHERS[type(kind)]


@cython.final
@cython.no_gc_clear  # functions made from it read it as long as they exist
cdef class Program:
    """A schema in the form for kernels, with the classes of its structures by name.

    Raises `UnsuitableError` for a schema or class that Python must handle.
    """

    def __init__(self, schema, classes):
        self.classes, self.structures, self.kept = dict(classes), {}, []
        self.root = self.structure(schema)

    cdef void *room(self, size_t size) except NULL:
        """Return zeroed memory that exists as long as the program."""
        memory = bytearray(size or 1)
        self.kept.append(memory)
        return PyByteArray_AsString(memory)

    cdef PyObject *borrowed(self, value) except NULL:
        """Keep a reference to an object as long as the program exists; return the object."""
        self.kept.append(value)
        return <PyObject *> value

    cdef const Structure *structure(self, schema) except NULL:
        """Return a structure, which is made when its schema is first used."""
        cdef Structure *structure
        if schema.name in self.structures:
            return <const Structure *> <size_t> self.structures[schema.name]
        if schema.flexible and schema.form is not TagForm.SECTION:
            raise UnsuitableError("the kernels know tagged fields as Kafka writes them")
        cls = self.classes[schema.name]
        slots, names = slots_of(cls), cls.__struct_fields__
        tagged, refused = list(schema.tagged.values()), sorted(schema.refused_tags)
        if len(tagged) > MOST_TAGS:
            raise UnsuitableError(f"{schema.name} has more than {MOST_TAGS} tagged fields")
        absent = [field for field in schema.absent if not field.ignorable]
        on_wire = {field.attribute for field in schema.inline}
        others = [name for name in names if name not in on_wire]
        structure = <Structure *> self.room(sizeof(Structure))
        structure.type = <PyTypeObject *> cls
        structure.flexible = schema.flexible
        structure.unknown_slot = slots[names[len(names) - 1]]
        structure.field_count, structure.fields = len(schema.inline), self.fields(schema.inline, slots)
        structure.tagged_count, structure.tagged = len(tagged), self.fields(tagged, slots)
        structure.absent_count, structure.absent = len(absent), self.fields(absent, slots)
        structure.filling_count, structure.fillings = len(others), self.fillings(cls, slots, others)
        structure.refused_count = len(refused)
        structure.refused_tags = <uint64_t *> self.room(len(refused) * sizeof(uint64_t))
        for index, tag in enumerate(refused):
            structure.refused_tags[<int> index] = tag
        self.structures[schema.name] = <size_t> structure
        return structure

    cdef Field *fields(self, schema_fields, slots) except NULL:
        """Return the descriptions of some fields."""
        cdef Field *rows = <Field *> self.room(len(schema_fields) * sizeof(Field))
        cdef Field *row
        for index, field in enumerate(schema_fields):
            row, kind = &rows[<int> index], field.type
            row.code, row.slot = code_of(kind), slots[field.attribute]
            row.nullable, row.compact = field.nullable, getattr(kind, "compact", False)
            row.tag = 0 if field.tag is None else field.tag
            if isinstance(kind, ArrayType):
                row.element = code_of(kind.element)
            inner = struct_of(kind)
            if inner is not None and field.presence is not Presence.ABSENT:
                row.inner = self.structure(inner)
            self.default(row, field)
        return rows

    cdef int default(self, Field *row, field) except -1:
        """Set the value with which a field is compared to find out whether it has its default."""
        value, inner = field.default, struct_of(field.type)
        if value is None:
            row.at_default = NULL_VALUE
        elif isinstance(value, bool):
            row.at_default, row.value = SAME, self.borrowed(value)
        elif isinstance(field.type, ArrayType):
            row.at_default = EMPTY_LIST
        elif isinstance(value, bytes):
            row.at_default = EMPTY_BYTES
        elif isinstance(value, float):
            row.at_default, row.real = REAL, value
        elif isinstance(value, int):
            row.at_default, row.number = NUMBER, value
        elif inner is None:
            row.at_default, row.value = EQUAL, self.borrowed(value)
        else:
            fresh = self.classes[inner.name]()
            row.at_default, row.value = EQUAL, self.borrowed(fresh)
            # NaN does not equal itself, so a structure with NaN as a default does not equal its
            # default.
            if not field.is_default(msgspec.to_builtins(fresh, builtin_types=(bytes, uuid.UUID))):
                row.at_default = NEVER
        return 0

    cdef Filling *fillings(self, cls, slots, names) except NULL:
        """Return how to make the fields with these names if they were not in the message."""
        cdef Filling *rows = <Filling *> self.room(len(names) * sizeof(Filling))
        cdef Filling *row
        fresh = cls()
        for index, name in enumerate(names):
            row, value = &rows[<int> index], getattr(fresh, name)
            row.slot = slots[name]
            if isinstance(value, list):
                row.how = NEW_LIST
            elif isinstance(value, dict):
                row.how = NEW_DICT
            elif isinstance(value, msgspec.Struct):
                row.how, row.value = CALLED, self.borrowed(type(value))
            else:
                row.how, row.value = SHARED, self.borrowed(value)
        return rows


@cython.final
@cython.no_gc_clear  # as for its program
cdef class Call:
    def __init__(self, Program program, fallback):
        self.program, self.fallback = program, fallback
