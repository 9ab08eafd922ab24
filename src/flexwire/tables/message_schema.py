"""The columns of a message's table: the facts of a frame, and the message itself.

The message is in ``body``, one struct with every field of every version (see
`flexwire.columnar.types`). It is one column so that no field's name meets that of a fact:
``select(client_id, body.topics)``. A body that does not decode has the bytes and the reason. One
that breaks its spec, and that Kafka's Java reads nevertheless, has all three.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from flexwire.schema.catalog import per_catalog
from flexwire.tables.layouts import body_type
from flexwire.tables.record_sizes import type_without_record_bytes
from flexwire.tables.schema import OUTCOMES

# What a message's row has from its frame as it is.
COPIED = (
    "connection",
    "direction",
    "frame_index",
    "time",
    "size",
    "client_id",
    "api_key",
    "api_version",
    "correlation_id",
)
# What a request's row has from its frame, and a response's from its own header.
READ = ("header_version", "header_unknown_tagged_fields")
# The columns of frames that become rows of a message's table.
NEEDED = pa.schema(
    [
        *map(OUTCOMES.field, (*COPIED, *READ)),
        ("body_offset", pa.int32()),
        ("payload", pa.binary()),
        ("is_guarded", pa.bool_()),
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
