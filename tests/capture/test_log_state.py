"""Aborted transactions, producer snapshots and checkpoints are read, whether whole or damaged."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.errors import CaptureError
from flexwire.logs import segments
from flexwire.logs.segments import (
    Damage,
    StateEntry,
    is_checkpoint,
    open_log,
    read_checkpoint,
    read_producer_snapshot,
    read_transaction_index,
)
from tests.capture.log_vectors import BASE, data_of, vectors, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ABORTED = f"tx-0/{BASE}.txnindex"
SNAPSHOT = "compacted-0/00000000000000000041.snapshot"
EPOCHS = "tx-0/leader-epoch-checkpoint"
OFFSETS = "replication-offset-checkpoint"


def read(
    reader: Callable[[Any], Iterator[StateEntry | Damage]], root: Path, path: str, data: bytes
) -> list[StateEntry | Damage]:
    with open_log(write(root, path, data)) as file:
        return list(reader(file))


def aborted(last_offset: int, version: int = 0) -> bytes:
    return struct.pack(">hqqqq", version, 5, 4, last_offset, last_offset + 1)


def test_aborted_transactions(tmp_path: Path) -> None:
    found = read(read_transaction_index, tmp_path, ABORTED, data_of(ABORTED) + aborted(9))
    assert found == [
        {"version": 0, "producerId": 5, "firstOffset": 4, "lastOffset": 7, "lastStableOffset": 8},
        {"version": 0, "producerId": 5, "firstOffset": 4, "lastOffset": 9, "lastStableOffset": 10},
    ]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (aborted(7) + aborted(7), [Damage(34, 34, "last offset 7 after 7")]),
        (aborted(7) + bytes(5), [Damage(34, 5, "the file ends with 5 bytes, too few for an ")]),
        (aborted(7) + aborted(9, version=7) + aborted(11), [Damage(34, 68, "AbortedTxn has no ")]),
    ],
)
def test_damaged_transaction_indexes(tmp_path: Path, data: bytes, expected: list[Damage]) -> None:
    found = read(read_transaction_index, tmp_path, ABORTED, data)
    damages = [one for one in found if isinstance(one, Damage)]
    assert [one[:2] for one in damages] == [one[:2] for one in expected]
    assert damages[0].reason.startswith(expected[0].reason)
    assert len(found) - len(damages) == (2 if len(data) == 68 else 1)


def test_the_state_of_producers(tmp_path: Path) -> None:
    found = read(read_producer_snapshot, tmp_path, SNAPSHOT, data_of(SNAPSHOT))
    producers = [one for one in found if isinstance(one, dict)]
    assert producers == found
    assert [(one["producerId"], one["lastOffset"]) for one in producers] == [(6, 39), (7, 40)]


def test_every_damage_to_a_snapshot_of_producers_is_told(tmp_path: Path) -> None:
    data = data_of(SNAPSHOT)
    for cut in range(len(data)):
        [damage] = read(read_producer_snapshot, tmp_path, SNAPSHOT, data[:cut])
        assert isinstance(damage, Damage)
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0x10
        found = read(read_producer_snapshot, tmp_path, SNAPSHOT, bytes(damaged))
        assert sum(isinstance(one, Damage) for one in found) == 1
    [damage] = read(read_producer_snapshot, tmp_path, SNAPSHOT, data + b"\0")
    assert isinstance(damage, Damage)


def test_a_producer_whose_bytes_are_wrong_is_still_shown(tmp_path: Path) -> None:
    damaged = bytearray(data_of(SNAPSHOT))
    damaged[20] ^= 1
    first, *producers = read(read_producer_snapshot, tmp_path, SNAPSHOT, bytes(damaged))
    assert isinstance(first, Damage)
    assert "crc" in first.reason
    assert len(producers) == 2


def test_checkpoints(tmp_path: Path) -> None:
    assert read(read_checkpoint, tmp_path, EPOCHS, data_of(EPOCHS)) == [
        {"epoch": 0, "startOffset": 0}
    ]
    found = read(read_checkpoint, tmp_path, OFFSETS, data_of(OFFSETS))
    assert {"topic": "tx", "partition": 0, "offset": 12} in found
    assert not any(isinstance(one, Damage) for one in found)


@pytest.mark.parametrize(
    ("path", "text", "lines"),
    [
        (EPOCHS, "\n", [1]),
        (EPOCHS, "1", [1]),
        (EPOCHS, "1\n0\n", [1]),
        (EPOCHS, "0\nmany\n", [1]),
        (EPOCHS, "0\n-1\n", [1]),
        (EPOCHS, "0\n2\n0 0\n", [2]),
        (EPOCHS, "0\n1\n0 0\n1 5\n", [2]),
        (EPOCHS, "0\n2\n0 0\nonce upon a time\n", [4]),
        (EPOCHS, "0\n1\n0\n", [3]),
        (EPOCHS, "0\n1\n0 ٣\n", [3]),
        (EPOCHS, "0\n2\n3 10\n3 20\n", [4]),
        (EPOCHS, "0\n2\n3 10\n4 9\n", [4]),
        (EPOCHS, "0\n2\n3 10\n4 10\n", []),
        (OFFSETS, "0\n2\nb 1 5\na 0 3\n", []),
        (OFFSETS, "0\n1\na 0\n", [3]),
        (OFFSETS, f"0\n1\na 0 {'9' * 5000}\n", [3]),
    ],
)
def test_a_damaged_checkpoint_is_told_by_its_line(
    tmp_path: Path, path: str, text: str, lines: list[int]
) -> None:
    found = read(read_checkpoint, tmp_path, path, text.encode())
    assert [one.position for one in found if isinstance(one, Damage)] == lines


NAMES = (
    "cleaner-offset-checkpoint",
    "leader-epoch-checkpoint",
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)


@pytest.mark.parametrize("text", ["", "0", "0\n", "0\n0\n"])
@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_without_entries_is_sound(name: str, text: str, tmp_path: Path) -> None:
    assert is_checkpoint(tmp_path / name)
    assert read(read_checkpoint, tmp_path, name, text.encode()) == []


def test_any_bytes_are_read_to_their_end(tmp_path: Path) -> None:
    picked = random.Random(5)
    readers = (
        (read_transaction_index, ABORTED),
        (read_producer_snapshot, SNAPSHOT),
        (read_checkpoint, EPOCHS),
    )
    for reader, path in readers:
        for size in range(1, 120, 5):
            found = read(reader, tmp_path, path, picked.randbytes(size))
            assert any(isinstance(one, Damage) for one in found)


def test_what_is_read_whole_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "MAX_STATE_BYTES", 10)
    with pytest.raises(CaptureError, match="more than the maximum of 10"):
        read(read_producer_snapshot, tmp_path, SNAPSHOT, bytes(11))


def test_checkpoints_are_known_by_their_names(tmp_path: Path) -> None:
    names = {path.rpartition("/")[2] for path in vectors()}
    assert {name for name in names if is_checkpoint(tmp_path / name)} == {
        "leader-epoch-checkpoint",
        "replication-offset-checkpoint",
    }
