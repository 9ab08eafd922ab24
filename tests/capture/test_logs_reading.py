"""Logs read as columns yield the same records as the reference, wherever the log is cut."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from flexwire.columnar import records as by_columns
from flexwire.columnar.record_columns import moment
from flexwire.errors import CaptureError, FlexwireError, StorageError
from flexwire.kernels import load_kernel
from flexwire.logs import BatchDamage, LogQuery, plan, read_piece
from flexwire.logs import records as log_records
from flexwire.logs.records import KAFKA_COLUMNS, LOG_COLUMNS, LogRows, damaged_row
from flexwire.records import Record, RecordBatch, decode_batches
from flexwire.records.inflation import BEYOND, Inflation
from tests.capture.log_vectors import BASE, data_of, vectors, write, write_all
from tests.capture.made_logs import (
    TIME,
    MadeSegment,
    all_records,
    plain,
    random_log,
    read_all,
    read_offsets,
    write_log,
)

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.columnar.records import Mode

SOUND = [
    path
    for path in vectors()
    if re.match(r"(4\.\d\.\d/)?(orders|old|tx|append|compacted|__).*\.log$", path)
]
SCHEMA = pa.schema(LOG_COLUMNS.items())
DAMAGED = ("flipped-0", "length-0", "magic-0")


def rows_of(path: Path, mode: Mode = "FAILFAST") -> list[dict[str, object]]:
    rows = LogRows(SCHEMA)
    found: list[dict[str, object]] = []
    for task in plan([path], LogQuery()):
        for piece in task:
            for one in read_piece(piece, rows.read, mode=mode):
                is_damage = isinstance(one, BatchDamage)
                made = damaged_row(SCHEMA, piece, one) if is_damage else rows.records(piece, one)
                found += made.to_pylist()
    return found


def expected_row(path: Path, batch: RecordBatch, record: Record) -> dict[str, object]:
    topic, _, partition = path.parent.name.rpartition("-")
    headers = [
        {"key": key.decode("utf-8", "replace"), "value": value} for key, value in record.headers
    ]
    timestamp_types = {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}
    facts = ("magic", "base_offset", "last_offset", "partition_leader_epoch", "producer_id")
    return {
        "key": record.key,
        "value": record.value,
        "topic": topic,
        "partition": int(partition),
        "offset": record.offset,
        "timestamp": pa.scalar(moment(record.timestamp), KAFKA_COLUMNS["timestamp"]).as_py(),
        "timestampType": timestamp_types[batch.timestamp_type.value],
        "headers": headers or None,
        **{name: getattr(batch, name) for name in facts},
        "batch_position": batch.position,
        "is_transactional": batch.is_transactional,
        "file": str(path),
        "replica": str(path.parent),
        "_corrupt_record": None,
    }


@pytest.mark.parametrize("with_kernels", [True, False])
@pytest.mark.parametrize("path", SOUND)
def test_each_record_of_a_broker_has_the_columns_of_sparks_kafka_source(
    tmp_path: Path, path: str, *, with_kernels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not with_kernels:
        monkeypatch.setattr(by_columns, "load_kernel", lambda _name: None)
    made = write(tmp_path, path)
    expected = [
        expected_row(made, batch, record)
        for batch in decode_batches(data_of(path))
        if not batch.is_control
        for record in batch.records
    ]
    found = rows_of(made)
    assert [{name: one[name] for name in expected[0]} for one in found] == expected
    assert not with_kernels or load_kernel("records_read") is not None


@pytest.mark.parametrize("room", [70, 700, 5000])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_room_of_any_size_gives_the_same(
    tmp_path: Path, room: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = random_log(seed)
    monkeypatch.setattr(log_records, "_ROOM", room)
    found = read_offsets(write_log(tmp_path / "a-0", made))
    assert found == [record.offset for record in all_records(made)]


@pytest.mark.parametrize("kinds", ["log index timeindex", "log"])
@pytest.mark.parametrize("size", [100, 1000, 10_000])
def test_a_segment_is_cut_where_batches_begin_with_an_index_or_without(
    tmp_path: Path, size: int, kinds: str
) -> None:
    made = random_log(3)
    for segment in made:
        segment.write(tmp_path / "a-0", kinds=kinds)
    tasks = plan([tmp_path], LogQuery(piece_bytes=size))
    pieces = [piece for task in tasks for piece in task]
    assert read_offsets(tmp_path, piece_bytes=size) == [one.offset for one in all_records(made)]
    largest = max(one.stop - one.start for one in pieces)
    # The index lists every third batch. Each batch has at most 300 bytes.
    assert largest <= size + 1000
    assert len(pieces) > 3 or size == 10_000


def test_small_segments_share_a_task(tmp_path: Path) -> None:
    made = random_log(4, segments=6, batches=3)
    write_log(tmp_path / "a-0", made)
    assert [len(one) for one in plan([tmp_path], LogQuery())] == [6]


@pytest.mark.parametrize("wrong", ["position", "offset", "bits"])
def test_an_index_that_is_wrong_is_not_believed(tmp_path: Path, wrong: str) -> None:
    made = random_log(5)
    directory = write_log(tmp_path / "a-0", made)
    expected = [one.offset for one in all_records(made)]
    other = MadeSegment(0)
    other.add(plain(0, expected[-1]))
    other.write(tmp_path / "other" / "a-0")
    chance = random.Random(5)
    for _ in range(10):
        for segment in made:
            index = np.frombuffer(segment.index, ">i4").reshape(-1, 2).copy()
            index[:, wrong == "position"] += wrong != "bits"
            data = bytearray(index.tobytes())
            for _ in range(chance.randint(1, 4) * (wrong == "bits")):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            (directory / f"{segment.base:020}.index").write_bytes(data)
        assert read_offsets(directory, piece_bytes=700) == expected
        low, high = sorted(chance.choices(expected, k=2))
        starting, ending = ({("a", 0): one} for one in (low, high))
        found = read_offsets(directory, starting=starting, ending=ending)
        assert found == [one for one in expected if low <= one < high]
        # The log that ends last.
        assert read_offsets(tmp_path) == expected


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("room", [1 << 24, 100, 800])
def test_damage_is_an_error_with_its_place_or_counted(
    tmp_path: Path, name: str, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_records, "_ROOM", room)
    made = write(tmp_path, f"{name}/{BASE}.log")
    with pytest.raises(CaptureError, match=rf"{BASE}\.log, byte 738: "):
        rows_of(made)
    rows = rows_of(made, "PERMISSIVE")
    (damaged,) = (row for row in rows if row["_corrupt_record"] is not None)
    assert str(damaged["_corrupt_record"]).startswith(f"{made}, byte 738: ")
    assert damaged["topic"] == name[:-2]
    assert damaged["offset"] is damaged["value"] is damaged["timestampType"] is None
    # One batch of ten records is lost, out of 42.
    assert len(rows) == 33


@pytest.mark.parametrize(
    ("name", "records", "word"),
    [
        ("cut-0", 41, "the log ends after 2974 bytes of a batch of 3074"),
        ("cut-header-0", 40, "the log ends after 10 bytes of a batch"),
        ("zeros-0", 42, "5000 zero bytes up to the end of the file"),
    ],
)
@pytest.mark.parametrize("room", [1 << 24, 100, 1500])
@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
def test_a_torn_end_is_cut_off_as_by_a_broker_and_told(
    tmp_path: Path,
    name: str,
    records: int,
    word: str,
    room: int,
    *,
    mode: Mode,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_records, "_ROOM", room)
    found = read_all(write(tmp_path, f"{name}/{BASE}.log"), mode=mode)
    assert len(found) == records + 1
    torn = found[-1]
    assert isinstance(torn, BatchDamage)
    assert torn.is_torn
    assert torn.reason.startswith(word)


@pytest.mark.parametrize("name", ["cut-0", "zeros-0"])
def test_what_is_torn_before_the_end_of_a_log_is_damage(tmp_path: Path, name: str) -> None:
    write(tmp_path, f"{name}/{BASE}.log")
    later = MadeSegment(42)
    later.add(plain(42, 3))
    later.write(tmp_path / name)
    with pytest.raises(CaptureError, match=rf"{BASE}\.log, byte \d+: "):
        read_all(tmp_path / name)
    found = read_all(tmp_path / name, mode="PERMISSIVE")
    (damage,) = (one for one in found if isinstance(one, BatchDamage))
    assert not damage.is_torn
    assert found[-3:] == [42, 43, 44]


def test_any_bytes_are_records_or_our_errors(tmp_path: Path) -> None:
    chance = random.Random(11)
    made = random_log(11, segments=2, batches=12)
    directory = write_log(tmp_path / "a-0", made)
    whole = {path: path.read_bytes() for path in directory.iterdir()}
    expected = {one.offset for one in all_records(made)}
    for _ in range(50):
        path = chance.choice(list(whole))
        data = bytearray(whole[path])
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data[: chance.choice([len(data), chance.randrange(len(data))])])
        isolation = chance.choice(["read_committed", "read_uncommitted"])
        try:
            read_all(tmp_path, piece_bytes=chance.choice([500, 1 << 20]), isolation=isolation)
            found = read_all(tmp_path, mode="PERMISSIVE", isolation=isolation)
        except FlexwireError:
            continue
        else:
            assert {one for one in found if isinstance(one, int)} <= expected
        finally:
            path.write_bytes(whole[path])


def test_a_file_that_changed_after_planning_is_refused_and_one_that_grew_is_read_as_it_was(
    tmp_path: Path,
) -> None:
    made = random_log(6, segments=1)
    directory = write_log(tmp_path / "a-0", made)
    log = directory / f"{0:020}.log"
    [[piece]] = plan([tmp_path], LogQuery())
    with log.open("ab") as file:
        file.write(b"more")
    batches = [one for one in read_piece(piece, ("offset",)) if isinstance(one, pa.RecordBatch)]
    assert sum(one.num_rows for one in batches) == len(all_records(made))
    log.write_bytes(b"less")
    with pytest.raises(StorageError, match="the file changed after it was listed"):
        list(read_piece(piece, ("offset",)))


def test_keys_of_record_headers_that_are_not_text_are_read_as_java_does(tmp_path: Path) -> None:
    segment = MadeSegment(0)
    segment.add([Record(0, TIME, None, None, [(b"ok", b"1"), (b"\xff!", None)])])
    segment.write(tmp_path / "a-0")
    [row] = rows_of(tmp_path)
    assert row["headers"] == [{"key": "ok", "value": b"1"}, {"key": "\ufffd!", "value": None}]
    assert row["key"] is row["value"] is None


def test_only_what_is_asked_for_is_read() -> None:
    assert LogRows(pa.schema({"topic": pa.string()})).read == ("magic",)
    columns = {"offset": pa.int64(), "timestampType": pa.int32(), "file": pa.string()}
    assert LogRows(pa.schema(columns)).read == ("offset", "timestamp_type")


def test_all_that_a_broker_has_is_read_at_once(tmp_path: Path) -> None:
    write_all(tmp_path)
    good = sorted({path.split("/")[0] for path in SOUND if path[0] != "4"})
    found = read_offsets(*(tmp_path / one for one in good))
    assert len(found) == sum(len(rows_of(tmp_path / one)) for one in good)


def test_a_batch_that_inflates_beyond_its_bound_is_damage(tmp_path: Path) -> None:
    segment = MadeSegment(0)
    segment.add(plain(0, 3))
    segment.add(plain(3, 50, value=bytes(1000)), compression="zstd")
    segment.add(plain(53, 3))
    path = write_log(tmp_path / "orders-0", [segment])
    [[piece]] = plan([path], LogQuery())
    for bounds in (Inflation(50_000), Inflation(max_ratio=10).held()):
        found = list(read_piece(piece, ("offset",), mode="PERMISSIVE", inflation=bounds))
        damage = [one for one in found if isinstance(one, BatchDamage)]
        assert [BEYOND in one.reason for one in damage] == [True]
        assert sum(len(one) for one in found if not isinstance(one, BatchDamage)) == 6
        with pytest.raises(CaptureError, match="raise max_"):
            list(read_piece(piece, ("offset",), inflation=bounds))
    assert sum(map(len, read_piece(piece, ("offset",)))) == 56
