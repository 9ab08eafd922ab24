"""Reading and decoding in one task returns the same rows as decoding the rows of `kafka-log`."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flexwire.answers.state import group_members, groups, last_commits, open_log, unreadable
from flexwire.answers.state.log import LogSelection, typed_piece
from flexwire.errors import CaptureError
from flexwire.logs import LogQuery, plan, read_piece
from flexwire.logs.records import BatchDamage
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.protocol.record_types import framed_messages
from flexwire.tables.typed_records import HEAD_COLUMNS, TypedRecords, record_names
from tests.capture.log_vectors import BASE, vectors, write
from tests.columnar.chosen_fields import paths
from tests.spark.internal_topics.made import MadeTopic, commit
from tests.tables.test_typed_records import damaged, real_records

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
COLUMNS = ("offset", "timestamp", "is_transactional", *HEAD_COLUMNS)
PIECE = 1 << 13


def damaged_log(root: Path, topic: InternalTopic, different: int = 999, damages: int = 2) -> Path:
    """Write a topic's records as brokers did, but damage about one in ``damages`` of them."""
    chance, real = random.Random(topic), real_records(topic)[:different]
    made = MadeTopic(topic.topic)
    for _ in range(100):
        row = chance.choice(real)
        row = row if chance.randrange(damages) else damaged(row, chance)
        made.add(*row, producer=chance.choice([-1, 7]))
    made.end(7, commit=True)
    return made.write(root)


def pieces(root: Path, topic: InternalTopic) -> list[Any]:
    planned = plan([root], LogQuery(topics=[topic.topic], piece_bytes=PIECE))
    return [one for task in planned for one in task]


def by_rows(root: Path, topic: InternalTopic, asked: LogSelection) -> pa.Table:
    """Decode all rows, then choose the requested ones."""
    typed, made = TypedRecords(topic, asked.records), []
    for piece in pieces(root, topic):
        read = [*COLUMNS[:3], "key", "value"]
        found = [one for one in read_piece(piece, read) if not isinstance(one, BatchDamage)]
        for one in found:
            columns = typed.decode(one.column("key"), one.column("value"), None)
            names = [*COLUMNS[:3], *typed.schema.names]
            all_columns = [*map(one.column, COLUMNS[:3]), *columns]
            made.append(pa.RecordBatch.from_arrays(all_columns, names=names))
    table = pa.Table.from_batches(made)
    chosen = pc.field("error").is_valid()
    if not asked.unreadable:
        chosen = ~chosen & pc.field("message").isin([*typed.records])
    waits = pc.field("is_transactional")
    if asked.of_transactions is not None:
        waits &= pc.scalar(asked.of_transactions) | ~pc.field("is_tombstone")
        chosen &= waits == pc.scalar(asked.of_transactions)
    return table.filter(chosen).select(columns_of(asked))


def columns_of(asked: LogSelection) -> list[str]:
    return [*asked.columns, *([] if asked.unreadable else asked.records)]


def at_once_of(root: Path, topic: InternalTopic, asked: LogSelection) -> list[pa.RecordBatch]:
    return [
        one
        for piece in pieces(root, topic)
        for one in typed_piece(topic.value, asked, columns_of(asked), piece)
    ]


def check(root: Path, topic: InternalTopic) -> int:
    """Compare the requested rows in all ways, and return their number."""
    chance, names = random.Random(topic), sorted(record_names(topic))
    kinds = TypedRecords(topic, names).schema
    some = chance.sample(names, min(3, len(names)))
    fields = {one: chance.sample([*paths(kinds.field(one).type)], 2) for one in some}
    rows = 0
    for asked in (
        LogSelection(names, COLUMNS),
        LogSelection(some, COLUMNS[:1]),
        LogSelection(fields, COLUMNS[3:5]),
        LogSelection(names, COLUMNS, of_transactions=True),
        LogSelection(names, COLUMNS, of_transactions=False),
        LogSelection(some, COLUMNS, unreadable=True),
    ):
        wanted = by_rows(root, topic, asked)
        found = pa.Table.from_batches(at_once_of(root, topic, asked), wanted.schema)
        found.validate(full=True)
        assert found == wanted.combine_chunks()
        rows += len(found)
    return rows


@pytest.mark.parametrize("topic", InternalTopic)
def test_a_damaged_log_is_typed_in_one_task_as_by_rows(
    topic: InternalTopic, tmp_path: Path
) -> None:
    damaged_log(tmp_path, topic)
    assert len(pieces(tmp_path, topic)) > 1
    assert check(tmp_path, topic) > 100


@pytest.mark.parametrize("topic", InternalTopic)
def test_a_broker_s_log_is_typed_in_one_task_as_by_rows(
    topic: InternalTopic, tmp_path: Path
) -> None:
    ending = f"{topic.topic}-0/{BASE}.log"
    for path in vectors():
        if path.endswith(ending):
            write(tmp_path, path)
    # There is a separate directory for each release.
    for log in {one.parent.parent for one in tmp_path.rglob(f"{BASE}.log")}:
        assert check(log, topic)


@pytest.mark.parametrize("damages", [2, 60, 9999])
@pytest.mark.parametrize("topic", [one for one in InternalTopic if one.has_keys])
def test_the_last_of_each_key_that_decodes_is_never_left_out(
    topic: InternalTopic, damages: int, tmp_path: Path
) -> None:
    damaged_log(tmp_path, topic, 6, damages)
    names = sorted(record_names(topic))
    asked = LogSelection(names, COLUMNS, of_transactions=False)
    every = by_rows(tmp_path, topic, asked).to_pylist()
    found = at_once_of(tmp_path, topic, replace(asked, only_last=True))
    left = [row for batch in found for row in batch.to_pylist()]
    assert all(row in every for row in left)

    def last(rows: list[Any]) -> dict[str, Any]:
        return {str([row[one] and row[one]["key"] for one in names]): row for row in rows}

    assert last(left) == last(every)
    assert len(last(every)) <= len(left) <= len(every)
    # The whole batch is read, although the last record cannot be decoded.
    assert damages < 9999 or len(left) < len(every) / 2


