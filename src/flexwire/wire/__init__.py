"""How Kafka writes values: the reference executor, and KIP-482's types by their names.

Every other executor is judged by this one, so it is written to be read, not to be fast: a type is
an object with one way to be read and one to be written, a structure is a list of typed fields, and
both say where a value went wrong. `reader` and `writer` move primitives, `types` are the types of
KIP-482 and those before it, `schema` puts them together into structures, `tags` writes their tagged
fields. `limits` and `batch_layout` hold the numbers of the formats for everything above. Which
fields a message has is decided in `flexwire.schema`. The names in ``__all__`` are for schemas
composed by hand.

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
