"""The operations of a columnar program, as numbers, and the forms of tagged fields.

The order of the operations matters. Fixed-width operations come before `STRING`, from one byte to
sixteen, so that a kernel can find the width by comparisons. Frequent operations are adjacent, so
that the kernel's switch is compiled to a single table.

Some operations exist only for columns. WIDENED is a number whose column is wider. NUMBERS stands
for adjacent numbers, each as wide as its column. BULK is an array of numbers, and TABLE is an array
of structures that contain only numbers. NEXT continues an array, and MARKER reads whether a
structure is null. TAGS, TAG and TAG_END handle tagged fields. FILL and CHECK handle fields that a
version does not have. VALID is a number with no bytes. JUMP, END and REFUSE do what their names
suggest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.wire.schema import NullableStruct, Schema
from flexwire.wire.tags import TagForm
from flexwire.wire.types import ArrayType, Boolean, Bytes, Float64, Integer, String, Uuid

if TYPE_CHECKING:
    from flexwire.wire.types import Type

(BOOL, INT8, INT16, UINT16, INT32, UINT32, INT64, FLOAT64, UUID, WIDENED) = range(10)
(STRING, BYTES, NUMBERS, BULK, ARRAY, TABLE, NEXT, MARKER, TAGS, TAG, TAG_END) = range(10, 21)
(FILL, CHECK, VALID, JUMP, END, REFUSE) = range(21, 27)
(STRUCT, NULLABLE_STRUCT, TAGGED_STRUCT) = range(27, 30)
OPERATIONS = 30
"""The number of operations."""

# The forms of tagged fields.
SECTION, INTERLEAVED, BUFFER = range(3)
FORMS = {
    TagForm.SECTION: SECTION,
    TagForm.INTERLEAVED: INTERLEAVED,
    TagForm.BUFFER: BUFFER,
}
_INTEGERS = {
    "INT8": INT8,
    "INT16": INT16,
    "UINT16": UINT16,
    "INT32": INT32,
    "UINT32": UINT32,
    "INT64": INT64,
}


def operation_of(kind: Type) -> int:
    """Return the number of the operation for a type."""
    match kind:
        case Integer():
            return _INTEGERS[kind.name]
        case NullableStruct():
            return TAGGED_STRUCT if kind.tagged else NULLABLE_STRUCT
        case Schema():
            return STRUCT
    return _OTHERS[type(kind)]


_OTHERS = {
    Boolean: BOOL,
    Float64: FLOAT64,
    Uuid: UUID,
    String: STRING,
    Bytes: BYTES,
    ArrayType: ARRAY,
}
