"""From frames of one message to its table: typed nested columns, or the bytes and the reason.

A table ``messages/<Message>`` has the facts of the frame, and the message itself in ``body``, one
struct with every field of every version (see `flexwire.columnar.types`). It is one column so that
no field's name meets that of a fact: ``select(client_id, body.topics)``.

A message that breaks its spec, and that Kafka's Java reads nevertheless, has its ``body`` and the
bytes and the reason too.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flexwire.capture.columns.withheld import WITHHELD_BYTES, withheld_tagged_fields
from flexwire.columnar.objects import TAGGED_FIELD_USES, TaggedFieldUses, message_column
from flexwire.columnar.record_schema import MOMENT
from flexwire.columnar.types import RAW_TAGGED_FIELDS
from flexwire.columnar.values import raw_tagged_fields
from flexwire.errors import CodecError, FrameError, UnknownMessageError
from flexwire.protocol import carries_credentials, parse_response, withhold
from flexwire.spark.layouts import body_type, class_of
from flexwire.spark.tasks import map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from flexwire.codec import Message

# What a message's row has from its frame as it is.
_COPIED = [
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
_READ = [
    ("header_version", pa.int32()),
    ("header_unknown_tagged_fields", RAW_TAGGED_FIELDS),
]
_NEEDED = [
    *_COPIED,
    *_READ,
    ("body_offset", pa.int32()),
    ("payload", pa.binary()),
    ("is_guarded", pa.bool_()),
]

# The columns that all message tables share: Spark reads them from all the tables at once.
OUTCOMES = pa.schema(
    [
        ("message", pa.string()),
        *_COPIED,
        *_READ,
        ("body_version", pa.int32()),
        ("withheld_credentials", pa.int32()),
        ("tagged_fields", TAGGED_FIELD_USES),
        ("error", pa.string()),
        ("bytes", pa.binary()),
    ]
)


def decode_bodies(
    frames: DataFrame, name: str, *, show_credentials: bool = False, release: str | None = None
) -> DataFrame:
    """The table of one message, from the frames (with payloads) that carry it.

    ``release`` is that of the captured brokers, where it is known.
    """
    needed = frames.select(*[column for column, _ in _NEEDED])
    bodies = _Bodies(name, release, show_credentials)
    return map_in_arrow(needed, bodies.decode, table_schema(name, release))


def table_schema(name: str, release: str | None = None) -> pa.Schema:
    """The columns of a message's table."""
    return OUTCOMES.append(pa.field("body", body_type(name, release)))


@dataclass(slots=True)
class _Body:
    """A frame, and the message in it or the reason why there is none; both if read leniently."""

    frame: dict[str, Any]
    header_version: int | None
    header_unknown_tagged_fields: list[dict[str, Any]] = field(default_factory=list)
    message: Message | None = None
    version: int | None = None
    withheld: int = 0
    error: str | None = None
    bytes: bytes | None = None


@dataclass(frozen=True, slots=True)
class _Bodies:
    """The bodies of one message, read as ``release`` wrote them: a task of Spark."""

    name: str
    release: str | None
    show_credentials: bool

    def decode(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = table_schema(self.name, self.release)
        for batch in batches:
            by_version: dict[int | None, list[_Body]] = defaultdict(list)
            for frame in batch.to_pylist():
                try:
                    body = self._body(frame)
                except Exception as error:
                    where = f"{frame['direction']} {frame['index']} of {frame['connection']}"
                    error.add_note(f"while decoding {self.name}, {where}")
                    raise
                by_version[body.version].append(body)
            # One version at a time, so that a column's presence is asked once and not per message.
            for version, bodies in by_version.items():
                yield self._batch(schema, version, bodies)

    def _body(self, frame: dict[str, Any]) -> _Body:
        body = _Body(frame, frame["header_version"], frame["header_unknown_tagged_fields"] or [])
        try:
            self._read(body)
        except (CodecError, FrameError, UnknownMessageError) as error:
            body.message = body.version = None
            body.error = str(error)
            with suppress(CodecError, FrameError, UnknownMessageError):
                self._read(body, lenient=True)
        # Bytes that do not decode may not be those of this message.
        is_guarded = body.error is not None and frame["is_guarded"]
        if not self.show_credentials:
            _withhold(body, is_secret=carries_credentials(self.name) or is_guarded)
        elif body.error is not None:
            body.bytes = frame["payload"]
        return body

    def _read(self, body: _Body, *, lenient: bool = False) -> None:
        frame = body.frame
        payload, version = frame["payload"], frame["api_version"]
        offset = frame["body_offset"]
        if frame["direction"] == "response":
            response = parse_response(payload, frame["api_key"], version)
            header: Any = response.header
            body.header_version = response.header_version
            body.header_unknown_tagged_fields = raw_tagged_fields(header.unknown_tagged_fields)
            offset, version = response.body_offset, response.body_version
        made = class_of(self.name, version, self.release)
        body.message = made.decode(payload[offset:], version, lenient=lenient)
        body.version = version

    def _batch(
        self, schema: pa.Schema, version: int | None, bodies: Sequence[_Body]
    ) -> pa.RecordBatch:
        kind = schema.field("body").type
        uses = TaggedFieldUses(WITHHELD_BYTES)
        if version is None:
            column: pa.Array = pa.nulls(len(bodies), kind)
        else:
            made = class_of(self.name, version, self.release).definition.schema(version)
            column = message_column(made, kind, [body.message for body in bodies], uses)
        columns: dict[str, Any] = {one: [body.frame[one] for body in bodies] for one, _ in _COPIED}
        columns |= {
            "message": [self.name] * len(bodies),
            "header_version": [body.header_version for body in bodies],
            "header_unknown_tagged_fields": [body.header_unknown_tagged_fields for body in bodies],
            "body_version": [version] * len(bodies),
            "withheld_credentials": [body.withheld for body in bodies],
            "tagged_fields": [uses.of(row) for row in range(len(bodies))],
            "error": [body.error for body in bodies],
            "bytes": [body.bytes for body in bodies],
        }
        arrays = [pa.array(columns[one.name], one.type) for one in OUTCOMES]
        return pa.RecordBatch.from_arrays([*arrays, column], schema=schema)


def _withhold(body: _Body, *, is_secret: bool) -> None:
    if body.message is not None:
        body.withheld = withhold(body.message)
    if is_secret:
        tagged = body.header_unknown_tagged_fields
        body.header_unknown_tagged_fields = withheld_tagged_fields(tagged)
        body.withheld += len(tagged)
    if body.error is not None:
        if is_secret:
            body.withheld = max(1, body.withheld)
        else:
            body.bytes = body.frame["payload"]
