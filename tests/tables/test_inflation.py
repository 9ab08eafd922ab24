"""Every executor limits and counts the inflated size of compressed batches in the same way."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from flexwire.columnar.batch_digests import BatchDigests
from flexwire.records import MAX_INFLATED
from flexwire.records.inflation import BEYOND, RECORD_COST, Inflation
from flexwire.tables.inflation import (
    BeyondAllowanceError,
    InflationMeter,
    digested_bytes,
    inflated_bytes,
    within_allowance,
)
from flexwire.tables.records import record_rows, record_runs
from tests.records.batches import record
from tests.records.inflating import FORMS, bomb
from tests.spark.test_record_sums import hostile_rows
from tests.tables.carrying import PRODUCE, Carrier, Topic, message_rows
from tests.tables.inflating import PLAIN, Outcome, by_objects, check, outcome, reader_of


@pytest.mark.parametrize("name", FORMS)
def test_a_batch_at_its_bound_is_read_and_one_byte_more_is_not(name: str) -> None:
    form = FORMS[name]
    body = form.body([b"x" * 500] * 9)
    check(form, body, 9, Inflation(len(body)), is_read=True)
    check(form, body, 9, Inflation(len(body) - 1), is_read=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_a_batch_at_its_ratio_is_read_and_one_byte_more_is_not(name: str) -> None:
    form, ratio = FORMS[name], 6
    held = Inflation(max_ratio=ratio).held()
    # Values grow until a batch has exactly the maximum allowed size. Not every length compresses to
    # that size.
    for size in range(40, 3000):
        body = form.body([b"x" * size] * 3)
        if len(body) == ratio * len(form.packed(body, 3)):
            break
    else:
        pytest.fail("no length makes this ratio")
    check(form, body, 3, held, is_read=True)
    check(form, body, 3, Inflation(max_ratio=ratio), is_read=True)
    longer = next(
        one
        for one in (form.body([b"x" * more] * 3) for more in range(size, 3000))
        if len(one) > ratio * len(form.packed(one, 3))
    )
    check(form, longer, 3, held, is_read=False)


@pytest.mark.parametrize("name", ["magic 2, zstd", "magic 2, gzip"])
def test_records_and_headers_count_against_the_ratio(name: str) -> None:
    form = FORMS[name]
    headers = record(headers=[(b"", None)] * 4000)
    for body, count in ((record() * 4000, 4000), (headers, 1)):
        size = len(form.packed(body, count))
        # The bytes of the records alone are far below both ratios.
        enough = -(-4001 * 32 // size)
        assert len(body) < enough * size
        check(form, body, count, Inflation(max_ratio=enough).held(), is_read=True)
        check(form, body, count, Inflation(max_ratio=enough // 2).held(), is_read=False)


def test_constant_data_may_inflate_to_ten_thousand_times_its_bytes() -> None:
    form = FORMS["magic 2, zstd"]
    body = form.body([bytes(1_000_000)] * 3)
    assert len(body) > 10_000 * len(form.packed(body, 3))
    check(form, body, 3, Inflation(), is_read=True)
    check(form, body, 3, Inflation().held(), is_read=False)


@pytest.mark.parametrize("name", FORMS)
def test_a_batch_without_compression_has_no_bound_but_its_bytes(name: str) -> None:
    del name
    assert by_objects(PLAIN, Inflation(0, 1).held()) == Outcome(1, [])


def _by_hand(rows: pa.RecordBatch, max_inflated: int) -> int:
    total = 0
    for row in rows.to_pylist():
        if row["compression"] in {None, "none"}:
            continue
        if row["error"] is not None:
            total += max_inflated
            continue
        headers = row["headers"] or []
        total += RECORD_COST * (1 + len(headers))
        total += sum(len(one or b"") for one in (row["key"], row["value"]))
        total += sum(len(one["key"]) + len(one["value"] or b"") for one in headers)
    return total


def test_what_batches_take_is_the_same_however_their_rows_are_cut() -> None:
    source = random.Random(5)
    counted = 0
    for rows in hostile_rows():
        expected = _by_hand(rows, 1000)
        assert inflated_bytes(rows, 1000) == expected
        cuts = sorted(source.randrange(len(rows) + 1) for _ in range(3))
        parts = [
            rows.slice(begin, end - begin)
            for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)
        ]
        assert sum(inflated_bytes(one, 1000) for one in parts) == expected
        counted += expected > 0
    assert counted
    assert inflated_bytes(rows.slice(0, 0), 1000) == 0


def test_rows_in_runs_take_what_they_take_one_by_one() -> None:
    data = b"".join(
        form.packed(form.body([b"x" * 50, b"", b"yy"]), 3)
        for form in FORMS.values()
        if form.magic == 2
    )
    headers = record(key=b"k", headers=[(b"h", b"value"), (b"", None)])
    data += PLAIN + FORMS["magic 2, lz4"].packed(headers, 1) + bomb(9)
    carried = message_rows(PRODUCE, [Carrier(0, [Topic("t", None, [(0, data), (1, PLAIN)])])])
    runs = list(record_runs(carried, PRODUCE))
    [rows] = pa.Table.from_batches(record_rows(carried, PRODUCE)).combine_chunks().to_batches()
    expected = _by_hand(rows, MAX_INFLATED)
    assert sum(inflated_bytes(one, MAX_INFLATED) for one in runs) == expected > 0
    parts = [one.slice(at, 2) for one in runs for at in range(0, len(one), 2)]
    assert sum(inflated_bytes(one, MAX_INFLATED) for one in parts) == expected


def test_digests_say_what_batches_take() -> None:
    form = FORMS["magic 2, zstd"]
    body = record(key=b"k", headers=[(b"h", b"value"), (b"", None)]) * 3
    reader = reader_of(PLAIN + form.packed(body, 3), Inflation())
    taken: list[int] = []
    reader.count_into(
        BatchDigests(lambda _: None, heard=lambda one: taken.append(digested_bytes(one)))
    )
    assert not list(reader)
    assert sum(taken) == 61 + len(body) + 9 * RECORD_COST


@pytest.mark.slow
def test_what_takes_too_much_is_read_again_with_each_batch_held() -> None:
    one = bomb(1000)
    data = PLAIN + one * 20
    # A thousand records take 256 bytes each.
    allowed = Inflation(max_inflated=100_000, max_ratio=40)
    assert allowed.allowance(len(data)) < 20 * 1000 * RECORD_COST
    read: list[Outcome] = []

    def write(how: Inflation) -> None:
        meter, rows = InflationMeter(how, len(data)), []
        carried = message_rows(PRODUCE, [Carrier(0, [Topic("t", None, [(0, data)])])])
        for some in record_runs(carried, PRODUCE, inflation=how):
            rows.append(some.batch())
            meter.add(some)
            meter.check()
        read.append(outcome(iter(rows)))

    within_allowance(allowed, write)
    [held] = read
    assert held.records == 1
    assert len(held.reasons) == 20
    assert all(BEYOND in reason and "40 times" in reason for reason in held.reasons)
    # A larger ratio leaves room for all records.
    within_allowance(Inflation(max_inflated=100_000, max_ratio=8000), write)
    assert read[1] == Outcome(20_001, [])


def test_a_meter_says_at_which_byte_the_allowance_ends() -> None:
    how = Inflation(max_inflated=100, max_ratio=10)
    meter = InflationMeter(how, 5)
    meter.take(150)
    meter.check()
    assert meter.inflation is how
    meter.take(1)
    assert meter.inflation == how.held()
    with pytest.raises(BeyondAllowanceError):
        meter.check()
    # Bounded batches cannot exceed the ratio, so nothing is read a third time.
    held = InflationMeter(how.held(), 5)
    held.take(10_000)
    held.check()
