"""The rows of the tables of frames, connections and packets.

``outcome`` is "decoded", "lenient" (the body violates its spec, as ``error`` explains, but Kafka's
Java code reads it), "failed", or the kind of frame if the frame contains no body to decode.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.pairing.state import FAILED
from flexwire.columnar.record_columns import SizeHints
from flexwire.records.inflation import INFLATION, Inflation
from flexwire.tables.messages import message_rows, without_record_bytes
from flexwire.tables.records import record_runs
from flexwire.tables.row_filter import EVERYTHING, FRAMES, MESSAGES, RECORDS, RowFilter
from flexwire.tables.schema import (
    CONNECTIONS_TABLE,
    FRAMES_TABLE,
    GROWN_TABLES,
    PACKETS_TABLE,
    TOPIC_NAMES_TABLE,
)
from flexwire.tables.spec_places import RECORDS_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from flexwire.capture.reassembly.connections import CapturedConnection
    from flexwire.capture.reassembly.packet_scan import FileNotes
    from flexwire.tables.records import Rows

    Array = np.ndarray[Any, np.dtype[Any]]
    Software = tuple[str | None, str | None]
    Words = np.ndarray[Any, Any]


DECODED, LENIENT = "decoded", "lenient"

OF_BODY = (
    "header_version",
    "header_unknown_tagged_fields",
    "body_version",
    "withheld_credentials",
    "error",
    "bytes",
)
"""The columns that the message tables supply to the table of frames."""
BODY_OUTCOMES = pa.schema(
    [("row", pa.int32()), *((name, FRAMES_TABLE.field(name).type) for name in OF_BODY)]
)
"""The message tables' results for bodies, with the row number of each paired frame."""

_CONNECTION = re.compile(r"(.*)>(.*?)(#[0-9]+)?")
_API_WORDS = "(Request|Response)$"


TOPIC_NAMES = GROWN_TABLES[0].place
"""The path of the table of topic names."""
CLIENT_COLUMNS = ("client_software_name", "client_software_version", "client_instance_id")
"""The frame and connection columns that identify a connection's client."""
PARTIES = ("client", "broker", *CLIENT_COLUMNS)
"""The columns that identify the two ends of a frame's connection."""


@dataclass(frozen=True, slots=True)
class Introductions:
    """The known facts about the clients of connections, by connection.

    ``software`` contains the name and version of each client's software, and ``instances`` contains
    the client instance id in Kafka's text form.
    """

    software: Mapping[str, Software] = field(default_factory=dict)
    instances: Mapping[str, str] = field(default_factory=dict)

    def only(self, connections: AbstractSet[str]) -> Introductions:
        """Return the known facts about the clients of some connections."""
        return Introductions(
            {name: self.software[name] for name in connections & self.software.keys()},
            {name: self.instances[name] for name in connections & self.instances.keys()},
        )


def frame_rows(
    paired: pa.RecordBatch, outcomes: pa.RecordBatch, parties: Mapping[str, pa.Array]
) -> pa.RecordBatch:
    """Return the rows of the table of frames, one for each of the paired frames, in their order.

    All sources of frames use this function: captures, streams of captures, and request logs.
    ``paired`` contains the columns of `PAIRED`. ``outcomes`` is a batch of `BODY_OUTCOMES` in any
    order, with a row for each frame whose body was read. ``parties`` contains the columns `PARTIES`
    of each frame.
    """
    place = np.full(len(paired), -1)
    place[outcomes["row"].to_numpy()] = np.arange(len(outcomes))
    columns_by_name = _of_bodies(paired, outcomes, place)
    columns_by_name |= parties
    columns_by_name["api_name"] = _api_names(paired["message"])
    columns = [
        columns_by_name[name] if name in columns_by_name else paired[name]
        for name in FRAMES_TABLE.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=FRAMES_TABLE)


def _of_bodies(
    paired: pa.RecordBatch, outcomes: pa.RecordBatch, place: Words
) -> dict[str, pa.Array]:
    """Return the columns that depend on the body or, without a body, on the header and framing."""
    has_body = place >= 0
    if has_body.all() and outcomes["error"].null_count == len(outcomes):
        return _all_decoded(outcomes, place)
    # A null index results in a null value.
    theirs, own = _indices(place, has_body), _indices(np.arange(len(paired)), ~has_body)
    error, version = outcomes["error"].take(theirs), outcomes["body_version"].take(theirs)
    broken = pc.if_else(version.is_null(), FAILED, LENIENT)
    outcome = pc.if_else(error.is_null(), DECODED, broken)
    outcome = pc.if_else(pa.array(has_body), outcome, paired["outcome"])
    # A decoded frame's row contains no bytes, so the frame's bytes are not copied.
    is_shown = pc.fill_null(pc.not_equal(outcome, DECODED), fill_value=False).to_numpy(
        zero_copy_only=False
    )
    shown = (
        outcomes["bytes"].take(_indices(place, has_body & is_shown)),
        paired["payload"].take(_indices(np.arange(len(paired)), ~has_body & is_shown)),
    )
    return {
        "body_version": version,
        "outcome": outcome,
        "bytes": pc.coalesce(*shown),
        **{
            name: pc.if_else(
                pa.array(has_body), outcomes[name].take(theirs), paired[name].take(own)
            )
            for name in OF_BODY
            if name not in {"body_version", "bytes"}
        },
    }


def _all_decoded(outcomes: pa.RecordBatch, place: Words) -> dict[str, pa.Array]:
    """Return the same columns for the usual case: the body of every frame was decoded."""
    body_columns = outcomes.select([name for name in OF_BODY if name != "bytes"]).take(
        pa.array(place)
    )
    return {
        **dict(zip(body_columns.schema.names, body_columns.columns, strict=True)),
        "outcome": pa.repeat(DECODED, len(place)),
        "bytes": pa.nulls(len(place), pa.binary()),
    }


