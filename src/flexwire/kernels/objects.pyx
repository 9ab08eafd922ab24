# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""From a schema and its classes to the program that reads and writes their objects."""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport uint64_t

import uuid

import msgspec

from flexwire.kernels.objects cimport (
    ARRAY,
    BOOL,
    BYTES,
    CALLED,
    EMPTY_BYTES,
    EMPTY_LIST,
    EQUAL,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    MOST_TAGS,
    NEVER,
    NEW_DICT,
    NEW_LIST,
    NULL_VALUE,
    NULLABLE_STRUCT,
    NUMBER,
    REAL,
    SAME,
    SHARED,
    STRING,
    STRUCT,
    TAGGED_STRUCT,
    UINT16,
    UINT32,
    UUID,
    Code,
    Field,
    Filling,
    PyErr_Clear,
    PyErr_ExceptionMatches,
    PyErr_Occurred,
    PyObject_Vectorcall,
    Structure,
    given,
    place,
)

from flexwire.wire.schema import NullableStruct, Presence, Schema, struct_of
from flexwire.wire.tags import TagForm
from flexwire.wire.types import Array, Boolean, Bytes, Float64, Integer, String, Uuid


cdef extern from "Python.h":
    char *PyByteArray_AsString(object memory) except NULL

cdef enum:
    FIRST_SLOT = 16        # the bytes of an object before its fields
    SLOT = 8
    HAS_MORE = 1 << 2 | 1 << 3 | 1 << 4 | 1 << 14  # Python's flags: dict, weak references, collector


class UnsuitableError(Exception):
    """A schema or class that the kernels do not take; Python's code does."""


cdef object refused(PyObject *fallback, PyObject **arguments, size_t count, PyObject *names):
    """Call what judges a refusal, with the arguments of the call that was refused.

    An error that is set was only the reason; what is no `Exception`, an interrupt, is the caller's.
    """
    cdef PyObject *answer = NULL
    if PyErr_Occurred() == NULL or PyErr_ExceptionMatches(<PyObject *> Exception):
        PyErr_Clear()
        answer = PyObject_Vectorcall(fallback, arguments, count, names)
    return given(answer)


# Where a class keeps its fields.

cdef Py_ssize_t size_of(cls) except -1:
    """Return the bytes of an object of a class."""
    return type.__dict__["__basicsize__"].__get__(cls)


cdef Py_ssize_t slot_of(whole, mark) except -1:
    """Return the offset at which an object keeps a mark that nothing else holds."""
    cdef Py_ssize_t slot
    for slot in range(FIRST_SLOT, size_of(type(whole)), SLOT):
        if place(<PyObject *> whole, slot)[0] == <PyObject *> mark:
            return slot
    raise UnsuitableError(f"the fields of {type(whole)} are not where they were")


cdef dict slots_of(cls):
    """Return the offset of each field in an object of a class, found and proved on one object."""
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


# What a field is.

_INTEGERS = {
    "INT8": INT8, "INT16": INT16, "UINT16": UINT16, "INT32": INT32, "UINT32": UINT32, "INT64": INT64,
}
_OTHERS = {
    Boolean: BOOL, Float64: FLOAT64, Uuid: UUID, String: STRING, Bytes: BYTES, Array: ARRAY,
    Schema: STRUCT,
}


cdef Code code_of(kind) except *:
    if isinstance(kind, Integer):
        return _INTEGERS[kind.name]
    if isinstance(kind, NullableStruct):
        return TAGGED_STRUCT if kind.tagged else NULLABLE_STRUCT
    return _OTHERS[type(kind)]


