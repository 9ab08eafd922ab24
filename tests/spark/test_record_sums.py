"""Sums of records, record headers and tagged fields equal the reference's, for any division."""

from __future__ import annotations

import json
import pickle
import random
from dataclasses import asdict
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flexwire.capture.pairing.state import NOT_KAFKA
from flexwire.kernels import load_kernel
from flexwire.measures import counters, headers, records, tagged_fields
from flexwire.measures.counters import DistinctCounter, LengthCounts, hash_of, hashes_and_texts
from flexwire.measures.failures import SAMPLE_BYTES, record_failures
from flexwire.measures.headers import OTHER_KEYS, RecordHeaderSums
from flexwire.measures.records import OTHER_TOPICS, TopicSums
from flexwire.measures.tagged_fields import OTHER_FIELDS, TaggedFieldSums
from flexwire.storage.file_search import list_captures
from flexwire.survey.ranges import FRAMES, MESSAGES, RECORDS, decode_range
from flexwire.survey.survey import AnalysisRequest, Surveyor
from flexwire.tables.records import OF_PARTITION, object_rows
from flexwire.tables.schema import FRAMES_TABLE, OUTCOMES
from flexwire.tables.schema import RECORDS as RECORDS_SCHEMA
from tests.capture.interleaved import SHAPES, write_capture
from tests.reference import facts as reference_facts
from tests.tables.carrying import as_table
from tests.tables.test_records import ODD, some_batch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.facts.facts import RecordHeaderFacts, TaggedFieldUse, TopicFacts

SEEDS = {"CLEAN": (1, 2), "STRANGE": (3, 4, 5), "EVERYTHING": (1, 6, 7)}
HEADERS = pa.list_(RECORDS_SCHEMA.field("headers").type.value_type)


class Rows(NamedTuple):
    """The rows of a capture in the tables of records, messages and frames."""

    records: list[pa.RecordBatch]
    outcomes: list[pa.RecordBatch]
    frames: list[pa.RecordBatch]


@cache
def rows_of(name: str) -> Rows:
    """Return the rows of a shape's captures, one for each seed. Captures share no connections."""
    made = Rows([], [], [])
    for seed in SEEDS[name]:
        with TemporaryDirectory() as directory:
            paths = write_capture(Path(directory), seed, SHAPES[name])
            _decode(paths, f"{seed}: ", made)
    return made


def _decode(paths: list[Path], prefix: str, made: Rows) -> None:
    kept: dict[str, bytes] = {}
    asked = AnalysisRequest(tuple(list_captures(paths)))
    for number in range(Surveyor(asked, kept.__setitem__).run().ranges):
        for table, rows in decode_range(asked, number, kept.__getitem__):
            at = rows.schema.get_field_index("connection")
            names = pc.binary_join_element_wise(prefix, rows["connection"], "")
            marked = rows.set_column(at, "connection", names)
            if table.startswith(MESSAGES):
                made.outcomes.append(marked.select(OUTCOMES.names))
            elif table == RECORDS:
                made.records.append(marked)
            elif table == FRAMES:
                made.frames.append(marked)


