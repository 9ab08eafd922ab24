"""Check that two analyses are equal: their tables, row by row and value by value, and their facts.

The order of rows and files in a table is not significant, so both are sorted first.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from flexwire.spark.publishing.output import FACTS
from flexwire.spark.tables import TABLES, finished_tables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

Row = dict[str, Any]

_FRAME = ("connection", "direction", "frame_index")
_KEYS = {
    "frames": _FRAME,
    "connections": ("connection",),
    "records": (*_FRAME, "topic", "topic_id", "partition", "batch_position",
                "offset"),
    "packets": ("source", "reason"),
    "audit": (),
}  # fmt: skip
_WHEN_MADE = "made_at_us"
_SHOWN = 200


def tables_of(out: Path) -> dict[str, list[Row]]:
    """Return every table of an analysis, by its path below ``tables/``, with sorted rows."""
    found = {}
    for name, folder in _folders(out):
        rows = [row for file in _files(folder) for row in pq.ParquetFile(file).read().to_pylist()]
        found[name] = _sorted(name, rows)
    return found


def in_one_order(tables: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
    """Return the tables with sorted rows, without empty tables."""
    return {name: _sorted(name, rows) for name, rows in tables.items() if rows}


def schemas_of(out: Path) -> dict[str, dict[str, str]]:
    """Return the Arrow type of every column. If a table's files differ, return all its types."""
    found: dict[str, dict[str, str]] = {}
    for name, folder in _folders(out):
        types: dict[str, set[str]] = {}
        for file in _files(folder):
            for column in pq.ParquetFile(file).schema_arrow:
                text = str(column.type).replace(" not null", "")
                types.setdefault(column.name, set()).add(text)
        found[name] = {column: " or ".join(sorted(seen)) for column, seen in types.items()}
    return found


def facts_of(out: Path) -> Row:
    """Return the facts of an analysis, except its time and Spark's estimates."""
    facts: Row = json.loads((out / FACTS).read_text(encoding="utf-8"))
    del facts[_WHEN_MADE]
    for one in facts.get("record_headers", []):
        # The sums of tasks are exact up to this many entries. Test_record_sums.py checks this.
        del one["distinct_values"]
    return facts


def assert_equal_analyses(one: Path, other: Path) -> None:
    """Fail unless both outputs have the same tables, types and facts."""
    assert_equal_tables(tables_of(one), tables_of(other))
    for place, first, second in _differences(schemas_of(one), schemas_of(other)):
        raise AssertionError(f"the types{place}: {_shown(first)} and {_shown(second)}")
    for place, first, second in _differences(facts_of(one), facts_of(other)):
        raise AssertionError(f"the facts{place}: {_shown(first)} and {_shown(second)}")


def assert_equal_tables(
    one: Mapping[str, list[Row]],
    other: Mapping[str, list[Row]],
    *,
    without: Collection[str] = (),
) -> None:
    """Fail at the first difference, naming the table, the row's key, the column and both values.

    ``without`` names columns that may differ.
    """
    if set(one) != set(other):
        raise AssertionError(
            f"tables only in the first: {sorted(set(one) - set(other))}, "
            f"only in the second: {sorted(set(other) - set(one))}"
        )
    for name, rows in one.items():
        told = _difference(name, rows, other[name], without)
        if told is not None:
            raise AssertionError(told)


def _difference(
    name: str, one: list[Row], other: list[Row], without: Collection[str]
) -> str | None:
    left, right = ([_key(name, row, without) for row in rows] for rows in (one, other))
    for which, more, less in (("first", left, right), ("second", right, left)):
        for key, count in (Counter(more) - Counter(less)).items():
            total = f"{len(one)} and {len(other)} rows"
            return f"{name}: the {which} has {count} more of {_told(name, key)}; {total}"
    first, second = ([_without(row, without) for row in rows] for rows in (one, other))
    if without:
        # The order of rows decided which entries were left out.
        first, second = _sorted(name, first), _sorted(name, second)
    for row, twin in zip(first, second, strict=True):
        for place, value, instead in _differences(row, twin):
            where = _told(name, _key(name, row, without))
            return f"{name}: {where}: {place}: {_shown(value)} and {_shown(instead)}"
    return None


def _differences(one: Any, other: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield every place where two values differ, as a path, with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in [*one, *(name for name in other if name not in one)]:
            inner = f"{place}.{name}" if place else name
            if name in one and name in other:
                yield from _differences(one[name], other[name], inner)
            else:
                yield inner, one.get(name, "nothing"), other.get(name, "nothing")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _differences(left, right, f"{place}[{number}]")
    elif one != other and repr(one) != repr(other):  # a NaN is not equal to itself
        yield place, one, other


def _folders(out: Path) -> Iterator[tuple[str, Path]]:
    tables = finished_tables(out / "tables")
    for name in sorted(TABLES):
        if name != "messages":
            yield name, tables.root / name
    for message in tables.message_names():
        yield f"messages/{message}", tables.message(message)


def _files(folder: Path) -> list[Path]:
    return sorted(one for one in folder.rglob("*.parquet") if not one.name.startswith((".", "_")))


def _key(name: str, row: Row, without: Collection[str] = ()) -> tuple[Any, ...]:
    columns = [one for one in _KEYS.get(name, _FRAME) if one not in without]
    return tuple(row.get(column) for column in columns)


def _sorted(name: str, rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (_sortable(_key(name, row)), repr(row)))


def _sortable(key: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    return [(one is not None, "" if one is None else one) for one in key]


def _without(row: Row, without: Collection[str]) -> Row:
    return {column: value for column, value in row.items() if column not in without}


def _told(name: str, key: tuple[Any, ...]) -> str:
    columns = _KEYS.get(name, _FRAME)
    named = ", ".join(f"{column} {one!r}" for column, one in zip(columns, key, strict=False))
    return f"the row of {named}" if named else "a row"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
