"""Collect facts about the whole capture from bodies: client software and topic names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.pairing.pairing import Hindsight, build_paired
from flexwire.capture.reassembly.frames import gather_bytes
from flexwire.schema.catalog import catalog
from flexwire.tables.messages import message_rows
from flexwire.tables.spec_places import TOPIC_NAMES_MESSAGE
from flexwire.wire.limits import INT32_MAX
from flexwire.wire.segment_layout import CORRELATION_ID_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.capture.pairing.pairing import HeaderColumns
    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.tables.frames import Software


SOFTWARE_MESSAGE = "ApiVersionsRequest"
"""The message in which a client names its software, since version 3 (KIP-511)."""

_UINT16 = 0xFFFF

TopicName = tuple[str, str]
"""The id and the name of a topic."""


def decode_bodies(
    frames: FrameColumns, headers: HeaderColumns, name: str, release: str | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that frames add to one message's table."""
    entry = catalog().entry(name)
    rows = np.flatnonzero(headers.api_key == entry.api_key)
    if not len(rows):
        return
    batch = build_paired(frames.take(rows), headers.take(rows), Hindsight())
    carried = batch.filter(pc.equal(batch["body"], name))
    if len(carried):
        yield message_rows(carried, name, release=release)


def find_software(rows: pa.RecordBatch) -> Iterator[tuple[str, int, Software]]:
    """Yield the connection, the frame's index and the software for each request with software."""
    named = pc.struct_field(rows["body"], "client_software_name")
    naming = rows.filter(pc.fill_null(pc.not_equal(named, ""), False))
    for connection, index, body in zip(
        *(naming[name].to_pylist() for name in ("connection", "frame_index", "body")), strict=True
    ):
        version = body["client_software_version"] or None
        yield connection, index, (body["client_software_name"], version)


def find_topic_names(
    frames: FrameColumns,
    headers: HeaderColumns,
    release: str | None,
    wanted: NumpyArray | None = None,
) -> Iterator[tuple[int, frozenset[TopicName]]]:
    """Yield the row of each response that names topics, and the topics.

    If ``wanted`` rows are given, only these are read. A response with the same bytes as an earlier
    one is not decoded again: clients repeat the same request, and these responses make up a large
    share of a broker's traffic.
    """
    api_key = catalog().entry(TOPIC_NAMES_MESSAGE).api_key
    rows = np.flatnonzero(
        (headers.api_key == api_key) & frames.is_response & (True if wanted is None else wanted)
    )
    if not len(rows):
        return
    _, first, groups = np.unique(
        _alike(frames, headers, rows), return_index=True, return_inverse=True
    )
    read = rows[first]
    representatives = frames.take(read)
    names = [representatives.connections[place] for place in representatives.connection.tolist()]
    indexes = zip(names, representatives.index.tolist(), strict=True)
    group_of = {connection_and_index: group for group, connection_and_index in enumerate(indexes)}
    topics_of: dict[int, frozenset[TopicName]] = {}
    for decoded in decode_bodies(representatives, headers.take(read), TOPIC_NAMES_MESSAGE, release):
        for connection, index, topics in _topics_in(decoded):
            topics_of[group_of[connection, index]] = topics
    for row, group in zip(rows.tolist(), groups.tolist(), strict=True):
        if group in topics_of:
            yield row, topics_of[group]


def _alike(frames: FrameColumns, headers: HeaderColumns, rows: NumpyArray) -> NumpyArray:
    """Return a number for each row.

    Rows with the same number have bodies that are decoded in the same way.
    """
    begins = np.minimum(frames.start[rows] + CORRELATION_ID_SIZE, frames.stop[rows])
    sizes = frames.stop[rows] - begins
    different = -1 - np.arange(len(rows))
    if sizes.sum() > INT32_MAX:
        return different
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    data = gather_bytes(frames.data, begins, offsets)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    texts = pa.Array.from_buffers(pa.binary(), len(rows), buffers)
    codes = np.asarray(texts.dictionary_encode().indices).astype(np.int64)
    versions = headers.api_version[rows].astype(np.int64) & _UINT16
    alike = codes << 32 | versions
    # The body of a row with an odd header or an error may be decoded differently, so such a row is
    # never the same as another row.
    plain = ~np.isin(rows, [*headers.odd, *frames.error])
    return np.where(plain, alike, different)


def _topics_in(rows: pa.RecordBatch) -> Iterator[tuple[str, int, frozenset[TopicName]]]:
    """Yield the connection, the frame's index and the topics of each response that names topics."""
    lists = pc.struct_field(rows["body"], "topics")
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_pylist()
    topics = pc.list_flatten(lists)
    ids = pc.struct_field(topics, "topic_id").to_pylist()
    names = pc.struct_field(topics, "name").to_pylist()
    at = 0
    for connection, index, size in zip(
        rows["connection"].to_pylist(), rows["frame_index"].to_pylist(), sizes, strict=True
    ):
        pairs = zip(ids[at : at + size], names[at : at + size], strict=True)
        at += size
        named = frozenset(
            (topic_id, name)
            for topic_id, name in pairs
            if topic_id is not None and name is not None
        )
        if named:
            yield connection, index, named
