"""Build the rows of a message's table from the frames that contain the message.

Bodies are cut out of the payloads and decoded as one column. The kernels refuse damaged and lenient
bodies, unusual headers, and every message that contains credentials. `MessageBodies` processes
these rows one by one. Finally, all rows are put in order.

`MessageBodies` reads each body strictly or, if that fails, as Kafka's Java code does. It also
removes credentials from the object.

A response's header determines where its body begins. The header is plain if it has no tag section,
or an empty one. All plain headers of a version have the same length, so rows need no separate
check.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.pairing.state import withhold_tagged_fields
from flexwire.capture.reassembly.frames import gather_bytes
from flexwire.codec import message
from flexwire.columnar import decode_messages
from flexwire.columnar.objects import message_column
from flexwire.columnar.types import RAW_TAGGED_FIELDS, raw_tagged_fields
from flexwire.errors import CodecError, FlexwireError, FrameError, UnknownMessageError
from flexwire.kernels import load_kernel
from flexwire.protocol import carries_credentials, parse_response, response_header_version, withhold
from flexwire.schema.catalog import per_catalog
from flexwire.tables.message_schema import (
    COPIED,
    NEEDED,
    READ,
    class_of,
    conform,
    rows_of_metadata,
    table_schema,
)
from flexwire.tables.schema import OUTCOMES, without_record_bytes
from flexwire.tables.tagged_fields import TAGGED_FIELD_USES, tagged_field_uses
from flexwire.wire.types import Integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flexwire.codec import Message

    Words = np.ndarray[Any, Any]


class CarrierFrames:
    """The frames in some rows of a batch, in ascending order, or in all rows if none are given.

    ``facts`` contains the frames' columns without the payloads. The payloads are not copied:
    ``begins`` and ``ends`` are their positions in ``data``.
    """

    def __init__(self, frames: pa.RecordBatch, rows: Words | None = None) -> None:
        self._frames = frames
        self._rows = None if rows is None or len(rows) == len(frames) else rows
        payload = frames["payload"]
        facts = frames.select([name for name in frames.schema.names if name != "payload"])
        offsets, valid = _offsets(payload), _valid(payload)
        self.begins, self.ends, self.is_valid = offsets[:-1], offsets[1:], valid
        if self._rows is not None:
            facts = facts.take(pa.array(self._rows))
            chosen = self.begins[rows], self.ends[rows], valid[rows]
            self.begins, self.ends, self.is_valid = chosen
        self.facts = facts
        self.data = payload.buffers()[2]

    def __len__(self) -> int:
        return len(self.facts)

    def frames(self, some: Words) -> pa.RecordBatch:
        """Return some of the frames with their payloads."""
        rows = some if self._rows is None else self._rows[some]
        return self._frames if len(rows) == len(self._frames) else self._frames.take(pa.array(rows))


class BodyPlaces(NamedTuple):
    """The start of each frame's body in the payload, and the facts in the frame's header.

    ``is_sure`` marks the frames for which these facts are known. For other frames, either only
    `parse_response` can read the header, or the end of the header is unknown.
    """

    is_sure: Words
    starts: Words
    header_versions: pa.Int32Array
    unknown_tagged_fields: pa.ListArray


def body_places(carried: CarrierFrames) -> BodyPlaces:
    """Find the bodies of frames that have the columns of `NEEDED`."""
    frames = carried.facts
    direction = frames["direction"]
    sizes = carried.ends - carried.begins
    starts = np.asarray(frames["body_offset"].fill_null(-1))
    header_versions = frames["header_version"]
    is_sure = carried.is_valid & _valid(direction) & _valid(frames["api_version"])
    is_response = np.asarray(pc.equal(direction, "response").fill_null(False))
    if is_response.any():
        sure, at, versions = _responses(carried, sizes)
        is_sure &= sure | ~is_response
        starts = np.where(is_response, at, starts)
        answered = pa.array(is_response)
        header_versions = pc.if_else(answered, pa.array(versions), header_versions)
    is_sure &= (starts >= 0) & (starts <= sizes)
    tagged = frames["header_unknown_tagged_fields"]
    # A response's frame contains no facts about its header. Null counts as an empty list.
    has_tags = np.diff(np.asarray(tagged.offsets)) > 0
    is_sure &= ~(has_tags & (is_response | ~_valid(tagged)))
    return BodyPlaces(is_sure, starts, header_versions, _without_nulls(tagged))


def bodies(carried: CarrierFrames, starts: Words, rows: Words) -> pa.BinaryArray:
    """Return the bodies of some frames, which begin at ``starts`` in their payloads."""
    begins = carried.begins[rows] + starts[rows]
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum(carried.ends[rows] - begins, out=offsets[1:])
    data = gather_bytes(np.frombuffer(carried.data or b"", np.uint8), begins, offsets)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(rows), buffers)


class _ResponseHeader(NamedTuple):
    """A response header without tagged fields. A size of 0 means that the size is unknown."""

    size: int
    version: int
    has_tag_section: bool


_UNSURE = _ResponseHeader(0, 0, has_tag_section=False)
_INT32_BITS = 32


@per_catalog
@lru_cache(maxsize=4096)
def _plain_header(api_key: int, version: int) -> _ResponseHeader:
    """Return the header of responses. The size is 0 if it varies, or if no API has the key."""
    header_class = message("ResponseHeader")
    try:
        plain = header_class().encode(response_header_version(api_key, version))
        read = parse_response(plain, api_key, version)
    except FlexwireError:
        return _UNSURE
    schema = header_class.definition.schema(read.header_version)
    if not all(isinstance(inline_field.type, Integer) for inline_field in schema.inline):
        return _UNSURE
    return _ResponseHeader(read.body_offset, read.header_version, schema.flexible)


def _responses(carried: CarrierFrames, sizes: Words) -> tuple[Words, Words, Words]:
    """Return whether each frame begins with a plain response header, its size, and its version."""
    headers, which = _headers(carried.facts)
    width, number, has_tags = (np.array(column)[which] for column in zip(*headers, strict=True))
    is_plain = (width > 0) & (width <= sizes)
    # The last byte is the number of tagged fields.
    last = np.flatnonzero(is_plain & has_tags)
    data = np.frombuffer(carried.data or b"", np.uint8)
    is_plain[last] = data[carried.begins[last] + width[last] - 1] == 0
    return is_plain, width, number.astype(np.int32)


def _headers(frames: pa.RecordBatch) -> tuple[list[_ResponseHeader], Words]:
    """Return the header of each api key and version, and the number of each frame's header."""
    keys = np.asarray(frames["api_key"].fill_null(-1)).astype(np.int64)
    versions = np.asarray(frames["api_version"].fill_null(-1))
    both = pa.array(keys << _INT32_BITS | versions.view(np.uint32)).dictionary_encode()
    each = np.asarray(both.dictionary)
    pairs = zip((each >> _INT32_BITS).tolist(), each.astype(np.int32).tolist(), strict=True)
    return [_plain_header(key, version) for key, version in pairs], np.asarray(both.indices)