@cache
def hostile_rows() -> list[pa.RecordBatch]:
    """Return rows of damaged bytes between valid rows, with odd topics and record headers."""
    source = random.Random(8)
    carried = []
    for at, odd in enumerate([*ODD, *ODD, *ODD]):
        topic, topic_id = source.choice([("a", None), (None, "id"), ("b", "id"), (None, None)])
        name = source.choice(["produce", "fetch", "share_fetch"])
        direction = "request" if name == "produce" else "response"
        of_frame = (name, "x>y", direction, at // 3, 5_000 - at % 4, None, topic, topic_id, at)
        data = source.choice([b"", some_batch()]) + (odd or b"")
        carried += [(*of_frame, *row) for row, _ in object_rows(data)]
    place = len(RECORDS_SCHEMA) - len(OF_PARTITION) + OF_PARTITION.index("headers")
    for at, row in enumerate(carried):
        if row[place] is not None and source.random() < 0.7:
            changed = [{"key": _bytes(source, 2), "value": _value(source)} for _ in range(at % 4)]
            carried[at] = (*row[:place], changed, *row[place + 1 :])
    batches: list[pa.RecordBatch] = as_table(carried).to_batches()
    return batches


def _bytes(source: random.Random, most: int) -> bytes:
    return bytes(source.choices(b"ab\xc3\xa9\xff", k=source.randrange(most + 1)))


def _value(source: random.Random) -> bytes | None:
    return None if source.random() < 0.2 else _bytes(source, 20)


def cut(batches: Iterable[pa.RecordBatch], source: random.Random) -> list[pa.RecordBatch]:
    """Return the same rows in the same order, in other batches."""
    parts = []
    for batch in batches:
        places = sorted(source.choices(range(len(batch) + 1), k=source.randrange(6)))
        for start, stop in zip([0, *places], [*places, len(batch)], strict=True):
            parts.append(batch.slice(start, stop - start))
    return parts


def summed(make: Any, batches: Iterable[pa.RecordBatch]) -> Any:
    """Return a single sum of all batches."""
    sums = make()
    for batch in batches:
        sums.add(batch)
    return sums


def merged(make: Any, batches: list[pa.RecordBatch], source: random.Random) -> Any:
    """Return the total of neighboring sums, pickled as in tasks and merged in any order."""
    parts = cut(batches, source)
    tasks = []
    while parts:
        count = source.randrange(1, 8)
        pickled = pickle.dumps(summed(make, parts[:count]))
        tasks.append(pickle.loads(pickled))  # noqa: S301 - pickled right here
        del parts[:count]
    while len(tasks) > 1:
        one = tasks.pop(source.randrange(len(tasks)))
        source.choice(tasks).merge(one)
    return tasks[0] if tasks else make()


def batches_by_sums(name: str) -> list[tuple[Any, list[pa.RecordBatch]]]:
    if name == "HOSTILE":
        return [(TopicSums, hostile_rows()), (RecordHeaderSums, hostile_rows())]
    rows = rows_of(name)
    return [
        (TopicSums, rows.records),
        (RecordHeaderSums, rows.records),
        (TaggedFieldSums, rows.outcomes + rows.frames),
    ]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", [*SEEDS, "HOSTILE"])
def test_sums_do_not_depend_on_cuts_and_order(name: str) -> None:
    source = random.Random(name)
    for make, batches in batches_by_sums(name):
        expected = summed(make, batches)
        assert expected.facts() or (make is TaggedFieldSums and name == "CLEAN")
        for _ in range(30):
            found = merged(make, batches, source)
            # Reading facts changes nothing.
            assert found.facts() == expected.facts() == found.facts()
            if make is TopicSums:
                assert found.undecodable == expected.undecodable


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SEEDS, "HOSTILE"])
def test_sums_are_those_of_the_reference(name: str) -> None:
    told = hostile_rows() if name == "HOSTILE" else rows_of(name).records
    rows = [row for batch in told for row in batch.to_pylist()]
    expected = reference_facts.topics(rows)
    assert in_order(summed(TopicSums, told).facts()) == in_order(expected)
    assert {one["side"] for one in expected} == {"produce", "fetch"}
    headers_found = summed(RecordHeaderSums, told).facts()
    assert in_order(headers_found) == in_order(reference_facts.record_headers(rows))
    failed = reference_facts.undecodable(rows)
    assert summed(TopicSums, told).undecodable == len(failed)
    if name == "HOSTILE":
        assert {row["error"] for row in failed}
        return
    frames, outcomes = (
        [row for batch in batches for row in batch.to_pylist()]
        for batches in (rows_of(name).frames, rows_of(name).outcomes)
    )
    kafka = [row for row in frames if row["outcome"] != NOT_KAFKA]
    found = summed(TaggedFieldSums, rows_of(name).outcomes + rows_of(name).frames).facts()
    assert in_order(found) == in_order(reference_facts.tagged_fields(kafka, outcomes))


def in_order(facts: Iterable[Any]) -> list[str]:
    """Return facts as sorted JSON."""
    return sorted(json.dumps(one, sort_keys=True) for one in msgspec.to_builtins(list(facts)))


@pytest.mark.parametrize("name", [*SEEDS, "HOSTILE"])
def test_failures_are_told_as_of_frames(name: str) -> None:
    told = hostile_rows() if name == "HOSTILE" else rows_of(name).records
    found = [row for batch in told for row in record_failures(batch).to_pylist()]
    directions = {"produce": "request", "fetch": "response", "share_fetch": "response"}
    messages = {
        "produce": "ProduceRequest",
        "fetch": "FetchResponse",
        "share_fetch": "ShareFetchResponse",
    }
    expected = [
        {
            "time": row["time"],
            "connection": row["connection"],
            "direction": directions[row["source"]],
            "frame_index": row["frame_index"],
            "message": messages[row["source"]],
            "api_version": None,
            "error": row["error"],
            "size": len(row["bytes"]),
            "bytes": row["bytes"][:SAMPLE_BYTES],
            "withheld_credentials": 0,
        }
        for batch in told
        for row in batch.to_pylist()
        if row["error"] and not row["error"].startswith(("partial batch", "the records are with"))
    ]
    assert found == expected
    assert bool(expected) == (name != "CLEAN")


