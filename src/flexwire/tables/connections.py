"""The rows of the tables of connections and of packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec
import pyarrow as pa

from flexwire.tables.schema import CONNECTIONS_TABLE, PACKETS_TABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from flexwire.capture.connections import CapturedConnection

# What a connection's row calls by another name than the connection does.
_RENAMED = {"first_time": "first_us", "last_time": "last_us"}


class UnusedPackets(Protocol):
    """How many packets were not used, by reason, and the bytes of one of each, if they are told."""

    @property
    def packets(self) -> Mapping[str, int]:
        """By reason."""

    @property
    def samples(self) -> Mapping[str, bytes]:
        """By reason."""


class FileNotes(Protocol):
    """What is told of a capture file: how many packets it has, and those that were not used."""

    @property
    def file(self) -> str:
        """Which file it is."""

    @property
    def packets(self) -> int:
        """All of them."""

    def unused(self) -> UnusedPackets:
        """Give those that were not used."""


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
