"""The columns of a message's table: the facts of a frame, and the message itself.

The message is in ``body``, one struct with every field of every version (see
`flexwire.columnar.types`). It is one column so that no field's name meets that of a fact:
``select(client_id, body.topics)``. A body that does not decode has the bytes and the reason. One
that breaks its spec, and that Kafka's Java reads nevertheless, has all three.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from flexwire.columnar.objects import TAGGED_FIELD_USES
from flexwire.columnar.record_schema import MOMENT
from flexwire.columnar.types import RAW_TAGGED_FIELDS
from flexwire.schema.catalog import per_catalog
from flexwire.tables.layouts import body_type
from flexwire.tables.record_sizes import type_without_record_bytes

# What a message's row has from its frame as it is.
COPIED = [
    ("connection", pa.string()),
    ("direction", pa.string()),
    ("index", pa.int64()),
    ("time", MOMENT),
    ("size", pa.int64()),
    ("client_id", pa.string()),
    ("api_key", pa.int32()),
    ("api_version", pa.int32()),
    ("correlation_id", pa.int32()),
]
# What a request's row has from its frame, and a response's from its own header.
READ = [
    ("header_version", pa.int32()),
    ("header_unknown_tagged_fields", RAW_TAGGED_FIELDS),
]
# The columns of frames that become rows of a message's table.
NEEDED = pa.schema(
    [
        *COPIED,
        *READ,
        ("body_offset", pa.int32()),
        ("payload", pa.binary()),
        ("is_guarded", pa.bool_()),
    ]
)

# The columns that all message tables share: Spark reads them from all the tables at once.
OUTCOMES = pa.schema(
    [
        ("message", pa.string()),
        *COPIED,
        *READ,
        ("body_version", pa.int32()),
        ("withheld_credentials", pa.int32()),
        ("tagged_fields", TAGGED_FIELD_USES),
        ("error", pa.string()),
        ("bytes", pa.binary()),
    ]
)


@per_catalog
@cache
def table_schema(name: str, release: str | None = None, *, record_bytes: bool = True) -> pa.Schema:
    """The columns of a message's table; without ``record_bytes`` it has but their sizes."""
    body = body_type(name, release)
    if not record_bytes:
        body = type_without_record_bytes(body)
    return OUTCOMES.append(pa.field("body", body))