def _indices(place: Words, mask: Words) -> pa.Array:
    return pa.array(place, mask=~mask)


def _api_names(messages: pa.StringArray) -> pa.StringArray:
    """Return the name of each message's API."""
    # Messages repeat, so each distinct message is examined only once.
    different = messages.dictionary_encode()
    names = pc.replace_substring_regex(different.dictionary, _API_WORDS, "")
    return names.take(different.indices)


def connection_parties(
    connections: pa.StringArray, introductions: Introductions
) -> dict[str, pa.Array]:
    """Return the columns `PARTIES` of captured frames, from the names of their connections."""
    different = connections.dictionary_encode()
    names = different.dictionary.to_pylist()
    ends = [ends_of(name) for name in names]
    software_of = [introductions.software.get(name, (None, None)) for name in names]
    instances = [(introductions.instances.get(name),) for name in names]
    parts = (ends, PARTIES[:2]), (software_of, PARTIES[2:4]), (instances, PARTIES[4:])
    return {
        name: pa.array([values[at] for values in part], pa.string()).take(different.indices)
        for part, columns in parts
        for at, name in enumerate(columns)
    }


def ends_of(connection: str) -> tuple[str, str]:
    """Return the client's and the broker's endpoint of a connection, given its name."""
    match = _CONNECTION.fullmatch(connection)
    return (match[1], match[2]) if match else ("", "")


# These columns have other names in a captured connection.
_RENAMED = {"first_time": "first_us", "last_time": "last_us"}


def connection_rows(connections: Iterable[CapturedConnection]) -> pa.RecordBatch:
    """Return the rows of the table of connections, in their order."""
    rows = [msgspec.structs.asdict(connection) for connection in connections]
    columns = [
        pa.array([row.get(_RENAMED.get(column.name, column.name)) for row in rows], column.type)
        for column in CONNECTIONS_TABLE
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CONNECTIONS_TABLE)


def packet_rows(notes: Iterable[FileNotes]) -> pa.RecordBatch:
    """Return the rows of the table of packets: one for each file, then one for each reason."""
    rows: list[tuple[str, str | None, int, bytes | None]] = []
    for file_notes in notes:
        unused = file_notes.unused()
        rows.append((file_notes.file, None, file_notes.packets, None))
        rows += [
            (file_notes.file, reason, packets, unused.samples.get(reason))
            for reason, packets in unused.packets.items()
        ]
    columns = [
        pa.array([row[at] for row in rows], column.type) for at, column in enumerate(PACKETS_TABLE)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PACKETS_TABLE)


def topic_name_rows(names: Mapping[str, str]) -> pa.RecordBatch:
    """Return the rows of the table of topic names, from names by topic id."""
    rows = [{"topic_id": topic_id, "topic": name} for topic_id, name in sorted(names.items())]
    return pa.RecordBatch.from_pylist(rows, TOPIC_NAMES_TABLE)


_OF_RECORDS = {where.message: where for where in RECORDS_FIELDS}


class TableRows:
    """Build the rows of paired frames, batch by batch."""

    def __init__(
        self,
        row_filter: RowFilter = EVERYTHING,
        *,
        release: str | None = None,
        show_credentials: bool = False,
        record_bytes: bool = False,
        inflation: Inflation = INFLATION,
    ) -> None:
        self._release = release
        self._show_credentials = show_credentials
        self._record_bytes = record_bytes
        self._inflation = inflation
        self._wanted = row_filter
        # The hints belong only to this range, so that its batches are the same each time.
        self._hints = {name: SizeHints() for name in _OF_RECORDS}

    def of(
        self, batch: pa.RecordBatch, names: dict[str, str], introductions: Introductions
    ) -> Iterator[tuple[str, Rows]]:
        """Yield the rows of some frames, each batch with the name of its table.

        ``names`` contains the names of topics by id.
        """
        row_filter, shows = self._wanted, self._show_credentials
        outcomes: list[pa.RecordBatch] = []
        bodies = batch["body"].dictionary_encode()
        codes = np.asarray(bodies.indices.fill_null(-1))
        for code, name in enumerate(bodies.dictionary.to_pylist()):
            if not row_filter.reads(name):
                continue
            rows = np.flatnonzero(codes == code)
            messages = message_rows(
                batch, name, release=self._release, show_credentials=shows, rows=rows
            )
            outcomes.append(_outcomes(rows, messages))
            if name in _OF_RECORDS and row_filter.gives(RECORDS):
                where, hints = _OF_RECORDS[name], self._hints[name]
                inflation = self._inflation
                for records in record_runs(messages, where, names, hints, inflation):
                    yield RECORDS, row_filter.records(records)
            if row_filter.gives(MESSAGES):
                if not self._record_bytes:
                    messages = without_record_bytes(messages)
                yield f"{MESSAGES}/{name}", messages
        if row_filter.gives(FRAMES):
            body_outcomes = (
                pa.concat_batches(outcomes)
                if outcomes
                else pa.RecordBatch.from_pylist([], BODY_OUTCOMES)
            )
            parties = connection_parties(batch["connection"], introductions)
            yield FRAMES, frame_rows(batch, body_outcomes, parties)


def _outcomes(rows: Array, messages: pa.RecordBatch) -> pa.RecordBatch:
    """Return the results of the message tables for the frames in these rows."""
    columns = [messages[name] for name in BODY_OUTCOMES.names[1:]]
    return pa.RecordBatch.from_arrays([pa.array(rows, pa.int32()), *columns], schema=BODY_OUTCOMES)