def test_a_batch_in_two_parts_counts_once() -> None:
    table = as_table(
        ("fetch", "x>y", "response", 1, 0, None, "a", None, 0, *row)
        for row, _ in object_rows(some_batch(9))
    )
    (batch,) = table.to_batches()
    for first in range(10):
        one = summed(TopicSums, [batch.slice(0, first), batch.slice(first)])
        two = summed(TopicSums, [batch.slice(first)])
        two.merge(summed(TopicSums, [batch.slice(0, first)]))
        for sums in (one, two):
            (facts,) = sums.facts()
            assert (facts.batches, facts.records) == (1, 9)
            assert facts.compression[0].bytes == len(some_batch(9))
            assert (facts.first_offset, facts.last_offset) == (0, 8)


def test_without_kernels_all_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    told = [*rows_of("STRANGE").records, *hostile_rows()]
    assert load_kernel("hashing") is not None
    expected = summed(RecordHeaderSums, told).facts()
    monkeypatch.setattr(counters, "load_kernel", lambda _: None)
    assert summed(RecordHeaderSums, told).facts() == expected


def test_kernel_and_objects_agree_on_any_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(1)
    some = [source.randbytes(size) for size in range(40)] * 2
    some += ["größe€🎉".encode()[:size] for size in range(14)] + [b"", b"\xed\xa0\x80", b"\xc0\x80"]
    column = pa.array([None, *some, None, b"x"], pa.binary())
    for part in (column, column.slice(3), column.slice(1, len(some)), column.slice(0, 0)):
        hashes, texts = hashes_and_texts(part)
        with monkeypatch.context() as patched:
            patched.setattr(counters, "load_kernel", lambda _: None)
            other_hashes, other_texts = hashes_and_texts(part)
        valid = part.is_valid().to_numpy(zero_copy_only=False)
        assert hashes[valid].tolist() == other_hashes[valid].tolist()
        assert texts[valid].tolist() == other_texts[valid].tolist()
    assert len({hash_of(one) for one in {*some}}) == len({*some})
    assert hashes_and_texts(pa.array([None], pa.binary()))[0].shape == (1,)


