"""Whatever the bytes are, the records table has the same rows in columns as with Python objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.columnar import record_pieces
from flexwire.kernels import load_kernel
from flexwire.protocol import WITHHELD
from flexwire.protocol.credentials import METADATA_TOPIC, METADATA_TOPIC_ID
from flexwire.records import Compression, Record, encode_batch
from flexwire.records.inflation import INFLATION
from flexwire.tables import records
from flexwire.tables.records import record_rows
from flexwire.tables.schema import RECORDS, RECORDS_TABLE
from flexwire.tables.spec_places import RECORDS_FIELDS
from flexwire.wire.varint import uuid_text
from tests.records import batches as by_hand
from tests.records.strategies import message_sets, record_batches
from tests.records.test_vectors import VECTORS
from tests.reference.tables import as_stored, topic_names
from tests.reference.tables import record_rows as reference_rows
from tests.tables.carrying import (
    FETCH,
    NO_ID,
    PRODUCE,
    Carrier,
    Topic,
    as_table,
    expected_rows,
    message_rows,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flexwire.tables.spec_places import RecordsField

DOCUMENTS = [bytes.fromhex(vector["hex"]) for vector in VECTORS]
ANY_PARTITION = st.lists(record_batches() | message_sets(), max_size=3)
NAMES = {"id-1": "orders", "id-2": "zahlungen", "": "never", NO_ID: "never"}


@pytest.fixture(params=["kernels", "no kernels"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "kernels":
        assert load_kernel("batches") is not None
        return
    monkeypatch.setattr(record_pieces, "load_kernel", lambda _: None)


def check(
    where: RecordsField, carriers: Sequence[Carrier], names: Mapping[str, str] = NAMES
) -> pa.Table:
    """Compare the rows with those of the objects. Return the rows."""
    expected = as_table(expected_rows(where, carriers, names))
    rows = message_rows(where, carriers)
    # This is a slice of a larger table, whose offsets do not begin at 0.
    longer = pa.concat_batches([rows, rows])
    for given_ in (rows, longer.slice(len(rows))):
        batches = list(record_rows(given_, where, names))
        for batch in batches:
            batch.validate(full=True)
        found = pa.Table.from_batches(batches, RECORDS)
        assert found.to_pylist() == expected.to_pylist()
        assert found.combine_chunks().equals(expected.combine_chunks())
    return expected


def partitions_of(data: Sequence[bytes | None]) -> list[Carrier]:
    """Put each byte string into a partition, and a few partitions into a topic of a message."""
    topics = [
        Topic(
            name=("orders", "", None)[at % 3],
            topic_id=(NO_ID, "id-1", "unknown", "id-2")[at % 4],
            partitions=list(enumerate(data[2 * at : 2 * at + 2])),
        )
        for at in range((len(data) + 1) // 2)
    ]
    carriers = [Carrier(at, topics[at : at + 3]) for at in range(0, len(topics), 3)]
    return [*carriers, Carrier(900, None), Carrier(901, []), Carrier(902, [Topic("t", None, None)])]


def some_batch(count: int = 3, base: int = 0, **fields: Any) -> bytes:
    made = [
        Record(
            base + one,
            1_700_000_000_000 + one,
            b"k%d" % one,
            b"v" * one,
            [(b"h", b"w")] * (one % 3),
        )
        for one in range(count)
    ]
    return encode_batch(made, base_offset=base, **fields)


PARTIAL = some_batch()[:-7]
BAD_CRC = some_batch()[:-1] + b"\xff"
EMPTY = by_hand.batch(b"", 0)
CONTROL = some_batch(1, is_control=True, is_transactional=True)
SHORT = [
    (bytes(8) + size.to_bytes(4, "big") + bytes(4) + bytes([magic]) + bytes(60))[: size + 12]
    for magic, size in ((0, 13), (1, 21), (2, 48), (0, 5), (2, 2**31))
]
ODD = [
    *SHORT, *(short + some_batch() for short in SHORT), some_batch() + SHORT[0] + some_batch(),
    PARTIAL, BAD_CRC, EMPTY, CONTROL, PARTIAL[:11], PARTIAL[:16], PARTIAL[:17], PARTIAL[:60], b"\0",
    some_batch() + PARTIAL, some_batch() + BAD_CRC + some_batch(base=9), some_batch() + EMPTY,
    EMPTY + some_batch(), BAD_CRC + EMPTY + PARTIAL, by_hand.message(b"v", magic=0),
    by_hand.message(b"v", magic=1) + some_batch() + by_hand.message(None, magic=1)[:20],
    by_hand.batch(b"", 0, magic=3), some_batch() + by_hand.batch(b"", 0, magic=7) + some_batch(),
    by_hand.batch(b"", 5), by_hand.batch(b"", -1), by_hand.batch(b"", 1, attributes=7),
    by_hand.batch(b"", 1, last_offset_delta=-1), by_hand.batch(b"", 1, attributes=by_hand.GZIP),
    by_hand.batch(by_hand.record(), 1, base_offset=2**62),
    WITHHELD.encode(), WITHHELD.encode() + b"!", some_batch() + WITHHELD.encode(), b"", None,
]  # fmt: skip


@pytest.mark.usefixtures("engine")
def test_odd_partitions_between_sound_ones_have_the_rows_of_objects() -> None:
    between = [part for odd in ODD for part in (some_batch(), odd, odd, some_batch(base=5))]
    for where in RECORDS_FIELDS:
        rows = check(where, partitions_of(between))
    never_null = [one.name for one in RECORDS_TABLE if not one.null]
    assert [name for name in never_null if rows[name].null_count] == []
    assert {"orders", "zahlungen", None} == set(rows["topic"].to_pylist())


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("compression", list(Compression))
def test_every_compression_has_the_rows_of_objects(compression: Compression) -> None:
    data = [
        some_batch(count, base, compression=compression)
        for count, base in ((1, 0), (100, 1), (0, 5), (3, 2**40))
    ]
    check(PRODUCE, partitions_of([*data, b"".join(data), data[1][:-1], data[1] + PARTIAL]))


@pytest.mark.slow
@pytest.mark.usefixtures("engine")
def test_every_document_has_the_rows_of_objects() -> None:
    check(FETCH, partitions_of(DOCUMENTS))


def test_no_rows_and_no_records_give_no_batches() -> None:
    for carriers in ([], [Carrier(0, None)], partitions_of([None, b"", None])):
        assert not list(record_rows(message_rows(PRODUCE, carriers), PRODUCE))
        check(PRODUCE, carriers)


@pytest.mark.long
@pytest.mark.slow
@given(st.data())
@settings(max_examples=150)
def test_damaged_partitions_have_the_rows_of_objects(data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.lists(st.sampled_from(DOCUMENTS), max_size=3), max_size=5))
    whole = bytearray(b"".join(map(b"".join, parts)))
    for _ in range(data.draw(st.integers(0, 4)) if whole else 0):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    # The rows are divided again: sometimes between batches, otherwise within one.
    ends = data.draw(st.lists(st.integers(0, len(whole)), max_size=5))
    at = 0
    for part in parts:
        at += sum(map(len, part))
        ends.append(at)
    ends = sorted({*ends, len(whole)})
    pieces = [bytes(whole[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
    check(PRODUCE, partitions_of(pieces))


@pytest.mark.long
@pytest.mark.slow
@given(
    st.lists(st.lists(record_batches() | message_sets(), max_size=3), max_size=4),
    st.integers(0, 40),
)
def test_any_batches_have_the_rows_of_objects(partitions: list[list[Any]], cut: int) -> None:
    data = [b"".join(encode_batch(made, **fields) for made, fields in one) for one in partitions]
    check(FETCH, partitions_of([*data, *(one[:-cut] for one in data if cut)]))


@pytest.mark.slow
@pytest.mark.usefixtures("engine")
def test_bounded_parts_have_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_ROWS", 7)
    monkeypatch.setattr(records, "_OBJECTS", 3)
    monkeypatch.setattr(records, "_OBJECT_BYTES", 300)
    monkeypatch.setattr(record_pieces, "MOST_ENOUGH", 400)
    monkeypatch.setattr(record_pieces, "_TABLE", 2)
    check(PRODUCE, partitions_of([some_batch(20), *ODD, *DOCUMENTS[:10], some_batch(20)]))


@pytest.mark.slow
def test_what_is_shared_is_bounded_however_long_a_topic_is() -> None:
    topic = Topic("t" * 32_767, "id-1", [(0, some_batch(3_000))])
    batches = list(record_rows(message_rows(PRODUCE, [Carrier(0, [topic])]), PRODUCE))
    assert sum(map(len, batches)) == 3_000
    assert max(batch.nbytes for batch in batches) < 40_000_000


def test_the_rows_are_those_of_the_reference() -> None:
    between = [part for odd in ODD for part in (some_batch(), odd, some_batch(base=5))]
    carriers = partitions_of(between)
    topics = [{"topic_id": one, "name": name} for one, name in NAMES.items() if one]
    names = topic_names([{"body": {"topics": topics}}])
    for where in RECORDS_FIELDS:
        rows = message_rows(where, carriers)
        found = pa.Table.from_batches(record_rows(rows, where, NAMES), RECORDS)
        expected = reference_rows(rows.to_pylist(), where, names, INFLATION)
        assert found.to_pylist() == as_stored(expected, RECORDS)


def test_a_topic_whose_id_never_changes_has_its_name_without_any_metadata() -> None:
    known = uuid_text(METADATA_TOPIC_ID)
    carriers = [
        Carrier(
            0, [Topic(None, known, [(0, some_batch())]), Topic("", NO_ID, [(0, some_batch())])]
        ),
        Carrier(1, [Topic(None, "id-1", [(0, some_batch())])]),
    ]
    for names in ({}, {"id-1": "orders"}, {known: "another"}):
        expected = as_table(expected_rows(FETCH, carriers, names | {known: METADATA_TOPIC}))
        found = pa.Table.from_batches(record_rows(message_rows(FETCH, carriers), FETCH, names))
        assert found.to_pylist() == expected.to_pylist()
        assert found["topic"].to_pylist()[:6] == [METADATA_TOPIC] * 3 + [None] * 3
