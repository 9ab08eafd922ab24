"""Columns and objects read records at the limits of `columns_common` alike, errors included."""

from __future__ import annotations

from itertools import product

import pytest

from flexwire.columnar.records import RecordReader, RecordSelection
from flexwire.kernels import load_kernel
from flexwire.wire.limits import FIRST_MILLISECOND, LAST_MILLISECOND
from flexwire.wire.varint import write_varint
from tests.columnar.test_records import ALL, in_columns, in_objects
from tests.each import each
from tests.records import batches as by_hand

# Values on both sides of every length boundary of a zig-zag number of up to four bytes.
EDGES: list[int] = [number for bits in (6, 13, 20) for number in (2**bits - 1, 2**bits)]
DELTAS = [0, -1, *EDGES, *(-1 - edge for edge in EDGES)]
# This many bytes beyond the end of a column are writable, because text is copied in chunks.
SPARE = 64
LENGTHS: list[int | None] = [None, 0, 1, SPARE - 1, SPARE, SPARE + 1, 511, 512, 513, *EDGES[:4]]
CASES = {
    "deltas": [
        by_hand.record(offset, timestamp) for timestamp, offset in product(DELTAS, [0, 1, *EDGES])
    ],
    "texts": [
        by_hand.record(
            number,
            key=None if key is None else bytes([number % 256]) * key,
            value=None if value is None else bytes([255 - number % 256]) * value,
        )
        for number, (key, value) in enumerate(product(LENGTHS, LENGTHS))
    ],
    "long texts": [
        by_hand.record(number, value=b"v" * length) for number, length in enumerate(EDGES)
    ],
    "headers": [
        by_hand.record(number, headers=[(b"k" * count, b"v"), *[(b"", None)] * (count - 1)])
        for number, count in enumerate([1, 2, 62, 63, 64, 65, 8191, 8192])
    ],
    "header texts": [
        by_hand.record(
            number,
            headers=[(b"k" * (key or 0), None if value is None else b"v" * value), (b"x", b"y")],
        )
        for number, (key, value) in enumerate(product(LENGTHS, LENGTHS))
    ],
}
# One record, and the position of each number in it.
RECORD = by_hand.record(0, 0, b"key", b"value", [(b"name", b"content")])
PLACES = {
    "timestamp": 2,
    "offset": 3,
    "key": 4,
    "value": 8,
    "count": 14,
    "header key": 15,
    "header value": 20,
}
WRONG: dict[str, bytes | None] = {
    "null": b"\x01",
    "overlong": b"\x82\x00",
    "overlong in three": b"\x82\x80\x00",
    "overlong zero": b"\x80\x00",
    "negative": b"\x03",
    "one more": None,
    "huge": b"\xfe\xff\xff\xff\x0f",
    "too many bytes": b"\xff" * 11,
    "beyond": b"\xc8\x01",
}


def body(records: list[bytes]) -> bytes:
    return b"".join(records)


def agree(data: bytes) -> tuple[int, int]:
    """Return the number of rows and of errors, which must be equal for columns and objects."""
    rows, errors, unread = in_columns(data, columns=ALL)
    assert (rows, errors, unread) == in_objects(data)
    return len(rows), len(errors)


def test_the_kernels_are_asked() -> None:
    assert load_kernel("records_read") is not None


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("attributes", [0, 8], ids=["create time", "append time"])
def test_numbers_and_texts_of_every_length_are_those_of_objects(name: str, attributes: int) -> None:
    records = CASES[name]
    data = by_hand.batch(
        body(records), len(records), attributes=attributes, last_offset_delta=2**30
    )
    assert agree(data * 2) == (2 * len(records), 0)


@pytest.mark.parametrize(
    "base",
    [-2, -1, 0, 1, 2**20, *(FIRST_MILLISECOND + one for one in (-1, 0, 2**20 - 1, 2**20))]
    + [LAST_MILLISECOND - one for one in (-1, 0, 2**20 - 1, 2**20)],
)
def test_timestamps_around_the_edges_of_moments_are_those_of_objects(base: int) -> None:
    records = [by_hand.record(number, delta) for number, delta in enumerate(DELTAS)]
    data = by_hand.batch(body(records), len(records), base_timestamp=base)
    assert agree(data) == (len(records), 0)


@each("place", [*PLACES])
@each("wrong", [*WRONG])
def test_a_wrong_number_is_the_error_of_the_objects(place: str, wrong: str) -> None:
    """Put the record between two valid ones, in a batch between two others, with the
    right length.
    """
    at, written = PLACES[place], WRONG[wrong]
    number = bytes([RECORD[at] + 2]) if written is None else written
    content = RECORD[1:at] + number + RECORD[at + 1 :]
    damaged = write_varint(len(content)) + content
    sound = by_hand.batch(RECORD * 3, 3)
    data = sound + by_hand.batch(RECORD + damaged + RECORD, 3) + sound
    rows, errors = agree(data)
    assert (rows, errors) in {(6, 1), (9, 0)}
    if wrong not in {"null", "one more"} and place not in {"timestamp", "offset"}:
        assert errors == 1


@pytest.mark.parametrize("place", range(4, 9))
@pytest.mark.parametrize("byte", [0, 1, 2, 3, 5])
def test_nulls_and_what_is_none_are_those_of_the_objects(place: int, byte: int) -> None:
    """A null key, a null value, an empty header key, and a null header value."""
    wrong = bytearray(by_hand.record(0, 0, None, None, [(b"", None)]))
    wrong[place] = byte
    # As many bytes follow the record as `columns_common` requires.
    rows, errors = agree(by_hand.batch(RECORD + bytes(wrong) + RECORD * 2, 4))
    may_be = {4: {0, 1}, 5: {0, 1}, 6: {2}, 7: {0}, 8: {0, 1}}
    assert (rows, errors) == ((4, 0) if byte in may_be[place] else (0, 1))


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("by", [-3, -1, 1, 2, 100])
def test_a_count_or_a_length_that_lies_is_the_error_of_the_objects(count: int, by: int) -> None:
    longer = write_varint(len(RECORD) - 1 + by) + RECORD[1:]
    for records in (RECORD * max(count + by, 0), RECORD + longer + RECORD):
        data = by_hand.batch(records, 3 if longer in records else count) * 2
        agree(data)


def test_of_columns_that_are_not_wanted_nothing_is_put() -> None:
    records = [record for name in ("texts", "header texts") for record in CASES[name]]
    data = by_hand.batch(body(records), len(records))
    whole = next(iter(RecordReader(data, RecordSelection())))
    for name in whole.schema.names:
        alone = next(iter(RecordReader(data, RecordSelection(columns=(name,)))))
        assert alone[name].equals(whole[name])


def test_records_refused_after_their_headers_were_put_leave_no_trace() -> None:
    """Records that are refused after their headers were written leave nothing in the columns."""
    some: by_hand.Headers = [(b"a", None)] * 3
    nulls = by_hand.record(1, 0, None, None, [*some, (b"b" * 2**20, None)])
    texts = by_hand.record(2, 0, b"k", b"v", [(b"c", b"d")] * 5)
    data = by_hand.batch(texts + nulls + texts, 3)
    assert agree(data) == (3, 0)