def _offsets(array: pa.Array) -> Words:
    raw = array.buffers()[1]
    if not len(array):
        return np.zeros(1, np.int32)
    return np.frombuffer(raw, np.int32, len(array) + 1, 4 * array.offset)


def _valid(array: pa.Array) -> Words:
    return np.asarray(array.is_valid())


def _without_nulls(tagged: pa.ListArray) -> pa.ListArray:
    if not tagged.null_count:
        return tagged
    buffers = [None, tagged.buffers()[1]]
    return pa.Array.from_buffers(
        RAW_TAGGED_FIELDS, len(tagged), buffers, 0, tagged.offset, children=[tagged.values]
    )


@dataclass(slots=True)
class _FrameBody:
    """A frame with its message, an error, or (after lenient reading) both."""

    frame: dict[str, Any]
    header_version: int | None
    header_unknown_tagged_fields: list[dict[str, Any]] = field(default_factory=list)
    message: Message | None = None
    version: int | None = None
    withheld: int = 0
    error: str | None = None
    bytes: bytes | None = None


@dataclass(frozen=True, slots=True)
class MessageBodies:
    """The bodies of one message, read as ``release`` wrote them."""

    name: str
    release: str | None
    show_credentials: bool

    def decode(self, frames: pa.RecordBatch) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Yield the rows of the frames, one version at a time, together with the frame numbers.

        Whether a column is present is thus decided once for all messages.
        """
        by_version: dict[int | None, list[tuple[int, _FrameBody]]] = defaultdict(list)
        for row, frame in enumerate(frames.select(NEEDED.names).to_pylist()):
            try:
                body = self._body(frame)
            except Exception as error:
                where = f"{frame['direction']} {frame['frame_index']} of {frame['connection']}"
                error.add_note(f"while decoding {self.name}, {where}")
                raise
            by_version[body.version].append((row, body))
        schema = table_schema(self.name, self.release)
        for version, numbered in by_version.items():
            bodies = [body for _, body in numbered]
            yield [row for row, _ in numbered], self._batch(schema, version, bodies)

    def _body(self, frame: dict[str, Any]) -> _FrameBody:
        body = _FrameBody(
            frame, frame["header_version"], frame["header_unknown_tagged_fields"] or []
        )
        try:
            self._read(body)
        except (CodecError, FrameError, UnknownMessageError) as error:
            body.message = body.version = None
            body.error = str(error)
            with suppress(CodecError, FrameError, UnknownMessageError):
                self._read(body, lenient=True)
        # Bytes that cannot be decoded may belong to a different message.
        is_guarded = body.error is not None and frame["is_guarded"]
        if not self.show_credentials:
            _withhold(body, is_secret=carries_credentials(self.name) or is_guarded)
        elif body.error is not None:
            body.bytes = frame["payload"]
        return body

    def _read(self, body: _FrameBody, *, lenient: bool = False) -> None:
        frame = body.frame
        payload, version = frame["payload"], frame["api_version"]
        offset = frame["body_offset"]
        if frame["direction"] == "response":
            response = parse_response(payload, frame["api_key"], version)
            header: Any = response.header
            body.header_version = response.header_version
            body.header_unknown_tagged_fields = raw_tagged_fields(header.unknown_tagged_fields)
            offset, version = response.body_offset, response.body_version
        message_class = class_of(self.name, version, self.release)
        body.message = message_class.decode(payload[offset:], version, lenient=lenient)
        body.version = version

    def _batch(
        self, schema: pa.Schema, version: int | None, bodies: Sequence[_FrameBody]
    ) -> pa.RecordBatch:
        kind = schema.field("body").type
        if version is None:
            column: pa.Array = pa.nulls(len(bodies), kind)
            tagged = pa.array([[]] * len(bodies), TAGGED_FIELD_USES)
        else:
            message_class = class_of(self.name, version, self.release)
            messages = [body.message for body in bodies]
            column = message_column(message_class.definition.schema(version), kind, messages)
            tagged = tagged_field_uses(
                column, np.full(len(bodies), version), {version: message_class}
            )
        columns: dict[str, Any] = {name: [body.frame[name] for body in bodies] for name in COPIED}
        columns |= {
            "message": [self.name] * len(bodies),
            "header_version": [body.header_version for body in bodies],
            "header_unknown_tagged_fields": [body.header_unknown_tagged_fields for body in bodies],
            "body_version": [version] * len(bodies),
            "withheld_credentials": [body.withheld for body in bodies],
            "error": [body.error for body in bodies],
            "bytes": [body.bytes for body in bodies],
        }
        arrays = [
            tagged
            if column.name == "tagged_fields"
            else pa.array(columns[column.name], column.type)
            for column in OUTCOMES
        ]
        return pa.RecordBatch.from_arrays([*arrays, column], schema=schema)


def _withhold(body: _FrameBody, *, is_secret: bool) -> None:
    if body.message is not None:
        body.withheld = withhold(body.message)
    if is_secret:
        tagged = body.header_unknown_tagged_fields
        body.header_unknown_tagged_fields = withhold_tagged_fields(tagged)
        body.withheld += len(tagged)
    if body.error is not None:
        if is_secret:
            body.withheld = max(1, body.withheld)
        else:
            body.bytes = body.frame["payload"]


# Up to this many runs of adjacent rows, copying whole runs is faster than copying single rows.
_RUNS = 16

__all__ = ["message_rows", "table_schema", "without_record_bytes"]


def message_rows(
    frames: pa.RecordBatch,
    name: str,
    *,
    release: str | None = None,
    show_credentials: bool = False,
    record_bytes: bool = True,
    rows: Words | None = None,
) -> pa.RecordBatch:
    """Return the rows of a message's table, one for each frame with the message, in their order.

    The rows are for all of ``frames``, or for those in ``rows``, in ascending order. ``frames``
    contains at least the columns of `NEEDED`. ``release`` is the release of the captured brokers,
    if known. Without ``record_bytes``, the bytes of records are replaced with their sizes.
    """
    carried = CarrierFrames(frames.select(NEEDED.names), rows)
    parts = _RowParts(len(carried))
    if load_kernel("columns_read") is not None and (
        show_credentials or not carries_credentials(name)
    ):
        _put_columns(parts, carried, name, release, show_credentials=show_credentials)
    left = parts.missing()
    if len(left):
        some = carried.frames(left)
        for which, batch in MessageBodies(name, release, show_credentials).decode(some):
            parts.put(left[which], batch)
    all_rows = parts.joined(table_schema(name, release))
    return all_rows if record_bytes else without_record_bytes(all_rows)


class _RowParts:
    """Rows that are added in parts, in any order."""

    def __init__(self, rows: int) -> None:
        self._places = np.full(rows, -1)
        self._batches: list[pa.RecordBatch] = []
        self._starts: list[int] = []
        self._put = 0

    def put(self, rows: Words, batch: pa.RecordBatch, is_right: Words | None = None) -> None:
        """Add a batch of these rows, except those for which ``is_right`` is false."""
        places = np.arange(self._put, self._put + len(rows))
        self._places[rows] = places if is_right is None else np.where(is_right, places, -1)
        self._batches.append(batch)
        self._starts.append(self._put)
        self._put += len(rows)

    def missing(self) -> Words:
        """Return the rows that are still missing."""
        return np.flatnonzero(self._places < 0)

    def joined(self, schema: pa.Schema) -> pa.RecordBatch:
        """Return all rows in order."""
        if not self._batches:
            return pa.RecordBatch.from_pylist([], schema)
        runs = self._runs()
        if runs == [0] and self._put == len(self._places):
            return self._batches[0]
        if len(runs) <= _RUNS:
            ends = [*runs[1:], len(self._places)]
            return pa.concat_batches(map(self._run, runs, ends))
        return pa.concat_batches(self._batches).take(pa.array(self._places))

    def _runs(self) -> list[int]:
        """Return where each run of rows that are adjacent in a part begins."""
        begins = np.diff(self._places, prepend=-2) != 1
        begins |= np.isin(self._places, self._starts)
        return np.flatnonzero(begins).tolist()

    def _run(self, begin: int, end: int) -> pa.RecordBatch:
        place = self._places[begin]
        part = bisect_right(self._starts, place) - 1
        return self._batches[part].slice(place - self._starts[part], end - begin)


def _put_columns(
    parts: _RowParts,
    carried: CarrierFrames,
    name: str,
    release: str | None,
    *,
    show_credentials: bool,
) -> None:
    """Put the rows that the kernels decode, one layout at a time."""
    places = body_places(carried)
    versions = np.asarray(carried.facts["api_version"].fill_null(-1))
    by_class: dict[type[Message], dict[int, type[Message]]] = {}
    for version in pc.unique(pa.array(versions[places.is_sure])).to_pylist():
        message_class = class_of(name, version, release)
        with suppress(UnknownMessageError):
            message_class.definition.schema(version)
            by_class.setdefault(message_class, {})[version] = message_class
    for layouts in by_class.values():
        rows = np.flatnonzero(places.is_sure & np.isin(versions, [*layouts]))
        batch = _batch(carried, places, rows, layouts, table_schema(name, release))
        is_right = np.asarray(batch["body"].is_valid())
        if not show_credentials:
            is_right = is_right & ~rows_of_metadata(name, batch["body"])
        parts.put(rows, batch, is_right)


def _batch(
    carried: CarrierFrames,
    places: BodyPlaces,
    rows: Words,
    layouts: dict[int, type[Message]],
    schema: pa.Schema,
) -> pa.RecordBatch:
    """Return the rows of frames whose versions one class reads. A refused body becomes null."""
    (message_class,) = set(layouts.values())
    frames = carried.facts
    versions = np.asarray(frames["api_version"].fill_null(-1))[rows]
    data = bodies(carried, places.starts, rows)
    decoded = decode_messages(message_class, data, pa.array(versions), mode="PERMISSIVE").values
    body = conform(decoded, schema.field("body").type)
    copied = frames.select(COPIED)
    read = pa.RecordBatch.from_arrays([places.header_versions, places.unknown_tagged_fields], READ)
    if len(rows) < len(frames):
        copied, read = copied.take(pa.array(rows)), read.take(pa.array(rows))
    columns = {
        **dict(zip(copied.schema.names, copied.columns, strict=True)),
        **dict(zip(read.schema.names, read.columns, strict=True)),
        "message": pa.repeat(message_class.entry.name, len(rows)),
        "body_version": pa.array(versions, pa.int32()),
        "withheld_credentials": pa.repeat(pa.scalar(0, pa.int32()), len(rows)),
        "tagged_fields": tagged_field_uses(body, versions, layouts),
        "error": pa.nulls(len(rows), pa.string()),
        "bytes": pa.nulls(len(rows), pa.binary()),
    }
    arrays = [columns[column.name] for column in OUTCOMES]
    return pa.RecordBatch.from_arrays([*arrays, body], schema=schema)