@pytest.mark.slow
def test_different_values_are_counted_exactly_and_then_nearly() -> None:
    source = random.Random(2)
    for number in (1, 4096, 4097, 30_000, 200_000):
        hashes = np.array([hash_of(b"value-%d" % one) for one in range(number)], np.uint64)
        whole = DistinctCounter()
        whole.add(hashes, 4096)
        parts = [DistinctCounter() for _ in range(5)]
        for one, start in enumerate(range(0, number, number // 9 + 1)):
            parts[one % 5].add(hashes[start : start + 30_000], 4096)
        source.shuffle(parts)
        for part in parts[1:]:
            parts[0].merge(part, 4096)
        assert parts[0].count == whole.count
        assert parts[0].hashes.tolist() == whole.hashes.tolist()
        assert whole.is_cut == (number > 4096)
        assert whole.count == pytest.approx(number, rel=0.05 if number > 4096 else 0)
        # A part that keeps fewer entries limits the total, whichever part comes first.
        few, many, expected = DistinctCounter(), DistinctCounter(), DistinctCounter()
        expected.add(hashes, 256)
        few.add(hashes[::2], 256)
        many.add(hashes[1::2], 4096)
        if few.is_cut:
            many.merge(few, 4096)
            assert many.hashes.tolist() == expected.hashes.tolist()
            assert many.count == pytest.approx(number, rel=0.2)


def test_the_median_is_exact_and_then_has_four_digits() -> None:
    for lengths in ([7], [7, 8], [1, 2, 3], [5, 5, 1, 9], [0, 0, 3], [100_000, 3, 2_000_000]):
        sums = LengthCounts()
        sums.add_all(np.array(lengths))
        assert sums.median == sorted(lengths)[(len(lengths) - 1) // 2]
    assert LengthCounts().median is None
    many = np.arange(100_001, 130_000)
    whole, parts = LengthCounts(), [LengthCounts(), LengthCounts()]
    whole.add_all(many)
    parts[0].add_all(many[::2])
    parts[1].add_all(many[1::2])
    parts[1].merge(parts[0])
    assert whole.is_rounded
    assert whole.median == parts[1].median == 115_000
    assert whole.counts.tolist() == parts[1].counts.tolist()
    assert len(whole.values) == 301


def _with_headers(
    keys: Iterable[Iterable[bytes]], value: bytes = b"v", topic: str = "t"
) -> pa.RecordBatch:
    lists = [[{"key": key, "value": value} for key in of_record] for of_record in keys]
    columns = {
        "headers": pa.array(lists, RECORDS_SCHEMA.field("headers").type),
        "is_control": pa.repeat(False, len(lists)),
        "topic": pa.repeat(topic, len(lists)),
        "topic_id": pa.nulls(len(lists), pa.string()),
    }
    told = [
        columns.get(one.name, pa.nulls(len(lists), one.type)).cast(one.type)
        for one in RECORDS_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(told, schema=RECORDS_SCHEMA)


@pytest.mark.long
@pytest.mark.slow
def test_very_many_keys_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "MOST_KEYS", 50)
    monkeypatch.setattr(headers, "_FEW_KEYS", 20)
    monkeypatch.setattr(headers, "_EXACT_OF_MANY", 4)
    source = random.Random(3)
    keys = [b"key-%03d" % one for one in range(300)] * 2 + [b"long" * 1000]
    source.shuffle(keys)
    batches = [
        _with_headers(
            [(key, b"z" + key, key) for key in keys[start : start + 60]],
            b"%d" % start,
            f"topic-{start}",
        )
        for start in range(0, 601, 60)
    ]
    expected = summed(RecordHeaderSums, batches)
    assert len(expected._keys) <= 100
    facts: tuple[RecordHeaderFacts, ...] = expected.facts()
    assert [one.key for one in facts] == [*(f"key-{one:03}" for one in range(50)), OTHER_KEYS]
    # Each record contains two header keys, one of them twice.
    assert sum(one.records for one in facts) == 2 * 601
    assert len(facts[-1].topics) == 4
    for _ in range(10):
        assert merged(RecordHeaderSums, batches, source).facts() == facts
    (long,) = summed(RecordHeaderSums, [_with_headers([[b"long" * 1000]])]).facts()
    assert long.key == ("long" * 1000)[: counters.LONGEST_NAME] + "…"


@pytest.mark.long
@pytest.mark.slow
def test_very_many_topics_and_partitions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST_TOPICS", 5)
    monkeypatch.setattr(records, "MOST_PARTITIONS", 7)
    monkeypatch.setattr(records, "_FEW_TOPICS", 3)
    monkeypatch.setattr(records, "_PARTITIONS_OF_MANY", 2)
    few = [("fetch", f"topic-{one % 2}", one) for one in range(40)]
    many = [(("fetch", "produce")[one % 2], f"topic-{one % 30:02}", one) for one in range(90)]
    source = random.Random(4)
    for carried in (few, many):
        table = as_table(
            (side, "x>y", "response", 1, 0, None, topic, None, partition, *row)
            for side, topic, partition in carried
            for row, _ in object_rows(some_batch(2))
        )
        batches = table.to_batches(max_chunksize=9)
        facts: tuple[TopicFacts, ...] = summed(TopicSums, batches).facts()
        assert sum(one.records for one in facts) == 2 * len(carried)
        assert sum(one.batches for one in facts) == len(carried)
        if carried is few:
            assert [one.partitions for one in facts] == [7, 7]
        else:
            assert len(facts) == 5 + 2
            assert [(one.topic, one.side) for one in facts[5:]] == [
                (OTHER_TOPICS, "fetch"), (OTHER_TOPICS, "produce")
            ]  # fmt: skip
            assert {one.partitions for one in facts} == {2}
        for _ in range(10):
            assert merged(TopicSums, batches, source).facts() == facts


def test_very_many_tagged_fields_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tagged_fields, "MOST_FIELDS", 10)
    fields = [{"tag": tag, "data": b"12"} for tag in range(40)]
    base: dict[str, Any] = {"direction": "request", "header_version": 2, "outcome": "decoded"}
    rows = [
        {**base, "header_unknown_tagged_fields": fields},
        {**base, "header_unknown_tagged_fields": [{"tag": 3, "data": b"withheld"}]},
        {**base, "outcome": "not Kafka", "header_unknown_tagged_fields": fields},
        {**base, "header_unknown_tagged_fields": []},
    ]
    batch = pa.RecordBatch.from_pylist(rows, FRAMES_TABLE)
    facts: tuple[TaggedFieldUse, ...] = summed(TaggedFieldSums, [batch]).facts()
    assert [one.tag for one in facts] == [*range(10), -1]
    assert asdict(facts[3]) == {
        "message": "RequestHeader", "versions": (2,), "path": "", "tag": 3, "name": None,
        "times": 2, "bytes": 2,
    }  # fmt: skip
    assert (facts[-1].message, facts[-1].times, facts[-1].bytes) == (OTHER_FIELDS, 30, 60)
    assert merged(TaggedFieldSums, [batch], random.Random(5)).facts() == facts
