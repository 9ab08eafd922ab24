"""Connections and notes about packets have the same rows as in the reference."""

from __future__ import annotations

import msgspec

from flexwire.capture.reassembly.connections import CapturedConnection
from flexwire.capture.reassembly.packet_scan import FileNotes, UnusedPackets
from flexwire.tables.frames import _RENAMED, Introductions, connection_rows, packet_rows
from flexwire.tables.schema import CONNECTIONS_TABLE
from tests.reference.tables import as_stored, connection_row

CONNECTION = CapturedConnection(
    "10.0.0.9:5>10.0.0.1:9092#2", "10.0.0.9:5", "10.0.0.1:9092", 1_000_001, 2_000_002,
    True, "client", True, 3, 4, 500, 600, 7, 8, 9, 10, 11, 12, True, False, "it says so", None,
)  # fmt: skip
OTHER = msgspec.structs.replace(
    CONNECTION, connection="b", seen_from_start=False, closed_by=None, looks_like="TLS"
)


def test_every_fact_of_a_connection_has_a_column() -> None:
    # These columns are only for request logs.
    of_logs = {"principal", "listener", "security_protocol"}
    names = [_RENAMED.get(one, one) for one in CONNECTIONS_TABLE.names if one not in of_logs]
    assert sorted(names) == sorted(CapturedConnection.__struct_fields__)


def test_a_connection_is_the_row_of_the_reference() -> None:
    rows = connection_rows([CONNECTION, OTHER])
    rows.validate(full=True)
    expected = as_stored(
        (connection_row(one, Introductions(), {}) for one in (CONNECTION, OTHER)), CONNECTIONS_TABLE
    )
    assert rows.to_pylist() == expected
    assert len(connection_rows([])) == 0


def test_a_file_has_a_row_and_so_has_every_reason() -> None:
    notes = [
        FileNotes(
            "a.pcap",
            10,
            UnusedPackets({"an IP fragment": 2}),
            UnusedPackets({"not TCP": 3}, {"not TCP": b"\x08"}),
        ),
        FileNotes("b.pcap"),
    ]
    assert [tuple(row.values()) for row in packet_rows(notes).to_pylist()] == [
        ("a.pcap", None, 10, None),
        ("a.pcap", "an IP fragment", 2, None),
        ("a.pcap", "not TCP", 3, b"\x08"),
        ("b.pcap", None, 0, None),
    ]
