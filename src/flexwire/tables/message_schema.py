"""The columns of a message's table: the facts about a frame, and the message itself.

The message is in ``body``, one struct that contains every field of every version (see
`flexwire.columnar.types`). A single column keeps the names of the message's fields separate from
those of the facts: ``select(client_id, body.topics)``. If a body cannot be decoded, the row
contains the bytes and the reason. If a body violates its spec but Kafka's Java code reads it, the
row contains the body, the bytes and the reason.

The layout of a few versions changed without a new version number, mostly while the versions were in
preview. If the user specifies the release of the captured brokers, bytes are read with the layout
of that release.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.codec import message
from flexwire.columnar.types import merge, message_type
from flexwire.protocol.credentials import METADATA_CARRIER, METADATA_TOPIC, METADATA_TOPIC_ID
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.pairs import same_bytes
from flexwire.schema.resolve import resolve
from flexwire.tables.schema import OUTCOMES, type_without_record_bytes
from flexwire.versions import Versions
from flexwire.wire.varint import uuid_text

if TYPE_CHECKING:
    from flexwire.codec import Message


@per_catalog
@cache
def class_of(name: str, version: int, release: str | None) -> type[Message]:
    """Return the class that reads a version as ``release`` (or, if None, the newest) wrote it.

    If the layouts are the same, the result is the newest class, with its names.
    """
    newest = message(name)
    entry = catalog().entry(name)
    if release is None or version not in entry.releases.get(release, Versions.NONE):
        return newest
    spec = entry.spec(version, release)
    if same_bytes(resolve(spec, version), newest.definition.schema(version)):
        return newest
    return message(name, release)


@per_catalog
@cache
def body_type(name: str, release: str | None) -> pa.StructType:
    """Return the type of a message's column: every field of all versions and of ``release``."""
    newest, own = message_type(name), message(name)
    for version in catalog().entry(name).releases.get(release or "", ()):
        message_class = class_of(name, version, release)
        if message_class is not own:
            return merge(name, [newest, message_type(message_class)])
    return newest


def conform(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column as a wider type from `merge`, which contains all fields of the column.

    Missing fields become null, and numbers become wider. Columns that do not change are not copied.
    """
    if array.type == kind:
        return array
    if pa.types.is_struct(kind):
        names = [field.name for field in array.type]
        fields = [
            conform(array.field(names.index(field.name)), field.type)
            if field.name in names
            else pa.nulls(len(array), field.type)
            for field in kind
        ]
        nulls = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=nulls)
    if pa.types.is_list(kind):
        children = [conform(array.values, kind.value_type)]
        buffers = array.buffers()[:2]
        return pa.Array.from_buffers(
            kind, len(array), buffers, array.null_count, array.offset, children
        )
    return array.cast(kind)


def rows_of_metadata(message_name: str, column: pa.StructArray) -> np.ndarray[Any, Any]:
    """Return whether each message in a column contains records of the cluster's metadata."""
    is_metadata = np.zeros(len(column), bool)
    carrier, topics, name, topic_id = METADATA_CARRIER
    if message_name == carrier:
        lists = column.field(topics)
        offsets = np.asarray(lists.offsets)
        each = lists.values.slice(offsets[0], offsets[-1] - offsets[0])
        by_name = pc.equal(each.field(name), METADATA_TOPIC)
        by_id = pc.equal(each.field(topic_id), uuid_text(METADATA_TOPIC_ID))
        brings = pc.or_kleene(by_name, by_id)
        if brings.true_count:
            rows = np.repeat(np.arange(len(column)), np.diff(offsets))
            is_metadata[rows[np.asarray(brings.fill_null(False))]] = True
    return is_metadata


# The columns that a message's row copies from its frame.
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
# The columns that a request takes from its frame, and a response from its own header.
READ = ("header_version", "header_unknown_tagged_fields")
# The columns of frames that a message's table needs.
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
    """Return the columns of a message's table. Without ``record_bytes``, records become sizes."""
    body = body_type(name, release)
    if not record_bytes:
        body = type_without_record_bytes(body)
    return OUTCOMES.append(pa.field("body", body))