@cython.final
@cython.no_gc_clear  # functions made of it read it as long as they are there
cdef class Program:
    """A schema as kernels read it, and the classes of its structures by their names.

    Raises `UnsuitableError` for a schema or class that is left to Python.
    """

    def __init__(self, schema, classes):
        self.classes, self.structures, self.kept = dict(classes), {}, []
        self.root = self.structure(schema)

    cdef void *room(self, size_t size) except NULL:
        """Return memory that is zero, and there as long as the program."""
        memory = bytearray(size or 1)
        self.kept.append(memory)
        return PyByteArray_AsString(memory)

    cdef PyObject *borrowed(self, value) except NULL:
        """Keep an object as long as the program; returns it."""
        self.kept.append(value)
        return <PyObject *> value

    cdef const Structure *structure(self, schema) except NULL:
        """Return a structure, made the first time that its schema is seen."""
        cdef Structure *made
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
        made = <Structure *> self.room(sizeof(Structure))
        made.type = <PyTypeObject *> cls
        made.flexible = schema.flexible
        made.unknown_slot = slots[names[len(names) - 1]]
        made.field_count, made.fields = len(schema.inline), self.fields(schema.inline, slots)
        made.tagged_count, made.tagged = len(tagged), self.fields(tagged, slots)
        made.absent_count, made.absent = len(absent), self.fields(absent, slots)
        made.filling_count, made.fillings = len(others), self.fillings(cls, slots, others)
        made.refused_count = len(refused)
        made.refused_tags = <uint64_t *> self.room(len(refused) * sizeof(uint64_t))
        for index, tag in enumerate(refused):
            made.refused_tags[<int> index] = tag
        self.structures[schema.name] = <size_t> made
        return made

    cdef Field *fields(self, schema_fields, slots) except NULL:
        """Return what some fields are."""
        cdef Field *made = <Field *> self.room(len(schema_fields) * sizeof(Field))
        cdef Field *one
        for index, field in enumerate(schema_fields):
            one, kind = &made[<int> index], field.type
            one.code, one.slot = code_of(kind), slots[field.attribute]
            one.nullable, one.compact = field.nullable, getattr(kind, "compact", False)
            one.tag = 0 if field.tag is None else field.tag
            if isinstance(kind, Array):
                one.element = code_of(kind.element)
            inner = struct_of(kind)
            if inner is not None and field.presence is not Presence.ABSENT:
                one.inner = self.structure(inner)
            self.default(one, field)
        return made

    cdef int default(self, Field *made, field) except -1:
        """Say what a value is compared with to know whether it is the default."""
        value, inner = field.default, struct_of(field.type)
        if value is None:
            made.at_default = NULL_VALUE
        elif isinstance(value, bool):
            made.at_default, made.value = SAME, self.borrowed(value)
        elif isinstance(field.type, Array):
            made.at_default = EMPTY_LIST
        elif isinstance(value, bytes):
            made.at_default = EMPTY_BYTES
        elif isinstance(value, float):
            made.at_default, made.real = REAL, value
        elif isinstance(value, int):
            made.at_default, made.number = NUMBER, value
        elif inner is None:
            made.at_default, made.value = EQUAL, self.borrowed(value)
        else:
            fresh = self.classes[inner.name]()
            made.at_default, made.value = EQUAL, self.borrowed(fresh)
            # NaN is unlike itself, and a structure that has it by default unlike its default.
            if not field.is_default(msgspec.to_builtins(fresh, builtin_types=(bytes, uuid.UUID))):
                made.at_default = NEVER
        return 0

    cdef Filling *fillings(self, cls, slots, names) except NULL:
        """Return how the fields of these names are made where they were not on the wire."""
        cdef Filling *made = <Filling *> self.room(len(names) * sizeof(Filling))
        cdef Filling *one
        fresh = cls()
        for index, name in enumerate(names):
            one, value = &made[<int> index], getattr(fresh, name)
            one.slot = slots[name]
            if isinstance(value, list):
                one.how = NEW_LIST
            elif isinstance(value, dict):
                one.how = NEW_DICT
            elif isinstance(value, msgspec.Struct):
                one.how, one.value = CALLED, self.borrowed(type(value))
            else:
                one.how, one.value = SHARED, self.borrowed(value)
        return made


@cython.final
@cython.no_gc_clear  # as its program
cdef class Call:
    def __init__(self, Program program, fallback):
        self.program, self.fallback = program, fallback
