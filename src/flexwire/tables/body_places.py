"""Where the bodies of frames begin: after a request's header, or after a response's plain one.

A response says itself where its body begins. Its header is plain if its tag section is empty, or it
has none: then it has one length in all responses of a version, and no row is looked at alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.columns.gathering import gathered
from flexwire.codec import message
from flexwire.columnar.types import RAW_TAGGED_FIELDS
from flexwire.errors import FlexwireError
from flexwire.protocol import parse_response, response_header_version
from flexwire.schema.catalog import per_catalog
from flexwire.wire.types import Integer

if TYPE_CHECKING:
    Words = np.ndarray[Any, Any]


class Carried:
    """The frames of a batch that stand in some of its rows, ascending; without these, all.

    ``facts`` are their columns but for the payloads, which stay where they are: ``begins`` and
    ``ends`` say where in ``data`` each is.
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
        """Give some of them with their payloads."""
        rows = some if self._rows is None else self._rows[some]
        return self._frames if len(rows) == len(self._frames) else self._frames.take(pa.array(rows))


class BodyPlaces(NamedTuple):
    """Where each frame's body begins in its payload, and what its header says.

    ``is_sure`` says for which frames: the others have a header that only `parse_response` reads, or
    lack what says where it ends.
    """

    is_sure: Words
    starts: Words
    header_versions: pa.Int32Array
    unknown_tagged_fields: pa.ListArray


def body_places(carried: Carried) -> BodyPlaces:
    """Look for the bodies of frames, which have the columns of `NEEDED`."""
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
    # A frame of a response says nothing of its header, and a null is a list of nothing.
    has_tags = np.diff(np.asarray(tagged.offsets)) > 0
    is_sure &= ~(has_tags & (is_response | ~_valid(tagged)))
    return BodyPlaces(is_sure, starts, header_versions, _without_nulls(tagged))


def bodies(carried: Carried, starts: Words, rows: Words) -> pa.BinaryArray:
    """Give the bodies of some frames by where each begins in its payload."""
    begins = carried.begins[rows] + starts[rows]
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum(carried.ends[rows] - begins, out=offsets[1:])
    data = gathered(np.frombuffer(carried.data or b"", np.uint8), begins, offsets)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(rows), buffers)


class _Header(NamedTuple):
    """A response header without tagged fields; one of no size is not to be relied on."""

    size: int
    version: int
    has_tag_section: bool


_UNSURE = _Header(0, 0, has_tag_section=False)
_INT32_BITS = 32


@per_catalog
@lru_cache(maxsize=4096)
def _plain_header(api_key: int, version: int) -> _Header:
    """Give the header of responses; unsure where it has no one length, or none has the api key."""
    made = message("ResponseHeader")
    try:
        plain = made().encode(response_header_version(api_key, version))
        read = parse_response(plain, api_key, version)
    except FlexwireError:
        return _UNSURE
    schema = made.definition.schema(read.header_version)
    if not all(isinstance(one.type, Integer) for one in schema.inline):
        return _UNSURE
    return _Header(read.body_offset, read.header_version, schema.flexible)


def _responses(carried: Carried, sizes: Words) -> tuple[Words, Words, Words]:
    """Give whether each frame begins as a response with a plain header, its size and version."""
    headers, which = _headers(carried.facts)
    width, number, has_tags = (np.array(one)[which] for one in zip(*headers, strict=True))
    is_plain = (width > 0) & (width <= sizes)
    # The last byte says how many tagged fields there are.
    last = np.flatnonzero(is_plain & has_tags)
    data = np.frombuffer(carried.data or b"", np.uint8)
    is_plain[last] = data[carried.begins[last] + width[last] - 1] == 0
    return is_plain, width, number.astype(np.int32)


def _headers(frames: pa.RecordBatch) -> tuple[list[_Header], Words]:
    """Give the header of each api key and version, and which of them each frame's is."""
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
