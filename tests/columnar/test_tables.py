"""Arrays of number structures, which are read by column, equal those read by element."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from flexwire import load_specs
from flexwire.columnar import decode_messages, encode_messages, encoding, message_sizes
from tests.columnar.expected import decoded, same

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ["bool", "int8", "int16", "int32", "int64", "float64"]
COUNTS = [0, 1, 2, 3, 4, 5, 8, 100]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a message with an array of numbers of every type, then arrays of int32."""
    home: Path = tmp_path_factory.mktemp("specs")
    kinds = [*KINDS, *reversed(KINDS), "int64", "int64", "int64"]
    row = [
        {"name": f"{kind.capitalize()}At{place}", "type": kind, "versions": "0+"}
        for place, kind in enumerate(kinds)
    ]
    few = [*row[:4], {"name": "Pair", "type": "Pair", "versions": "0+", "fields": row[4:6]}]
    fields = [
        {"name": "Rows", "type": "[]Row", "versions": "0+", "fields": row[:6]},
        {"name": "Many", "type": "[]Many", "versions": "0+", "fields": row},
        {"name": "Nested", "type": "[]Few", "versions": "0+", "fields": few},
        {"name": "Flags", "type": "[]bool", "versions": "0+"},
        {"name": "First", "type": "[]int32", "versions": "0+", "nullableVersions": "0+"},
        {"name": "Second", "type": "[]int32", "versions": "0+"},
        {
            "name": "Maybe",
            "type": "Maybe",
            "versions": "0+",
            "nullableVersions": "0+",
            "fields": [{"name": "Within", "type": "int32", "versions": "0+"}],
        },
        # The field before this number is a structure.
        {"name": "Behind", "type": "int32", "versions": "0+"},
    ]
    spec = {
        "name": "TablesData",
        "type": "data",
        "validVersions": "0-1",
        "flexibleVersions": "1+",
        "fields": fields,
    }
    (home / "TablesData.json").write_text(json.dumps(spec))
    return load_specs(home).message("TablesData")


def value(tables: Any, counts: list[int], seed: int) -> Any:
    source = random.Random(seed)

    def number(kind: str) -> Any:
        if kind == "bool":
            return source.random() < 0.5
        if kind == "float64":
            return source.uniform(-1e9, 1e9)
        bits = int(kind[3:])
        return source.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1))

    def struct(made: Any) -> Any:
        given = {}
        for name in made.__struct_fields__:
            kind = name.split("_at_")[0]
            if kind in KINDS:
                given[name] = number(kind)
            elif name == "pair":
                given[name] = struct(tables.Pair)
        return made(**given)

    return tables(
        rows=[struct(tables.Row) for _ in range(counts[0])],
        many=[struct(tables.Many) for _ in range(counts[1])],
        nested=[struct(tables.Few) for _ in range(counts[2])],
        flags=[number("bool") for _ in range(counts[3])],
        first=None if counts[4] == 100 else [number("int32") for _ in range(counts[4])],
        second=[number("int32") for _ in range(counts[5])],
        maybe=tables.Maybe(within=number("int32")) if seed % 2 else None,
        behind=number("int32"),
    )


@pytest.fixture(scope="module", params=[0, 1])
def rows(request: pytest.FixtureRequest, tables: Any) -> tuple[int, list[bytes]]:
    source = random.Random(7)
    version: int = request.param
    each = [source.choices(COUNTS, k=6) for _ in range(60)] + [[count] * 6 for count in COUNTS]
    return version, [value(tables, one, at).encode(version) for at, one in enumerate(each)]


def test_tables_of_any_length_and_back(tables: Any, rows: tuple[int, list[bytes]]) -> None:
    version, raw = rows
    found = decode_messages(tables, pa.array(raw), version)
    same(found, decoded(tables, raw, [version] * len(raw))[0])
    for structs, expected in ((found, raw), (found.slice(3, 40), raw[3:43])):
        assert encode_messages(tables, structs, version).to_pylist() == expected
        sizes = message_sizes(tables, structs, version).to_pylist()
        assert sizes == [len(one) for one in expected]


