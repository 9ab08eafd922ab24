"""Record headers are summed by key, with the same result regardless of how rows are batched."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from flexwire.measures import headers
from flexwire.measures.headers import ADDED, READ, HeadersByClient, RecordHeaderSums, add_up
from flexwire.records.conventions.spring import TYPES_KEY
from flexwire.tables.schema import RECORDS
from tests.searching import in_make_long

if TYPE_CHECKING:
    from collections.abc import Iterable

KEYS = [b"trace", b"type", b"\xff", b"", TYPES_KEY.encode()]
RANDOM = random.Random(11)


def record() -> dict[str, Any]:
    headers = [
        {"key": RANDOM.choice(KEYS), "value": RANDOM.choice([None, b"", b"x", b"a longer one"])}
        for _ in range(RANDOM.choice([0, 1, 2, 5, 40]))
    ]
    return {
        "topic": RANDOM.choice(["orders", None]),
        "topic_id": RANDOM.choice(["id", None]),
        "source": RANDOM.choice(["produce", "fetch"]),
        "client_id": RANDOM.choice(["shop", None]),
        "offset": RANDOM.choice([None, -1, 0, 63, 64, 65]),
        "base_offset": RANDOM.choice([None, -1, 0, 60]),
        "is_control": RANDOM.choice([False, False, True, None]),
        "key": RANDOM.choice([None, b"key"]),
        "value": RANDOM.choice([None, b"", b"value"]),
        "headers": RANDOM.choice([None, headers, headers]),
    }


RECORDS_SEEN = [record() for _ in range(600)]


def expected() -> tuple[Counter[Any], Counter[Any]]:
    """Return sums by kind and name, and the values to be judged."""
    sums: Counter[Any] = Counter()
    judged: Counter[Any] = Counter()
    for one in RECORDS_SEEN:
        if one["offset"] is None or one["is_control"] is not False:
            continue
        topic = one["topic_id"] if one["topic"] is None else one["topic"]
        by = (topic, one["source"], one["client_id"])
        sums[*by, None, "all_records"] += 1
        sums[*by, None, "record_bytes"] += len(one["key"] or b"") + len(one["value"] or b"")
        offset, base = one["offset"], one["base_offset"]
        is_judged = offset % 64 == 0 or (base is not None and (base < 0 or base == offset))
        headers = one["headers"] or []
        markers = int(any(header["key"] == TYPES_KEY.encode() for header in headers))
        for key in {header["key"] for header in headers}:
            sums[*by, key, "records"] += 1
        for header in headers:
            key, value = header["key"], header["value"]
            sums[*by, key, "headers"] += 1
            if value is not None:
                sums[*by, key, "values"] += 1
                sums[*by, key, "value_bytes"] += len(value)
                judged[*by, key, value, markers] += is_judged
    return +sums, +judged


def told(added: Iterable[pa.RecordBatch]) -> tuple[Any, Any, Any, Any]:
    """Return rows of `ADDED` as sums, judged values, and the smallest and largest size
    of a value.
    """
    sums, judged = Counter[Any](), Counter[Any]()
    least: dict[Any, int] = {}
    most: dict[Any, int] = {}
    for one in pa.Table.from_batches(added, ADDED).to_pylist():
        by = (one["topic"], one["source"], one["client_id"], one["header"])
        for name in headers.SUMS:
            sums[*by, name] += one[name] or 0
        if one["judged"]:
            judged[*by, one["value"], one["markers"]] += one["judged"]
        if one["least"] is not None:
            least[by] = min(one["least"], least.get(by, one["least"]))
            most[by] = max(one["most"], most.get(by, one["most"]))
    return +sums, +judged, least, most


@pytest.mark.slow
@pytest.mark.parametrize("rows", [7, 600, *in_make_long(1)])
@pytest.mark.parametrize("many", [1, 10**6])
def test_sums_are_those_of_each_header(
    rows: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headers, "_MANY", many)
    whole = pa.Table.from_pylist(RECORDS_SEEN, pa.schema([RECORDS.field(one) for one in READ]))
    sums, judged, least, most = told(add_up("records", whole.to_batches(rows)))
    assert (sums, judged) == expected()
    sizes: dict[Any, list[int]] = {}
    for seen in RECORDS_SEEN:
        if seen["offset"] is not None and seen["is_control"] is False:
            topic = seen["topic_id"] if seen["topic"] is None else seen["topic"]
            for header in seen["headers"] or []:
                if header["value"] is not None:
                    by = (topic, seen["source"], seen["client_id"], header["key"])
                    sizes.setdefault(by, []).append(len(header["value"]))
    assert least == {by: min(found) for by, found in sizes.items()}
    assert most == {by: max(found) for by, found in sizes.items()}


def test_any_parts_merged_in_any_order_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "_MANY", 50)
    schema = pa.schema([RECORDS.field(one) for one in READ])
    whole = HeadersByClient()
    whole.add(pa.RecordBatch.from_pylist(RECORDS_SEEN, schema))
    parts, start = [], 0
    while start < len(RECORDS_SEEN):
        count = RANDOM.randrange(1, 90)
        parts.append(HeadersByClient())
        some = RECORDS_SEEN[start : start + count]
        parts[-1].add(pa.RecordBatch.from_pylist(some, schema))
        start += count
    while len(parts) > 1:
        one = parts.pop(RANDOM.randrange(len(parts)))
        RANDOM.choice(parts).merge(one)
    assert told(parts[0].result()) == told(whole.result()) == told(add_up("records", [
        pa.RecordBatch.from_pylist(RECORDS_SEEN, schema)
    ]))  # fmt: skip


def test_the_facts_of_a_key_are_what_its_clients_come_to() -> None:
    # A row without an offset represents unreadable bytes, and has no headers.
    seen = [one for one in RECORDS_SEEN if one["offset"] is not None]
    facts = RecordHeaderSums()
    facts.add(pa.RecordBatch.from_pylist(seen, RECORDS))
    schema = pa.schema([RECORDS.field(one) for one in READ])
    added = add_up("records", [pa.RecordBatch.from_pylist(seen, schema)])
    sums, _, least, most = told(added)
    expected: dict[str, Counter[str]] = {}
    for (*_, key, name), number in sums.items():
        if key is not None:
            expected.setdefault(key.decode(errors="replace"), Counter())[name] += number
    found = {one.key: one for one in facts.facts()}
    assert {*found} == {*expected}
    for text, each in expected.items():
        one = found[text]
        assert one.records == each["records"]
        assert one.null_values == each["headers"] - each["values"]
        sizes = [
            [number for by, number in bound.items() if by[3].decode(errors="replace") == text]
            for bound in (least, most)
        ]
        assert (one.min_length, one.max_length) == (min(sizes[0]), max(sizes[1]))
