"""The rows of logs equal what was written, and every byte of every segment is in a row."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.logs import LogQuery, plan
from flexwire.logs.discovery import find_logs
from flexwire.logs.pieces import transactions_if_sound
from flexwire.records import Record, decode_batches, encode_batch
from flexwire.tables import log_samples
from flexwire.tables.log_rows import LogTableRows, LogWork
from flexwire.tables.log_samples import BATCH_SIZES, CODECS, BatchExtents, SampleWindow, sample_at
from flexwire.tables.log_schema import BATCHES, KEYS, LOG_SCHEMAS, RECORD_SIZES, REWRITES
from tests.capture.log_vectors import vectors, write
from tests.capture.made_logs import COMMIT, TIME, MadeSegment, plain, random_log, write_log
from tests.capture.made_transactions import cleaned, random_transactions

if TYPE_CHECKING:
    from pathlib import Path

Rows = dict[str, list[dict[str, Any]]]


def rows_of(
    *paths: Path, windows: tuple[SampleWindow, ...] = (), piece_bytes: int = 1 << 20
) -> Rows:
    pieces = [one for task in plan(paths, LogQuery(piece_bytes=piece_bytes)) for one in task]
    partitions = sorted({one.partition for one in pieces})
    placed = tuple((partitions.index(one.partition), one) for one in pieces)
    ended = {one.partition: transactions_if_sound(one) for one in find_logs(paths, LogQuery())}
    numbered = {number: ended[one] for number, one in enumerate(partitions)}
    work = LogWork(placed, frozenset(), dict.fromkeys(range(len(placed)), windows), 3, numbered)
    found: Rows = {table: [] for table in LOG_SCHEMAS}
    for table, rows in LogTableRows(work, lambda *_: pytest.fail("all of it fits in memory")):
        assert rows.schema == LOG_SCHEMAS[table]
        found[table] += rows.to_pylist()
    return found


def test_a_row_each_batch_counted_by_the_reference(tmp_path: Path) -> None:
    segments = random_log(4)
    found = rows_of(write_log(tmp_path / "orders-7", segments))
    batches = [(one, batch) for one in segments for batch in decode_batches(bytes(one.data))]
    assert len(found[BATCHES]) == len(batches)
    for row, (segment, batch) in zip(found[BATCHES], batches, strict=True):
        records = batch.records
        expected = {
            "topic": "orders",
            "partition": 7,
            "position": batch.position,
            "size": batch.size,
            "magic": 2,
            "compression": str(batch.compression),
            "uncompressed_size": len(encode_batch(records)),
            "records": len(records),
            "base_offset": batch.base_offset,
            "last_offset": batch.last_offset,
            "key_bytes": sum(len(one.key or b"") for one in records),
            "value_bytes": sum(len(one.value or b"") for one in records),
            "timestamp_type": "CreateTime",
            "is_transactional": False,
            "error": None,
        }
        assert {name: row[name] for name in expected} == expected
        assert row["file"].endswith(f"orders-7/{segment.base:020}.log")
        assert row["oldest_time"].timestamp() * 1000 == min(one.timestamp for one in records)
        assert row["newest_time"] == row["max_timestamp"]
    sizes = Counter({row["size"]: row["records"] for row in found[RECORD_SIZES]})
    assert sizes.total() == sum(len(batch.records) for _, batch in batches)
    assert sum(size * count for size, count in sizes.items()) == sum(
        len(encode_batch(batch.records)) - 61 for _, batch in batches
    )


def test_what_compaction_would_remove_counted_by_hand(tmp_path: Path) -> None:
    made = MadeSegment(0)
    made.add([Record(0, TIME, b"a", b"1", []), Record(1, TIME, b"b", b"2", [])])
    made.add([Record(2, TIME, b"a", b"long", []), Record(3, TIME, None, b"3", [])])
    made.add([Record(4, TIME, b"a", None, [])], producer_id=9, is_transactional=True)
    # A marker has a key, but no later record can have that key.
    made.end(5, 9, COMMIT)
    made.end(6, 9, COMMIT)
    later = MadeSegment(7)
    later.add([Record(7, TIME, b"b", b"4", [])])
    other = MadeSegment(0)
    other.add([Record(0, TIME, b"a", b"of another partition", [])])
    write_log(tmp_path / "orders-0", [made, later])
    write_log(tmp_path / "orders-1", [other])
    found = rows_of(tmp_path)
    # Each of the records at 0, 1 and 2 takes seven bytes plus a key of one byte and a value of one,
    # one or four bytes.
    assert found[KEYS] == [
        {"topic": "orders", "partition": 0, "keyed_records": 5}
        | {"superseded_records": 3, "superseded_bytes": 9 + 9 + 12},
        {"topic": "orders", "partition": 1, "keyed_records": 1}
        | {"superseded_records": 0, "superseded_bytes": 0},
    ]
    flags = [
        (row["is_transactional"], row["is_control"], row["tombstones"]) for row in found[BATCHES]
    ]
    assert flags[:5] == [
        (False, False, 0),
        (False, False, 0),
        (True, False, 1),
        (True, True, 0),
        (True, True, 0),
    ]
    assert [row["null_keys"] for row in found[BATCHES]][1] == 1


@pytest.mark.slow
@pytest.mark.parametrize("keeps_index", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_aborted_and_open_transactions_replace_nothing(
    tmp_path: Path, seed: int, *, keeps_index: bool
) -> None:
    made = random_transactions(seed)
    kinds = "log index timeindex" if keeps_index else "log"
    for segment in made.segments:
        segment.write(tmp_path / "orders-0", kinds=kinds)
    for piece_bytes in (1 << 20, 700):
        found = rows_of(tmp_path, piece_bytes=piece_bytes)
        rows = [row for row in found[BATCHES] if not row["is_control"]]
        told = {row["base_offset"]: row["outcome"] for row in rows}
        assert told == {first: made.outcome(producer, first) for first, producer in made.batches}
        keyed, superseded = cleaned(made)
        assert sum(row["keyed_records"] for row in found[KEYS]) == keyed
        assert sum(row["superseded_records"] for row in found[KEYS]) == superseded
        assert {row["outcome"] for row in found[BATCHES] if row["is_control"]} <= {None}


def test_what_is_damaged_does_not_say_how_a_transaction_ended(tmp_path: Path) -> None:
    made = random_transactions(1)
    for segment in made.segments:
        segment.write(tmp_path / "orders-0")
    (tmp_path / "orders-0" / f"{made.segments[0].base:020}.txnindex").write_bytes(b"no entry")
    found = rows_of(tmp_path)
    told = {row["is_transactional"]: set[str | None]() for row in found[BATCHES]}
    for row in found[BATCHES]:
        if not row["is_control"]:
            told[row["is_transactional"]].add(row["outcome"])
    assert told == {False: {None}, True: {"not known"}}
    plain_keys = sum(
        len(records) for _, producer, records in made.written if producer is None and records
    )
    assert sum(row["keyed_records"] for row in found[KEYS]) == plain_keys


@pytest.mark.parametrize("seed", range(4))
def test_every_byte_is_in_one_row_whatever_is_damaged(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    segment = random_log(seed, 1)[0]
    for _ in range(chance.choice([1, 3, 12])):
        segment.data[chance.randrange(len(segment.data))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
    data = bytes(segment.data)
    segment.data = bytearray(data[: chance.randrange(len(data) // 2, len(data))])
    write_log(tmp_path / "orders-0", [segment])
    for piece_bytes in (1 << 20, 700):
        rows = rows_of(tmp_path, piece_bytes=piece_bytes)[BATCHES]
        assert any(row["error"] for row in rows)
        ends = [0]
        for row in sorted(rows, key=lambda row: row["position"]):
            assert row["position"] == ends[-1]
            ends.append(row["position"] + row["size"])
            is_batch = row["error"] is None
            assert all((row[name] is not None) == is_batch for name in ("records", "magic"))
        assert ends[-1] == len(segment.data)


def test_zeros_at_the_end_are_one_row(tmp_path: Path) -> None:
    made = MadeSegment(0)
    made.add(plain(0, 3))
    size = len(made.data)
    made.data += bytes(500)
    write_log(tmp_path / "orders-0", [made])
    *_, last = rows_of(tmp_path)[BATCHES]
    assert (last["position"], last["size"]) == (size, 500)
    assert "zero bytes up to the end of the file" in last["error"]


def test_logs_of_every_age(tmp_path: Path) -> None:
    for path in vectors():
        if path.startswith(("orders-", "tx-", "old-", "compacted-", "append-")):
            write(tmp_path, path)
    rows = rows_of(tmp_path)[BATCHES]
    assert {row["magic"] for row in rows} == {0, 1, 2}
    assert all(row["error"] is None for row in rows)
    sizes = Counter[str]()
    for row in rows:
        sizes[row["file"]] += row["size"]
    files = [one for one in tmp_path.rglob("*.log") if one.stat().st_size]
    assert {one.name: sizes[str(one)] for one in files} == {
        one.name: one.stat().st_size for one in files
    }
    assert {row["timestamp_type"] for row in rows if row["magic"] == 0} == {"NoTimestampType"}


@pytest.mark.slow
def test_a_sample_takes_what_was_really_written(tmp_path: Path) -> None:
    made = MadeSegment(0)
    for first in range(0, 4000, 10):
        records = [
            Record(
                first + at, TIME + at, b"key %d" % at, b"%d a value " % first * 4, [(b"h", b"i")]
            )
            for at in range(10)
        ]
        made.add(records, compression="lz4")
    write_log(tmp_path / "orders-0", [made])
    found = rows_of(tmp_path, windows=(SampleWindow(0, 1 << 30),))[REWRITES]
    batches = list(decode_batches(bytes(made.data)))
    told = {
        name: found[0][name] for name in ("sampled_bytes", "sampled_batches", "sampled_records")
    }
    assert told == {
        "sampled_bytes": len(made.data),
        "sampled_batches": 400,
        "sampled_records": 4000,
    }
    inflated = sum(len(encode_batch(one.records)) - 61 for one in batches)
    enough = [one for one in BATCH_SIZES if one <= inflated]
    assert [row["batch_size"] for row in found] == [one for one in enough for _ in CODECS]
    # Columns without a sample are missing.
    assert len(enough) == 2
    records = [record for one in batches for record in one.records]
    for row in found:
        size, count = row["batch_size"], row["written_batches"]
        assert -(-inflated // size) <= count <= -(-inflated // size) + 1
        if row["batch_size"] == BATCH_SIZES[1]:
            # With objects, the bounds are the ones that the sizes of records allow.
            each = list(_cut(records, size))
            assert len(each) == count
            level = {} if row["level"] is None else {"level": row["level"]}
            again = [encode_batch(one, compression=row["compression"], **level) for one in each]
            assert row["written_bytes"] == sum(map(len, again))


def _cut(records: list[Record], most: int) -> Any:
    """Split records where the minimum size of the next record would exceed the limit."""
    part: list[Record] = []
    held = 0
    for one in records:
        size = 7 + len(one.key or b"") + len(one.value or b"") + 2 + 2
        if part and held + size > most:
            yield part
            part, held = [], 0
        part.append(one)
        held += size
    yield part


def test_a_sample_goes_past_control_batches_and_ends_at_damage_and_what_is_too_large() -> None:
    import numpy as np  # noqa: PLC0415 - only one test needs numpy

    rows = [(0, 10, 100, False), (10, 10, 100, True), (20, 10, 100, False), (30, 10, 100, False)]
    after = [(50, 10, 100, False), (60, 10, log_samples.MOST_INFLATED + 1, False)]
    last = [(70, 10, 100, False)]
    batches = BatchExtents(*map(np.array, zip(*rows, *after, *last, strict=True)))
    everything = SampleWindow(0, 1 << 30)
    found = sample_at(everything, batches)
    assert found is not None
    assert tuple(found) == (0, 40, 30, 3)
    assert sample_at(replace_at(everything, 45), batches) == (50, 60, 10, 1)
    assert sample_at(replace_at(everything, 55), batches) == (70, 80, 10, 1)
    assert sample_at(replace_at(everything, 75), batches) is None
    assert sample_at(SampleWindow(0, 150), batches) == (0, 30, 20, 2)


def replace_at(window: SampleWindow, position: int) -> SampleWindow:
    return window._replace(position=position)


def test_a_batch_of_another_segment_is_neither_counted_nor_damage(tmp_path: Path) -> None:
    [segment] = random_log(3, 1)
    write_log(tmp_path / "orders-0", [segment])
    [[piece]] = plan([tmp_path], LogQuery())
    batches = list(decode_batches(bytes(segment.data)))
    bounds = replace(piece.offsets, high=batches[9].last_offset)
    work = LogWork(((0, replace(piece, offsets=bounds)),), frozenset(), {}, 0)
    rows = [
        row
        for table, some in LogTableRows(work, lambda *_: None)
        if table == BATCHES
        for row in some.to_pylist()
    ]
    assert [row["position"] for row in rows] == [one.position for one in batches[:10]]
    assert all(row["error"] is None for row in rows)