@pytest.mark.slow
def test_every_byte_changed_and_every_end_cut(tables: Any, rows: tuple[int, list[bytes]]) -> None:
    version, _ = rows
    raw = value(tables, [3, 2, 2, 3, 3, 4], 1).encode(version)
    changed = [raw[:at] + bytes([to]) + raw[at + 1 :] for at in range(len(raw)) for to in (0, 1, 2)]
    cut = [raw[:at] for at in range(len(raw))]
    expected, errors = decoded(tables, changed + cut, [version] * len(changed + cut))
    found = decode_messages(tables, pa.array(changed + cut), version, mode="PERMISSIVE")
    same(found.values, expected)
    assert found.errors.to_pylist() == errors
    sound = found.values.filter(found.values.is_valid())
    kept = [one for one, error in zip(changed + cut, errors, strict=True) if error is None]
    assert encode_messages(tables, sound, version).to_pylist() == kept


def test_a_null_in_any_column_of_a_table_is_refused(tables: Any) -> None:
    raw = [value(tables, [3, 2, 2, 3, 2, 2], 1).encode(1)]
    for path in ("rows", "many", "nested", "flags", "second"):
        structs = decode_messages(tables, pa.array(raw), 1).to_pylist()
        kind = decode_messages(tables, pa.array(raw), 1).type
        items = structs[0][path]
        names = list(items[0]) if isinstance(items[0], dict) else [None]
        for name in names[:-1] or names:
            lost = json.loads(json.dumps(structs, default=lambda _: None))
            if name is None:
                lost[0][path][1] = None
            else:
                lost[0][path][1][name] = None
            found = encode_messages(tables, pa.array(lost, kind), 1, mode="PERMISSIVE")
            assert found.errors[0].as_py() is not None, (path, name)
            assert found.values.null_count == 1


def test_output_that_grows_within_a_table(tables: Any) -> None:
    few = value(tables, [0, 0, 0, 0, 0, 0], 1).encode(1)
    large = value(tables, [5000, 5000, 5000, 5000, 5, 5], 2).encode(1)
    raw = [few, large, few, large]
    structs = decode_messages(tables, pa.array(raw), 1)
    assert encode_messages(tables, structs, 1).to_pylist() == raw


def test_nothing_is_written_behind_the_output(tables: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    areas: list[tuple[Any, int]] = []

    def allocate(size: int) -> Any:
        areas.append((np.zeros(size + 2**21, np.uint8), size))
        return areas[-1][0][:size]

    # The few messages set the buffer size that the next run begins with.
    few = value(tables, [0, 0, 0, 0, 0, 0], 1).encode(1)
    encode_messages(tables, decode_messages(tables, pa.array([few]), 1), 1)
    large = value(tables, [300, 300, 300, 300, 5, 5], 2).encode(1)
    structs = decode_messages(tables, pa.array([large]), 1)
    monkeypatch.setattr(encoding, "allocate", allocate)
    encode_messages(tables, structs, 1)
    assert len(areas) > 2
    assert not any(area[size:].any() for area, size in areas)


def numbers(home: Path) -> Any:
    """Return a message that is an array of numbers, and a message with many of these arrays."""
    many = [{"name": f"Field{at}", "type": "int64", "versions": "0+"} for at in range(40)]
    rows = {"name": "Rows", "type": "[]Row", "versions": "0+", "fields": many[:3]}
    spec = {"name": "NumbersData", "type": "data", "validVersions": "1", "flexibleVersions": "1+"}
    (home / "NumbersData.json").write_text(json.dumps({**spec, "fields": [rows, *many]}))
    return load_specs(home).message("NumbersData")


def test_output_of_every_size_that_nearly_holds_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    areas: list[tuple[Any, int]] = []

    def allocate(size: int) -> Any:
        areas.append((np.zeros(size + 4096, np.uint8), size))
        return areas[-1][0][:size]

    monkeypatch.setattr(encoding, "allocate", allocate)
    # Each run then begins with a buffer of exactly this size.
    monkeypatch.setattr(encoding, "_MARGIN", 0)
    made = numbers(tmp_path)
    side_by_side = dict.fromkeys((f"field{at}" for at in range(40)), -1)
    raw = made(rows=[made.Row(-1, -1, -1) for _ in range(20)], **side_by_side).encode(1)
    structs = decode_messages(made, pa.array([raw]), 1)
    encode_messages(made, structs, 1)
    for size in range(8, len(raw) + 80):
        monkeypatch.setattr(encoding, "_LEAST", size)
        areas.clear()
        assert encode_messages(made, structs, 1).to_pylist() == [raw]
        assert size in {room for _, room in areas}
        assert not any(area[room:].any() for area, room in areas)