def test_where_the_last_does_not_decode_the_one_before_it_stays(tmp_path: Path) -> None:
    topic, made = InternalTopic.CONSUMER_OFFSETS, MadeTopic(InternalTopic.CONSUMER_OFFSETS.topic)
    for offset in range(5):
        made.add(*commit(0, offset))
    made.add(commit(0, 5)[0], b"\0\1")
    made.write(tmp_path)
    asked = LogSelection({"OffsetCommit": ["value.offset"]}, ["offset"], only_last=True)
    rows = [row for one in at_once_of(tmp_path, topic, asked) for row in one.to_pylist()]
    assert rows[-1] == {"offset": 4, "OffsetCommit": {"value": {"offset": 4}}}


def test_of_two_records_of_one_type_that_is_given_which_is_asked_for(tmp_path: Path) -> None:
    topic, made = InternalTopic.METADATA, MadeTopic(InternalTopic.METADATA.topic)
    for row in real_records(topic):
        made.add(*row)
    made.write(tmp_path)
    [names] = [one for one in framed_messages(topic.module).values() if len(one) > 1]
    given = [
        {row["message"] for one in batches for row in one.to_pylist()}
        for batches in (
            at_once_of(tmp_path, topic, LogSelection([one], ["message"])) for one in names
        )
    ]
    assert all(found <= {name} for name, found in zip(names, given, strict=True))
    assert any(given)


def test_what_is_no_batch_is_an_error_and_a_torn_end_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic = InternalTopic.SHARE_STATE
    [log] = damaged_log(tmp_path, topic).glob(f"*-0/{BASE}.log")
    data = log.read_bytes()
    log.write_bytes(data[:-5])
    assert check(tmp_path, topic) > 100
    assert "as a broker would do: the log ends after" in caplog.text
    log.write_bytes(data[:3000] + b"\xff" * 40 + data[3040:])
    asked = LogSelection(["ShareUpdate"], COLUMNS)
    with pytest.raises(CaptureError) as by_row:
        by_rows(tmp_path, topic, asked)
    with pytest.raises(CaptureError) as at_once:
        at_once_of(tmp_path, topic, asked)
    assert str(at_once.value) == str(by_row.value)


def same(found: DataFrame, wanted: DataFrame) -> int:
    assert found.schema == wanted.schema
    rows = sorted(map(str, found.collect()))
    assert rows == sorted(map(str, wanted.collect()))
    return len(rows)


FIELDS = {"OffsetCommit": ["key.topic", "value"], "GroupMetadata": []}


@pytest.mark.long
def test_a_log_of_files_says_what_a_log_of_rows_says(spark: SparkSession, tmp_path: Path) -> None:
    log = open_log(spark, damaged_log(tmp_path, InternalTopic.CONSUMER_OFFSETS), "consumer-offsets")
    log = replace(log, until={0: 99}, cleaned={0: 150})
    assert same(log.typed(FIELDS), replace(log, files=None).typed(FIELDS)) > 5


@pytest.mark.cluster
def test_so_do_views_and_what_is_unreadable(spark: SparkSession, tmp_path: Path) -> None:
    log = open_log(spark, damaged_log(tmp_path, InternalTopic.CONSUMER_OFFSETS), "consumer-offsets")
    rows = replace(log, files=None)
    assert same(unreadable(log, ["OffsetCommit"]), unreadable(rows, ["OffsetCommit"])) > 10
    assert same(last_commits(log), last_commits(rows)) > 1
    assert same(groups(log), groups(rows)) > 1
    assert same(group_members(log), group_members(rows)) > 1
    # The counted rows are not the rows in the files.
    less = replace(log, rows=log.rows.where("offset < 100"))
    found = less.typed(FIELDS, ["is_tombstone"])
    assert found.columns[:3] == ["partition", "offset", "is_tombstone"]
    assert max(row.offset for row in found.collect()) < 100


def test_what_is_replaced_in_another_batch_of_the_log_is_left_out(tmp_path: Path) -> None:
    topic, made = InternalTopic.CONSUMER_OFFSETS, MadeTopic(InternalTopic.CONSUMER_OFFSETS.topic)
    for offset in range(5000):
        made.add(*commit(offset % 3, offset))
    made.write(tmp_path)
    whole = [*plan([tmp_path], LogQuery(topics=[topic.topic]))]
    [[piece]] = whole
    asked = LogSelection({"OffsetCommit": ["value.offset"]}, ["offset"], only_last=True)
    found = typed_piece(topic.value, asked, columns_of(asked), piece)
    offsets = [one for batch in found for one in batch.column("offset").to_pylist()]
    assert offsets == [4997, 4998, 4999]


def test_only_batches_of_transactions_are_read_for_what_transactions_committed(
    tmp_path: Path,
) -> None:
    topic, made = InternalTopic.CONSUMER_OFFSETS, MadeTopic(InternalTopic.CONSUMER_OFFSETS.topic)
    for offset in range(20):
        made.add(*commit(0, offset), producer=7 if offset % 4 else -1)
    made.write(tmp_path)
    [[piece]] = plan([tmp_path], LogQuery(topics=[topic.topic]))
    read = [*read_piece(piece, ["offset"], of_transactions=True)]
    batches = [one for one in read if not isinstance(one, BatchDamage)]
    assert len(batches) == len(read)
    offsets = [one for batch in batches for one in batch.column("offset").to_pylist()]
    assert offsets == [one for one in range(20) if one % 4]
