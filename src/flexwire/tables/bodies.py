"""Bodies row by row, through objects: the reference of a message's table, and its slow path.

Each body is read strictly, then as Kafka's Java reads it; credentials are withheld from the object.
`flexwire.tables.messages` gives the same rows in columns, and leaves here what columns refuse.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flexwire.capture.columns.withheld import WITHHELD_BYTES, withheld_tagged_fields
from flexwire.columnar.objects import TaggedFieldUses, message_column
from flexwire.columnar.types import raw_tagged_fields
from flexwire.errors import CodecError, FrameError, UnknownMessageError
from flexwire.protocol import carries_credentials, parse_response, withhold
from flexwire.tables.layouts import class_of
from flexwire.tables.message_schema import COPIED, NEEDED, table_schema
from flexwire.tables.schema import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flexwire.codec import Message


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
class Bodies:
    """The bodies of one message, read as ``release`` wrote them."""

    name: str
    release: str | None
    show_credentials: bool

    def decode(self, frames: pa.RecordBatch) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Give the frames' rows, those of one version at a time, and which of the frames they are.

        So a column's presence is asked once and not per message.
        """
        by_version: dict[int | None, list[tuple[int, _Body]]] = defaultdict(list)
        for row, frame in enumerate(frames.select(NEEDED.names).to_pylist()):
            try:
                body = self._body(frame)
            except Exception as error:
                where = f"{frame['direction']} {frame['frame_index']} of {frame['connection']}"
                error.add_note(f"while decoding {self.name}, {where}")
                raise
            by_version[body.version].append((row, body))
        schema = table_schema(self.name, self.release)
        for version, found in by_version.items():
            bodies = [body for _, body in found]
            yield [row for row, _ in found], self._batch(schema, version, bodies)

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
        columns: dict[str, Any] = {one: [body.frame[one] for body in bodies] for one in COPIED}
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
