"""With every reader of compressed batches, read a batch that exceeds a limit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from flexwire.columnar.batch_digests import BatchDigests
from flexwire.columnar.records import RecordReader, RecordSelection
from flexwire.errors import RecordError
from flexwire.records import decode_batches
from flexwire.records.inflation import BEYOND, Inflation, records_within
from flexwire.spark.functions.messages import MODE, read_options
from flexwire.spark.functions.records import record_lists
from flexwire.tables.records import object_rows, record_runs
from flexwire.tables.schema import RECORDS
from tests.records.batches import batch, record
from tests.tables.carrying import PRODUCE, Carrier, Topic, message_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.records.inflating import Form


class Outcome(NamedTuple):
    """The number of records that an executor read, and its reasons for refused batches."""

    records: int
    reasons: list[str]


def by_objects(data: bytes, how: Inflation) -> Outcome:
    read, reasons = 0, []
    for one in decode_batches(data, max_inflated=how.max_inflated):
        try:
            read += len(records_within(one, how.ratio))
        except RecordError as error:
            reasons.append(error.reason)
    return Outcome(read, reasons)


def reader_of(data: bytes, how: Inflation, mode: Any = "PERMISSIVE") -> RecordReader:
    wanted = RecordSelection(("value",), max_inflated=how.max_inflated, max_ratio=how.ratio)
    return RecordReader(data, wanted, mode=mode)


def _by_columns(data: bytes, how: Inflation) -> Outcome:
    reader = reader_of(data, how)
    return Outcome(sum(map(len, reader)), [one.reason for one in reader.errors])


def _by_digests(data: bytes, how: Inflation) -> Outcome:
    reader, digests = reader_of(data, how), BatchDigests(lambda _: None)
    reader.count_into(digests)
    assert not list(reader)
    read = sum(digests.take()["records"].to_pylist())
    return Outcome(read, [one.reason for one in reader.errors])


def outcome(rows: Iterator[pa.RecordBatch]) -> Outcome:
    told = [row for some in rows for row in some.to_pylist()]
    reasons = [row["error"].partition(": ")[2] for row in told if row["error"] is not None]
    return Outcome(sum(row["offset"] is not None for row in told), reasons)


def _by_table(data: bytes, how: Inflation) -> Outcome:
    carried = message_rows(PRODUCE, [Carrier(0, [Topic("t", None, [(0, data)])])])
    return outcome(rows.batch() for rows in record_runs(carried, PRODUCE, inflation=how))


def _by_rows(data: bytes, how: Inflation) -> Outcome:
    told = [(None,) * (len(RECORDS) - len(row)) + row for row, _ in object_rows(data, 0, how)]
    each = list(zip(*told, strict=True))
    columns = [pa.array(one, kind) for one, kind in zip(each, RECORDS.types, strict=True)]
    return outcome(iter([pa.RecordBatch.from_arrays(columns, schema=RECORDS)]))


def _by_lists(data: bytes, how: Inflation) -> Outcome:
    options = replace(read_options({"mode": "PERMISSIVE"}, MODE), inflation=how)
    [row] = record_lists(("value",), options, pa.array([data])).to_pylist()
    wrong = [one["_corrupt_record"] for one in row if one["_corrupt_record"] is not None]
    return Outcome(len(row) - len(wrong), [one["reason"] for one in wrong])


EXECUTORS = (_by_lists, by_objects, _by_columns, _by_digests, _by_table, _by_rows)
PLAIN = batch(record(value=b"beside"), 1)


def check(form: Form, body: bytes, count: int, how: Inflation, *, is_read: bool) -> None:
    """Check that all executors read a batch, or refuse it due to the limit and read the others."""
    data = form.packed(body, count)
    if form.magic == 2:
        data = PLAIN + data + PLAIN
    beside = 2 if form.magic == 2 else 0
    told = [run(data, how) for run in EXECUTORS]
    if is_read:
        assert told == [Outcome(beside + count, [])] * len(told)
        return
    assert {one.records for one in told} == {beside}
    # All errors have the same wording. Only the number of "inside" phrases differs.
    reasons = {tuple(one.partition(" (at byte")[0] for one in each.reasons) for each in told}
    [[reason]] = reasons
    assert BEYOND in reason
