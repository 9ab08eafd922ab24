"""Make logs from single batches, with the broker's other files, and read them as rows."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flexwire.logs import BatchDamage, LogQuery, plan, read_piece
from flexwire.records import Record, decode_batches, encode_batch

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from flexwire.columnar.records import Mode

TIME = 1_700_000_000_000
ABORT, COMMIT = bytes.fromhex("00000000"), bytes.fromhex("00000001")


@dataclass
class MadeSegment:
    """A segment that grows, and its indexes. The indexes contain one out of ``every`` batches."""

    base: int
    every: int = 1
    data: bytearray = field(default_factory=bytearray)
    index: bytearray = field(default_factory=bytearray)
    times: bytearray = field(default_factory=bytearray)
    aborted: bytearray = field(default_factory=bytearray)
    batches: int = 0
    latest: int = -1

    def add(self, records: list[Record], **fields: Any) -> None:
        batch = encode_batch(records, **fields)
        self.batches += 1
        latest = max(record.timestamp for record in records)
        if self.batches % self.every == 0:
            self.index += struct.pack(">ii", records[-1].offset - self.base, len(self.data))
        if latest > self.latest:
            self.latest = latest
            self.times += struct.pack(">qi", latest, records[-1].offset - self.base)
        self.data += batch

    def end(self, offset: int, producer: int, key: bytes, timestamp: int = TIME) -> None:
        """Append the marker that ends a transaction."""
        record = Record(offset, timestamp, key, bytes(6), [])
        self.add([record], producer_id=producer, is_transactional=True, is_control=True)

    def abort(self, producer: int, first: int, last: int) -> None:
        self.aborted += struct.pack(">hqqqq", 0, producer, first, last, first)

    def write(self, directory: Path, ending: str = "", kinds: str = "log index timeindex") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        files = {"log": self.data, "index": self.index, "timeindex": self.times}
        if self.aborted:
            files["txnindex"], kinds = self.aborted, f"{kinds} txnindex"
        for kind in kinds.split():
            (directory / f"{self.base:020}.{kind}{ending}").write_bytes(files[kind])


def plain(first: int, count: int, timestamp: int = TIME, value: bytes = b"") -> list[Record]:
    return [
        Record(first + one, timestamp + one, b"k%d" % (first + one), value or b"v" * one, [])
        for one in range(count)
    ]


def random_log(seed: int, segments: int = 3, batches: int = 40) -> list[MadeSegment]:
    """Return segments of batches with random sizes, offset gaps, and timestamps that go back."""
    chance = random.Random(seed)
    made, offset = [], 0
    for _ in range(segments):
        segment = MadeSegment(offset, every=3)
        for _ in range(batches):
            count = chance.randint(1, 5)
            timestamp = TIME + 10 * offset + chance.randint(-80, 80)
            compression = chance.choice(["none", "none", "lz4", "zstd"])
            records = plain(offset, count, timestamp, chance.randbytes(chance.randint(0, 60)))
            segment.add(records, compression=compression)
            offset += count + chance.choice([0, 0, 2])
        made.append(segment)
    return made


def write_log(directory: Path, segments: Iterable[MadeSegment]) -> Path:
    for segment in segments:
        segment.write(directory)
    return directory


def all_records(segments: Iterable[MadeSegment]) -> list[Record]:
    """Return every record that is not a control record, as the reference reads it."""
    return [
        record
        for segment in segments
        for batch in decode_batches(bytes(segment.data))
        if not batch.is_control
        for record in batch.records
    ]


def read_offsets(*paths: Path | str, mode: Mode = "FAILFAST", **query: Any) -> list[int]:
    return [one for one in read_all(*paths, mode=mode, **query) if isinstance(one, int)]


def read_all(*paths: Path | str, mode: Mode = "FAILFAST", **query: Any) -> list[int | BatchDamage]:
    """Return the offsets of all records in reading order, and the damage."""
    found: list[int | BatchDamage] = []
    for task in plan(paths, LogQuery(**query)):
        for piece in task:
            for one in read_piece(piece, ("offset",), mode=mode):
                found += [one] if isinstance(one, BatchDamage) else one["offset"].to_pylist()
    return found
