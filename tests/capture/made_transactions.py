"""Logs with overlapping transactions that end in every way, and a small cleaner for comparison."""

from __future__ import annotations

import random
from dataclasses import dataclass

from flexwire.records import Record
from tests.capture.made_logs import ABORT, COMMIT, TIME, MadeSegment


@dataclass
class MadeTransactions:
    """A log with overlapping transactions, and how each transaction ended."""

    segments: list[MadeSegment]
    written: list[tuple[int, int | None, list[Record]]]
    ends: dict[tuple[int, int], bool]

    @property
    def batches(self) -> list[tuple[int, int | None]]:
        return [(first, producer) for first, producer, _ in self.written]

    def outcome(self, producer: int | None, first: int) -> str | None:
        """Return the content of the producer's next marker."""
        if producer is None:
            return None
        later = sorted(at for own, at in self.ends if own == producer and at > first)
        if not later:
            return "open"
        return "committed" if self.ends[producer, later[0]] else "aborted"


def random_transactions(seed: int) -> MadeTransactions:
    """Make segments with transactions of three producers and plain batches, with few keys."""
    chance = random.Random(seed)
    made = MadeTransactions([], [], {})
    offset, began = 0, dict[int, int]()
    for _ in range(3):
        segment = MadeSegment(offset)
        for _ in range(chance.randint(10, 30)):
            producer = chance.choice([None, 5, 6, 7])
            if producer in began and chance.random() < 0.4:
                is_commit = chance.random() < 0.5
                segment.end(offset, producer, COMMIT if is_commit else ABORT)
                if not is_commit:
                    segment.abort(producer, began[producer], offset)
                made.ends[producer, offset] = is_commit
                del began[producer]
                offset += 1
                continue
            records = [
                Record(offset + at, TIME + offset + at, b"k%d" % chance.randrange(6), b"v", [])
                for at in range(chance.randint(1, 4))
            ]
            own = {} if producer is None else {"producer_id": producer, "is_transactional": True}
            segment.add(records, compression=chance.choice(["none", "zstd"]), **own)
            if producer is not None:
                began.setdefault(producer, offset)
            made.written.append((offset, producer, records))
            offset += len(records)
        made.segments.append(segment)
    return made


def cleaned(made: MadeTransactions) -> tuple[int, int]:
    """Return how many records a small cleaner examines, and how many of them are superseded."""
    kept = [
        record
        for first, producer, records in made.written
        if made.outcome(producer, first) in {None, "committed"}
        for record in records
    ]
    last = {record.key: record.offset for record in kept}
    return len(kept), sum(record.offset != last[record.key] for record in kept)
