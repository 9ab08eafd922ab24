"""The rows of the tables of frames, connections and packets.

``outcome`` is "decoded", "lenient" (the body breaks its spec, as ``error`` says, and decodes as
Kafka's Java reads it), "failed", or what the frame was without a body to decode.
"""

from __future__ import annotations

import re
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
from flexwire.tables.schema import CONNECTIONS_TABLE, FRAMES_TABLE, PACKETS_TABLE
from flexwire.tables.spec_places import RECORDS_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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
"""The columns that a message table gives the table of frames."""
BODY_OUTCOMES = pa.schema(
    [("row", pa.int32()), *((name, FRAMES_TABLE.field(name).type) for name in OF_BODY)]
)
"""What the message tables say of bodies: of which row of the paired frames, and what."""

_CONNECTION = re.compile(r"(.*)>(.*?)(#[0-9]+)?")
_API_WORDS = "(Request|Response)$"


def frame_rows(
    paired: pa.RecordBatch, outcomes: pa.RecordBatch, software: Mapping[str, Software]
) -> pa.RecordBatch:
    """Give the rows of the table of frames, one for each of the paired frames, in their order.

    ``outcomes`` is a batch of `BODY_OUTCOMES` in any order, with a row for each frame that has a
    ``body``. ``software`` is that of connections' clients, where it is known.
    """
    place = np.full(len(paired), -1)
    place[outcomes["row"].to_numpy()] = np.arange(len(outcomes))
    made = _of_bodies(paired, outcomes, place)
    made |= _of_connections(paired["connection"], software)
    made["api_name"] = _api_names(paired["message"])
    columns = [made[name] if name in made else paired[name] for name in FRAMES_TABLE.names]
    return pa.RecordBatch.from_arrays(columns, schema=FRAMES_TABLE)


def _of_bodies(
    paired: pa.RecordBatch, outcomes: pa.RecordBatch, place: Words
) -> dict[str, pa.Array]:
    """Give what a frame's body says of it, and its header and framing where it has none."""
    has_body = place >= 0
    if has_body.all() and outcomes["error"].null_count == len(outcomes):
        return _all_decoded(outcomes, place)
    # A null takes a null.
    theirs, own = _indices(place, has_body), _indices(np.arange(len(paired)), ~has_body)
    error, version = outcomes["error"].take(theirs), outcomes["body_version"].take(theirs)
    broken = pc.if_else(version.is_null(), FAILED, LENIENT)
    outcome = pc.if_else(error.is_null(), DECODED, broken)
    outcome = pc.if_else(pa.array(has_body), outcome, paired["outcome"])
    # The bytes of what is decoded are in no column, and are not copied.
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
    """Give the same where each frame has a body that decoded, as nearly always."""
    told = outcomes.select([name for name in OF_BODY if name != "bytes"]).take(pa.array(place))
    return {
        **dict(zip(told.schema.names, told.columns, strict=True)),
        "outcome": pa.repeat(DECODED, len(place)),
        "bytes": pa.nulls(len(place), pa.binary()),
    }


def _indices(place: Words, wanted: Words) -> pa.Array:
    return pa.array(place, mask=~wanted)


def _api_names(messages: pa.StringArray) -> pa.StringArray:
    """Give the name of each message's API."""
    # Of the few messages each is looked at once.
    different = messages.dictionary_encode()
    names = pc.replace_substring_regex(different.dictionary, _API_WORDS, "")
    return names.take(different.indices)


def _of_connections(
    connections: pa.StringArray, software: Mapping[str, Software]
) -> dict[str, pa.Array]:
    """Give what is known of each frame's connection: its ends, and the software of its client."""
    different = connections.dictionary_encode()
    names = different.dictionary.to_pylist()
    ends = [ends_of(one) for one in names]
    known = [software.get(one, (None, None)) for one in names]
    return {
        name: pa.array([pair[at] for pair in told], pa.string()).take(different.indices)
        for told, columns in (
            (ends, ("client", "broker")),
            (known, ("client_software_name", "client_software_version")),
        )
        for at, name in enumerate(columns)
    }


