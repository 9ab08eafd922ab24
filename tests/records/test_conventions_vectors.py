"""Headers written by Java are read as Java reads them (connect-api 4.1.0, spring-kafka 4.0.0)."""

from __future__ import annotations

import gzip
import json
import struct
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from flexwire.errors import RecordHeaderError
from flexwire.records.conventions import (
    CONVENTIONS,
    FixedWidth,
    read_headers,
    write_headers,
)
from flexwire.records.conventions.connect import parse
from tests.each import each

if TYPE_CHECKING:
    from collections.abc import Callable

_PATH = Path(__file__).parents[1] / "vectors" / "header-conventions.jsonl.gz"
with gzip.open(_PATH, "rt", encoding="ascii") as _lines:
    _VECTORS: list[dict[str, Any]] = [json.loads(line) for line in _lines]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def of(convention: str) -> list[dict[str, Any]]:
    return [vector for vector in _VECTORS if vector["convention"] == convention]


def value(java: Any) -> Any:
    """Return the Python form of a value in a vector, where numbers and dates name Java types."""
    if isinstance(java, list):
        return [value(item) for item in java]
    if not isinstance(java, dict):
        return java
    ((kind, content),) = java.items()
    if kind == "date":
        return ("instant", _EPOCH + timedelta(milliseconds=content[1]))
    readers: dict[str, Callable[[], Any]] = {
        "float32": lambda: struct.unpack(">f", bytes.fromhex(content.zfill(8)))[0],
        "float64": lambda: struct.unpack(">d", bytes.fromhex(content.zfill(16)))[0],
        "decimal": lambda: Decimal(content),
        "bytes": lambda: bytes.fromhex(content),
        "uuid": lambda: UUID(content),
        "map": lambda: {value(name): value(item) for name, item in content},
    }
    return readers[kind]() if kind in readers else content


def instants(read: Any) -> Any:
    """Compare the instants, because Java has one class for dates, times and timestamps."""
    if isinstance(read, list):
        return [instants(item) for item in read]
    if isinstance(read, dict):
        return {instants(name): instants(item) for name, item in read.items()}
    if isinstance(read, datetime):
        return ("instant", read)
    if isinstance(read, date):
        return ("instant", datetime.combine(read, time(), UTC))
    if isinstance(read, time):
        return ("instant", datetime.combine(_EPOCH, read, UTC))
    return read


def alike(left: Any, right: Any) -> bool:
    """Return whether values are equal, including types and NaN."""
    return repr(left) == repr(right)


def test_there_are_vectors_of_every_kind() -> None:
    assert Counter(vector["convention"] for vector in _VECTORS) == {
        "connect": 394,
        "spring-json": 133,
        "connect-write": 22,
        "kip-1308": 10,
    }
    assert sum("misread" in vector for vector in of("connect")) == 27


@each("vector", of("connect"))
def test_text_reads_as_kafka_connect_reads_it(vector: dict[str, Any]) -> None:
    headers = [("h", bytes.fromhex(vector["hex"]))]
    if "misread" in vector:
        with pytest.raises(RecordHeaderError, match="'h' does not fit connect"):
            read_headers(headers, "connect")
        assert read_headers(headers, "connect", lenient=True) == headers
    else:
        ((_, read),) = read_headers(headers, "connect")
        assert alike(instants(read), value(vector["java"]))


def test_a_value_has_the_type_of_kafka_connect() -> None:
    kinds = set()
    for vector in of("connect"):
        if isinstance(vector["java"], dict) and "misread" not in vector:
            ((kind, content),) = vector["java"].items()
            kinds.add(content[0] if kind == "date" else kind)
            read = parse(bytes.fromhex(vector["hex"]).decode())
            assert read.kind == (content[0] if kind == "date" else kind)
    numbers = {"int8", "int16", "int32", "int64", "float32", "float64", "decimal"}
    assert kinds == {"boolean", *numbers, "date", "time", "timestamp", "map"}


@pytest.mark.parametrize("vector", of("connect-write"), ids=lambda vector: vector["hex"][:40])
def test_a_value_is_written_as_kafka_connect_writes_it(vector: dict[str, Any]) -> None:
    written = value(vector["value"])
    if isinstance(vector["value"], dict) and "date" in vector["value"]:
        moment = written[1]
        kinds = {"date": moment.date(), "time": moment.time(), "timestamp": moment}
        written = kinds[vector["value"]["date"][0]]
    raw = [(b"h", bytes.fromhex(vector["hex"]))]
    assert write_headers([("h", written)], "connect") == raw


@each("vector", of("spring-json"))
def test_what_spring_wrote_reads_as_spring_reads_it(vector: dict[str, Any]) -> None:
    headers = [
        (key, None if data is None else bytes.fromhex(data)) for key, data in vector["headers"]
    ]
    read = read_headers(headers, "spring-json", lenient=True)
    expected = {key: value(java) for key, java in vector["java"].items()}
    assert len(read) == len(expected)
    assert all(alike(content, expected[str(key)]) for key, content in read)
    try:
        assert alike(read_headers(headers, "spring-json"), read)
    except RecordHeaderError as error:
        # The value is written as text and read as JSON; Spring itself returns its bytes.
        assert (error.key, expected["quote"]) == ("quote", b'"')  # noqa: PT017 - most do not raise


@pytest.mark.parametrize("vector", of("kip-1308"), ids=lambda vector: vector["hex"])
def test_what_a_byte_buffer_holds_reads_and_writes(vector: dict[str, Any]) -> None:
    convention = FixedWidth({"h": vector["type"]})
    raw = [(b"h", bytes.fromhex(vector["hex"]))]
    assert alike(convention.read(raw), [("h", vector["value"])])
    assert convention.write([("h", vector["value"])]) == raw


def test_every_convention_but_the_typed_values_has_vectors() -> None:
    # Java never had KIP-82's typed values; test_typed.py compares them with the document.
    assert set(CONVENTIONS) - {vector["convention"] for vector in _VECTORS} == {
        "utf-8",
        "kip-82",
        "kip-82-earlier",
    }
