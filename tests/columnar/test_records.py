"""Columns of records equal the records that `flexwire.records` reads, errors included."""

from __future__ import annotations

import io
import random
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.columnar import record_encoding, records
from flexwire.columnar.record_columns import BATCH_COLUMNS, RECORD_COLUMNS
from flexwire.columnar.record_encoding import encode_records
from flexwire.columnar.records import RecordReader, RecordSelection, decode_records
from flexwire.errors import EncodeError, RecordError
from flexwire.kernels import load_kernel
from flexwire.logs.segments import BatchPlace, Damage, LogFile, place_at, walk
from flexwire.records import (
    Compression,
    PartialBatch,
    Record,
    RecordBatch,
    decode_batches,
    encode_batch,
)
from flexwire.wire.varint import write_varint
from tests.each import each
from tests.records import batches as by_hand
from tests.records.strategies import message_sets, record_batches
from tests.records.test_vectors import VECTORS
from tests.searching import times

DOCUMENTS = [bytes.fromhex(vector["hex"]) for vector in VECTORS]
ALL = (*RECORD_COLUMNS, *BATCH_COLUMNS)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Row = tuple[Any, ...]


@pytest.fixture(params=["kernels", "no kernels"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "kernels":
        assert load_kernel("records_read") is not None
        return
    monkeypatch.setattr(records, "load_kernel", lambda _: None)
    monkeypatch.setattr(record_encoding, "load_kernel", lambda _: None)


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    batch.validate(full=True)
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def in_columns(data: Any, **wanted: Any) -> tuple[list[Row], list[str], int]:
    reader = RecordReader(data, RecordSelection(**wanted), mode="PERMISSIVE")
    rows = [row for batch in reader for row in rows_of(batch)]
    assert reader.position == len(data)
    assert reader.partial is None
    return rows, [str(error) for error in reader.errors], reader.unread


def moment(timestamp: int) -> datetime | None:
    """Return Python's date for a timestamp, or None if Python has no such date."""
    try:
        return None if timestamp == -1 else EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:
        return None


def as_rows(batch: RecordBatch) -> list[Row]:
    facts = (
        batch.position,
        batch.size,
        batch.magic,
        str(batch.compression),
        batch.base_offset,
        batch.last_offset,
        batch.partition_leader_epoch,
        moment(batch.max_timestamp),
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.is_transactional,
        batch.is_control,
        batch.has_delete_horizon,
    )
    return [
        (
            one.offset,
            moment(one.timestamp),
            str(batch.timestamp_type),
            one.key,
            one.value,
            [{"key": key, "value": value} for key, value in one.headers],
            *facts,
        )
        for one in batch.records
    ]


def in_objects(data: bytes, **options: Any) -> tuple[list[Row], list[str], int]:
    """Return the rows of the batches that `records dump` finds, the errors, and their bytes."""
    rows: list[Row] = []
    errors: list[RecordError] = []
    unread = 0
    log = LogFile(Path("made"), io.BytesIO(data), len(data))
    for place in walk(log):
        try:
            if isinstance(place, Damage):
                unread += place.size
                place_at(log, place.position)
                pytest.fail("a whole batch is said to be none")
            whole = data[place.position : place.position + place.size]
            [batch] = decode_batches(whole, **options)
            # The batch is read before it moves, because its errors count from the given offset.
            assert len(batch.records) >= 0
            batch.position = place.position
            rows += as_rows(batch)
        except RecordError as error:
            reason = error.reason.replace("the file ends", "the data ends")
            offset = error.offset
            if isinstance(place, BatchPlace):
                unread += place.size
                offset += place.position
            errors.append(RecordError(reason, offset=offset))
    return rows, list(map(str, errors)), unread


@pytest.mark.slow
@pytest.mark.usefixtures("engine")
def test_every_document_has_the_rows_of_its_objects() -> None:
    for document in DOCUMENTS:
        assert in_columns(document, columns=ALL) == in_objects(document)
    together = b"".join(DOCUMENTS)
    assert in_columns(together, columns=ALL) == in_objects(together)


def test_the_kernels_read_all_documents_of_magic_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordReader, "_read_one", lambda _: pytest.fail("asks for objects"))
    for vector, document in zip(VECTORS, DOCUMENTS, strict=True):
        if vector["magic"] == 2:
            assert decode_records(document).num_rows == len(in_objects(document)[0])


@pytest.mark.slow
@given(st.data())
@settings(max_examples=times(100))
def test_damaged_data_gives_the_rows_and_errors_of_the_objects(data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.sampled_from(DOCUMENTS), min_size=1, max_size=3))
    raw = bytearray(b"".join(parts))
    for _ in range(data.draw(st.integers(0, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    check_crc = data.draw(st.booleans())
    given_ = {"check_crc": check_crc, "max_inflated": 1 << 20}
    assert in_columns(damaged, columns=ALL, **given_) == in_objects(damaged, **given_)


@pytest.mark.long
@pytest.mark.slow
@given(st.lists(record_batches() | message_sets(), max_size=4), st.integers(0, 40))
def test_any_batches_have_the_rows_of_their_objects(
    batches: list[tuple[list[Record], dict[str, Any]]], cut: int
) -> None:
    whole = b"".join(encode_batch(given_, **fields) for given_, fields in batches)
    data = whole[: max(0, len(whole) - cut)]
    assert in_columns(data, columns=ALL) == in_objects(data)


LENGTH_BITS = [(place, bit) for place in (8, 9, 10, 11) for bit in range(8)]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_flipped_bit_of_a_length_is_never_silence(which: int) -> None:
    data, _ = some_batches(3, 8)
    places = [batch.position for batch in decode_batches(data)]
    for place, bit in LENGTH_BITS:
        damaged = bytearray(data)
        damaged[places[which] + place] ^= 1 << bit
        for partial in (False, True):
            reader = RecordReader(
                damaged, RecordSelection(columns=ALL), mode="PERMISSIVE", partial=partial
            )
            rows = [row for batch in reader for row in rows_of(batch)]
            begin = ALL.index("batch_position")
            sizes: dict[int, int] = {row[begin]: row[begin + 1] for row in rows}
            told = 0 if reader.partial is None else reader.partial.size
            # Every byte is read or reported, and the other batches are read.
            assert sum(sizes.values()) + reader.unread + told == len(data)
            assert sizes.keys() <= set(places) - {places[which]}
            assert (len(reader.errors) > 0) == (reader.unread > 0)
            assert reader.errors or (partial and reader.partial is not None)
        with pytest.raises(RecordError):
            decode_records(damaged)
        if which != -1:
            with pytest.raises(RecordError):
                decode_records(damaged, partial=True)


def test_the_next_batch_is_found_where_the_length_reaches_beyond_the_end() -> None:
    data, _ = some_batches(3, 8)
    first, second, _ = decode_batches(data)
    damaged = bytearray(data)
    damaged[8] ^= 1 << 6
    rows, errors, unread = in_columns(damaged, columns=("offset",))
    assert rows == [(offset,) for offset in range(second.base_offset, rows[-1][0] + 1)]
    assert unread == first.size
    declared = first.size + (1 << 30)
    reason = f"the batch declares {declared} bytes, but the data ends after {len(data)}"
    assert errors == [str(RecordError(reason))]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_an_end_within_a_batch_is_an_error_or_where_asked_the_partial_batch(magic: int) -> None:
    one = encode_batch([Record(0, 1 if magic else -1, b"k", b"v" * 90, [])], magic=magic)
    for cut in range(1, len(one)):
        data = one + one[:cut]
        with pytest.raises(RecordError, match=r"the data ends after") as caught:
            decode_records(data)
        assert caught.value.offset == len(one)
        table = decode_records(data, columns=["value"], partial=True)
        assert table["value"].to_pylist() == [b"v" * 90]
        reader = RecordReader(data, RecordSelection(), partial=True)
        assert sum(map(len, reader)) == 1
        declared = None if cut < 12 else len(one)
        assert reader.partial == PartialBatch(len(one), cut, declared)
        assert reader.unread == 0


# The first and the last millisecond for which Python has a date.
FIRST = (datetime.min.replace(tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)
LAST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)
MOMENTS = (-(2**63), FIRST - 1, FIRST, -2, -1, 0, LAST, LAST + 1, 2**63 - 1)


@pytest.mark.usefixtures("engine")
@each("magic", [1, 2])
@each("timestamp", MOMENTS)
def test_a_timestamp_is_null_where_there_is_no_date(timestamp: int, magic: int) -> None:
    records = [Record(0, timestamp, b"k", b"v", []), Record(1, timestamp, b"k", b"v", [])]
    data = encode_batch(records, magic=magic)
    assert in_columns(data, columns=ALL) == in_objects(data)
    has_date = FIRST <= timestamp <= LAST and timestamp != -1
    assert decode_records(data)["timestamp"].null_count == (0 if has_date else 2)


EDGES = (-(2**63), -(2**62) - 1, -(2**62), 0, 2**62 - 1, 2**62, 2**63 - 1)


@each("base", EDGES)
@each("delta", EDGES)
def test_sums_beyond_64_bits_are_the_errors_of_the_objects(base: int, delta: int) -> None:
    within = max(min(delta, 2**31 - 1), -(2**31))
    numbers = [
        by_hand.batch(by_hand.record(timestamp_delta=delta), 1, base_timestamp=base),
        by_hand.batch(by_hand.record(offset_delta=within), 1, base_offset=base),
    ]
    for data in numbers:
        assert in_columns(data) == in_objects_of(data)


LENGTHS = [-2, -1, 0, 1, 2, 3, 63, 64, 8191, 8192, 2**31 - 1, -(2**31)]


@each("place", ["key", "value", "header key", "header value"])
@each("length", LENGTHS)
@each("behind", [0, 1, 2, 64])
def test_lengths_that_lie_are_the_errors_of_the_objects(
    place: str, length: int, behind: int
) -> None:
    told, there = write_varint(length), bytes(max(0, min(abs(length), 9000) + behind - 1))
    parts = {one: write_varint(1) + b"x" for one in ("key", "value", "header key", "header value")}
    parts[place] = told + there
    header = write_varint(1) + parts["header key"] + parts["header value"]
    content = bytes(3) + parts["key"] + parts["value"] + header
    one = write_varint(len(content)) + content
    data = by_hand.batch(one + by_hand.record(1, value=bytes(40)), 2)
    assert in_columns(data) == in_objects_of(data)


def in_objects_of(data: bytes) -> tuple[list[Row], list[str], int]:
    """Return the result of `in_columns`, without reading the facts of batches."""
    rows, errors, unread = in_objects(data)
    return [row[: len(RECORD_COLUMNS)] for row in rows], errors, unread


def some_batches(count: int, seed: int) -> tuple[bytes, list[Record]]:
    source = random.Random(seed)
    made: list[Record] = []
    data = b""
    for _ in range(count):
        batch = [
            Record(
                len(made) + place,
                1_000 + source.randrange(5000),
                source.choice([None, b"", b"key", b"k" * 300]),
                source.choice([None, b"", b"value", b"v" * source.randrange(3000)]),
                [(b"h", source.choice([None, b"", b"x" * 40]))] * source.choice([0, 0, 1, 5]),
            )
            for place in range(source.choice([1, 3, 50]))
        ]
        data += encode_batch(batch, compression=source.choice(list(Compression)))
        made += batch
    return data, made


@pytest.mark.parametrize("group", [1, 5_000, 1 << 23])
def test_rooms_that_are_too_small_lose_nothing(group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_GROUP", group)
    monkeypatch.setattr(records, "_TABLE", 7)
    data, _ = some_batches(60, 1)
    assert in_columns(data, columns=ALL) == in_objects(data)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("offsets", "timestamps"),
    [
        ((10, 200), (None, None)),
        ((80, None), (None, None)),
        ((None, 80), (None, None)),
        ((None, None), (2500, None)),
        ((None, None), (None, 2500)),
        ((None, 57), (2000, None)),
        ((300, None), (None, 3000)),
        ((10, 900), (1500, 5500)),
        ((10**9, None), (None, None)),
    ],
)
def test_ranges_keep_what_is_in_them(offsets: Any, timestamps: Any) -> None:
    data, made = some_batches(40, 2)

    def inside(value: int, ends: Any) -> bool:
        low, high = ends
        return (low is None or low <= value) and (high is None or value <= high)

    expected = [
        (one.offset, one.key, [{"key": key, "value": value} for key, value in one.headers])
        for one in made
        if inside(one.offset, offsets) and inside(one.timestamp, timestamps)
    ]
    columns = ("offset", "key", "headers")
    given_ = {"columns": columns, "offsets": offsets, "timestamps": timestamps}
    assert in_columns(data, **given_)[0] == expected


@pytest.mark.usefixtures("engine")
def test_the_ends_of_a_range_are_inside_at_the_edges_of_batches_too() -> None:
    data, made = some_batches(8, 7)
    for batch in decode_batches(data):
        for edge in (batch.base_offset, batch.last_offset):
            assert in_columns(data, columns=("offset",), offsets=(edge, edge))[0] == [(edge,)]
        newest = batch.max_timestamp
        expected = [(one.offset,) for one in made if one.timestamp == newest]
        assert expected
        found = in_columns(data, columns=("offset",), timestamps=(newest, newest))
        assert found[0] == expected


def test_batches_out_of_range_are_not_looked_into() -> None:
    data, made = some_batches(5, 3)
    damaged = bytearray(data)
    damaged[-1] ^= 0xFF
    last = [*decode_batches(data)][-1]
    reader = RecordReader(bytes(damaged), RecordSelection(offsets=(None, last.base_offset - 1)))
    assert sum(map(len, reader)) == last.base_offset == len(made) - len(last.records)


@pytest.mark.parametrize("name", ALL)
def test_a_column_alone_is_that_column(name: str) -> None:
    data = DOCUMENTS[0] + some_batches(6, 4)[0] + DOCUMENTS[-1]
    place = ALL.index(name)
    assert in_columns(data, columns=(name,))[0] == [(row[place],) for row in in_objects(data)[0]]


def test_any_buffer_is_taken_and_a_table_given() -> None:
    data, made = some_batches(3, 5)
    for given_ in (
        data,
        bytearray(data),
        memoryview(data),
        pa.py_buffer(data),
        np.frombuffer(data, np.uint8),
    ):
        table = decode_records(given_, columns=["offset", "value"])
        assert table.column_names == ["offset", "value"]
        assert table["value"].to_pylist() == [one.value for one in made]
    assert decode_records(b"").num_rows == 0
    with pytest.raises(ValueError, match=r"^columns: expected names of "):
        decode_records(data, columns=["ofset"])


def test_failing_fast_raises_what_the_objects_raise() -> None:
    data = bytearray(DOCUMENTS[0] + DOCUMENTS[-1])
    data[-1] ^= 0xFF
    with pytest.raises(RecordError) as caught:
        decode_records(data)
    assert [str(caught.value)] == in_objects(bytes(data))[1]


@pytest.mark.slow
@pytest.mark.usefixtures("engine")
@given(batches=st.lists(record_batches(), max_size=4), each=st.integers(1, 7))
def test_what_is_decoded_is_encoded_again(
    batches: list[tuple[list[Record], dict[str, Any]]], each: int
) -> None:
    data = b"".join(encode_batch(given_, **fields) for given_, fields in batches)
    rows = decode_records(data)
    with suppress(EncodeError):
        # Offsets of batches that are far apart, or descend, are refused.
        again = encode_records(rows, records_per_batch=each, compression="lz4")
        columns = ("offset", "timestamp", "key", "value", "headers")
        assert in_columns(again, columns=columns)[0] == in_columns(data, columns=columns)[0]
        assert all(len(batch.records) <= each for batch in decode_batches(again))


@pytest.mark.slow
@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("compression", Compression)
def test_columns_are_written_as_objects_are(compression: Compression) -> None:
    made = [Record(7, 50, None, b"v", []), Record(9, 10, b"k", None, [(b"h", None), (b"", b"x")])]
    made += [Record(10 + n, 20 + n, b"k" * n, b"v" * 300, [(b"a", b"b")] * n) for n in range(200)]
    data = encode_batch(made, compression=compression)
    rows = decode_records(data)
    assert encode_records(rows, compression=compression) == data
    sliced = rows.slice(1, 150)
    assert encode_records(sliced, compression=compression, records_per_batch=150) == encode_batch(
        made[1:151], compression=compression
    )


@pytest.mark.usefixtures("engine")
def test_columns_that_are_missing_or_of_a_near_type_have_their_meaning() -> None:
    rows = pa.RecordBatch.from_pydict({"value": ["größe", None], "other": [1, 2]})
    [batch] = decode_batches(encode_records(rows))
    assert batch.records == [
        Record(0, -1, None, "größe".encode(), []),
        Record(1, -1, None, None, []),
    ]
    seconds = pa.array([5, None], pa.timestamp("s"))
    headers = pa.array(
        [None, [("k", b"v")]],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.large_binary())])),
    )
    rows = pa.RecordBatch.from_pydict({"timestamp": seconds, "headers": headers})
    [batch] = decode_batches(encode_records(rows))
    assert [one.timestamp for one in batch.records] == [5000, -1]
    assert [one.headers for one in batch.records] == [[], [(b"k", b"v")]]
    assert encode_records(rows.slice(0, 0)) == b""


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("columns", "path", "reason"),
    [
        ({"offset": [1, None]}, "offset", "row 1 is null"),
        ({"offset": [0, 2**40]}, "offset", "differs by more than 32 bits"),
        ({"offset": [5, 4]}, "last_offset", "expected the base offset 5 plus 0 to"),
        ({"timestamp": [-(2**62), 2**63 - 1]}, "timestamp", "differs by more than 64 bits"),
        ({"value": [1.5, 2.5]}, "value", "cannot convert double to binary"),
        ({"headers": [[(None, b"x")], []]}, "headers", "expected bytes"),
    ],
)
def test_what_no_record_can_hold_is_refused(
    columns: dict[str, Any], path: str, reason: str
) -> None:
    pairs = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
    arrays = {
        name: pa.array(values, pairs if name == "headers" else None)
        for name, values in columns.items()
    }
    with pytest.raises(EncodeError, match=reason) as caught:
        encode_records(pa.RecordBatch.from_pydict(arrays))
    assert path in caught.value.path


@pytest.mark.usefixtures("engine")
def test_moments_are_written_as_whole_milliseconds_or_refused() -> None:
    moments = pa.array([5_000, None, -3_000], RECORD_COLUMNS["timestamp"])
    for column in (moments, pa.concat_arrays([moments, moments])[3:]):
        [batch] = decode_batches(encode_records(pa.RecordBatch.from_pydict({"timestamp": column})))
        assert [one.timestamp for one in batch.records] == [5, -1, -3]
    for part in (1, -1, 999, 2**63 - 1):
        column = pa.array([5_000, part, 1_000 - part % 1_000], RECORD_COLUMNS["timestamp"])
        with pytest.raises(EncodeError, match="would lose data"):
            encode_records(pa.RecordBatch.from_pydict({"timestamp": column}))


def test_threads_read_at_the_same_time() -> None:
    data, _ = some_batches(50, 6)
    expected = in_columns(data, columns=ALL)
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(in_columns(data, columns=ALL)))
        for _ in range(4)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [expected] * 4
