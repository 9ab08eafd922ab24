"""The wire format of values: the reference executor, and the types of KIP-482 by name.

The other executors are tested against the reference executor, which is therefore written for
readability and not for speed. A type is an object that reads and writes one kind of value. A
structure is a list of typed fields. The error message about an invalid value contains the place of
the value. `cursor` reads and writes primitives, `types` contains the types of KIP-482 and the older
types, `schema` combines types into structures, and `tags` writes their tagged fields. `limits` and
the files named `…_layout` define the constants of the formats, which all other code uses.
`flexwire.schema` decides which fields a message has. The names in ``__all__`` are for schemas that
are composed by hand.

Laws of this package:

- The wire types raise all errors of decoding and encoding. Reason: the other executors refuse input
  without stating a reason. If each executor raised its own errors, the errors would differ. Test:
  `tests/codec/test_executors.py`.
- The constants of the formats are defined here, once for all Python code. Reason: two copies would
  soon differ. Test: `tests/wire/test_limits.py`.
- A length is compared with the remaining bytes before memory is allocated. Reason: an invalid
  length could use all memory. Test: `tests/codec/test_boundaries.py`.

>>> from flexwire.wire import COMPACT_NULLABLE_STRING, INT32, Field, Schema
>>> header = Schema(
...     Field("correlation_id", INT32),
...     Field("client_id", COMPACT_NULLABLE_STRING),
...     optional_fields={},
... )
>>> header.encode({"correlation_id": 7, "client_id": None}).hex(" ")
'00 00 00 07 00 00'
"""

from flexwire.wire.composition import (
    CompactArray,
    CompactBytes,
    CompactNullableBytes,
    CompactNullableString,
    CompactString,
    TaggedFields,
    TaggedFieldsSection,
    TagSection,
)
from flexwire.wire.encoding import Encoding
from flexwire.wire.schema import Field, Schema
from flexwire.wire.tags import TagForm
from flexwire.wire.types import (
    BOOLEAN,
    BYTES,
    COMPACT_BYTES,
    COMPACT_NULLABLE_BYTES,
    COMPACT_NULLABLE_RECORDS,
    COMPACT_NULLABLE_STRING,
    COMPACT_RECORDS,
    COMPACT_STRING,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    NULLABLE_BYTES,
    NULLABLE_RECORDS,
    NULLABLE_STRING,
    RECORDS,
    STRING,
    UINT16,
    UINT32,
    UUID,
    ArrayOf,
    CompactArrayOf,
    Type,
)

__all__ = [
    "BOOLEAN",
    "BYTES",
    "COMPACT_BYTES",
    "COMPACT_NULLABLE_BYTES",
    "COMPACT_NULLABLE_RECORDS",
    "COMPACT_NULLABLE_STRING",
    "COMPACT_RECORDS",
    "COMPACT_STRING",
    "FLOAT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "NULLABLE_BYTES",
    "NULLABLE_RECORDS",
    "NULLABLE_STRING",
    "RECORDS",
    "STRING",
    "UINT16",
    "UINT32",
    "UUID",
    "ArrayOf",
    "CompactArray",
    "CompactArrayOf",
    "CompactBytes",
    "CompactNullableBytes",
    "CompactNullableString",
    "CompactString",
    "Encoding",
    "Field",
    "Schema",
    "TagForm",
    "TagSection",
    "TaggedFields",
    "TaggedFieldsSection",
    "Type",
]