def ends_of(connection: str) -> tuple[str, str]:
    """Give the client's end and the broker's of a connection, by its name."""
    found = _CONNECTION.fullmatch(connection)
    return (found[1], found[2]) if found else ("", "")


# What a connection's row calls by another name than the connection does.
_RENAMED = {"first_time": "first_us", "last_time": "last_us"}


def connection_rows(connections: Iterable[CapturedConnection]) -> pa.RecordBatch:
    """Give the rows of the table of connections, in their order."""
    told = [msgspec.structs.asdict(one) for one in connections]
    columns = [
        pa.array([one.get(_RENAMED.get(column.name, column.name)) for one in told], column.type)
        for column in CONNECTIONS_TABLE
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CONNECTIONS_TABLE)


def packet_rows(notes: Iterable[FileNotes]) -> pa.RecordBatch:
    """Give the rows of the table of packets: of each file one for all, then one for each reason."""
    rows: list[tuple[str, str | None, int, bytes | None]] = []
    for one in notes:
        unused = one.unused()
        rows.append((one.file, None, one.packets, None))
        rows += [
            (one.file, reason, packets, unused.samples.get(reason))
            for reason, packets in unused.packets.items()
        ]
    columns = [
        pa.array([row[at] for row in rows], column.type) for at, column in enumerate(PACKETS_TABLE)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PACKETS_TABLE)


_OF_RECORDS = {where.message: where for where in RECORDS_FIELDS}


class TableRows:
    """Makes the rows of paired frames, batch after batch."""

    def __init__(
        self,
        wanted: RowFilter = EVERYTHING,
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
        self._wanted = wanted
        # Of this range alone, so that it gives the same batches each time.
        self._hints = {name: SizeHints() for name in _OF_RECORDS}

    def of(
        self, batch: pa.RecordBatch, names: dict[str, str], software: Mapping[str, Software]
    ) -> Iterator[tuple[str, Rows]]:
        """Give the rows of some frames, each batch with the name of its table.

        ``names`` are those of topics by their ids; ``software`` is what the client of a connection
        is.
        """
        wanted, shows = self._wanted, self._show_credentials
        outcomes: list[pa.RecordBatch] = []
        bodies = batch["body"].dictionary_encode()
        codes = np.asarray(bodies.indices.fill_null(-1))
        for code, name in enumerate(bodies.dictionary.to_pylist()):
            if not wanted.reads(name):
                continue
            rows = np.flatnonzero(codes == code)
            messages = message_rows(
                batch, name, release=self._release, show_credentials=shows, rows=rows
            )
            outcomes.append(_outcomes(rows, messages))
            if name in _OF_RECORDS and wanted.gives(RECORDS):
                where, hints = _OF_RECORDS[name], self._hints[name]
                inflation = self._inflation
                for records in record_runs(messages, where, names, hints, inflation):
                    yield RECORDS, wanted.records(records)
            if wanted.gives(MESSAGES):
                if not self._record_bytes:
                    messages = without_record_bytes(messages)
                yield f"{MESSAGES}/{name}", messages
        if wanted.gives(FRAMES):
            told = (
                pa.concat_batches(outcomes)
                if outcomes
                else pa.RecordBatch.from_pylist([], BODY_OUTCOMES)
            )
            yield FRAMES, frame_rows(batch, told, software)


def _outcomes(rows: Array, messages: pa.RecordBatch) -> pa.RecordBatch:
    """What the rows of message tables say of the frames that stand in these rows."""
    columns = [messages[name] for name in BODY_OUTCOMES.names[1:]]
    return pa.RecordBatch.from_arrays([pa.array(rows, pa.int32()), *columns], schema=BODY_OUTCOMES)
