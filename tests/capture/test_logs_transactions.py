"""With ``read_committed``, the result is what a consumer reads, with or without index files."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING

import google_crc32c
import pytest

from flexwire.errors import CaptureError
from flexwire.logs import LogQuery, plan
from tests.capture.log_vectors import BASE, data_of, vectors, write
from tests.capture.made_logs import ABORT, COMMIT, MadeSegment, plain, read_offsets

if TYPE_CHECKING:
    from pathlib import Path


def test_what_a_broker_wrote_is_read_as_a_consumer_would(tmp_path: Path) -> None:
    for path in vectors():
        if path.startswith("tx-0/"):
            write(tmp_path, path)
    assert read_offsets(tmp_path) == [0, 1, 2, 4, 5, 6, 8, 9, 10]
    committed = [0, 1, 2, 8, 9, 10]
    assert read_offsets(tmp_path, isolation="read_committed") == committed
    assert read_offsets(tmp_path, isolation="read_committed", piece_bytes=100) == committed
    alone = write(tmp_path / "alone", f"tx-0/{BASE}.log")
    assert read_offsets(alone, isolation="read_committed") == committed


class Written:
    """A log with transactions of some producers, and the records that a consumer receives."""

    def __init__(self, seed: int, segments: int = 4) -> None:
        chance = random.Random(seed)
        self.segments: list[MadeSegment] = []
        self.snapshots: dict[int, dict[int, int]] = {}
        self.open: dict[int, list[int]] = {}
        self.seen: set[int] = set()
        self.offset = 0
        for _ in range(segments):
            self.snapshot()
            self.segment = MadeSegment(self.offset, every=2)
            self.segments.append(self.segment)
            for _ in range(25):
                self.step(chance)
        first_open = min((one[0] for one in self.open.values()), default=self.offset)
        self.visible = sorted(one for one in self.seen if one < first_open)

    def step(self, chance: random.Random) -> None:
        producer, count = chance.randint(1, 4), chance.randint(1, 3)
        offsets = list(range(self.offset, self.offset + count))
        is_plain = chance.random() < 0.3
        if not is_plain and producer in self.open and chance.random() < 0.5:
            mine = self.open.pop(producer)
            aborts = chance.random() < 0.5
            self.segment.end(self.offset, producer, ABORT if aborts else COMMIT)
            if aborts:
                self.segment.abort(producer, mine[0], self.offset)
            else:
                self.seen.update(mine)
            self.offset += 1
            return
        if is_plain:
            self.seen.update(offsets)
            self.segment.add(plain(self.offset, count), producer_id=producer)
        else:
            self.open.setdefault(producer, []).extend(offsets)
            self.segment.add(plain(self.offset, count), producer_id=producer, is_transactional=True)
        self.offset += count

    def snapshot(self) -> None:
        self.snapshots[self.offset] = {one: offsets[0] for one, offsets in self.open.items()}

    def write(self, directory: Path, kinds: str = "log index timeindex") -> Path:
        for segment in self.segments:
            segment.write(directory, kinds=kinds)
        return directory

    def write_snapshots(self, directory: Path) -> None:
        for offset, first_offsets in self.snapshots.items():
            data = struct.pack(">i", len(first_offsets))
            for producer, first in first_offsets.items():
                data += struct.pack(">qhiqiqiq", producer, 0, 0, offset - 1, 0, 0, 0, first)
            whole = struct.pack(">hI", 1, google_crc32c.value(data)) + data
            (directory / f"{offset:020}.snapshot").write_bytes(whole)


@pytest.mark.parametrize("seed", range(6))
def test_only_what_was_committed_is_read_by_indexes_or_by_the_log_alone(
    tmp_path: Path, seed: int
) -> None:
    made = Written(seed)
    expected = made.visible
    assert expected
    with_indexes = made.write(tmp_path / "a" / "x-0")
    assert read_offsets(with_indexes, isolation="read_committed", piece_bytes=600) == expected
    made.write_snapshots(with_indexes)
    assert read_offsets(with_indexes, isolation="read_committed", piece_bytes=600) == expected
    made.segments = [MadeSegment(one.base, data=one.data) for one in made.segments]
    assert (
        read_offsets(
            made.write(tmp_path / "b" / "x-0", kinds="log"),
            isolation="read_committed",
            piece_bytes=600,
        )
        == expected
    )


def test_one_segment_is_read_with_what_later_ones_say_of_its_transactions(tmp_path: Path) -> None:
    made = Written(3)
    directory = made.write(tmp_path / "x-0")
    made.write_snapshots(directory)
    first = directory / f"{0:020}.log"
    expected = [one for one in made.visible if one < made.segments[1].base]
    assert read_offsets(first, isolation="read_committed") == expected


def test_a_piece_knows_of_the_transactions_in_it_alone(tmp_path: Path) -> None:
    made = Written(4)
    made.write(tmp_path / "x-0")
    tasks = plan([tmp_path], LogQuery(isolation="read_committed"))
    pieces = [piece for task in tasks for piece in task]
    counts = [len(one.aborted) for one in pieces]
    assert max(counts) < len({one for piece in pieces for one in piece.aborted})


def test_an_index_of_transactions_that_is_damaged_is_told(tmp_path: Path) -> None:
    write(tmp_path, f"tx-0/{BASE}.log")
    index = write(tmp_path, f"tx-0/{BASE}.txnindex", data_of(f"tx-0/{BASE}.txnindex")[:-3])
    with pytest.raises(
        CaptureError, match=rf"{index}, byte 0: the file ends with 31 bytes, too few"
    ):
        read_offsets(tmp_path, isolation="read_committed")
    assert len(read_offsets(tmp_path)) == 9
