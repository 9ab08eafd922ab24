"""Nothing that an analysis writes contains a secret, no matter how the traffic is damaged.

About a thousand connections are analyzed once without credentials and once with them. The second
analysis must show what the first must hide. It covers only a fourth of the message fields, because
each field needs a table. ``make guard`` uses all fields.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from flexwire.protocol.credentials import CREDENTIALS
from flexwire.spark.analyze import Analysis, analyze
from tests.spark.planted import MARK, Planted, plant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def planted() -> Planted:
    return Planted(random.Random(11))


def analyzed(planted: Planted, directory: Path, spark: SparkSession, **asked: Any) -> Analysis:
    """Analyze planted traffic and existing logs."""
    planted.write(directory / "secrets.pcap")
    given = [directory / "secrets.pcap", *directory.glob("logs")]
    return analyze(given, directory / "out", spark=spark, **asked)


def outputs(analysis: Analysis) -> Iterator[tuple[str, bytes]]:
    """Yield the parts of the output: the bytes of each file, and the rows of each table."""
    out = analysis.report.parent
    for path in sorted(out.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(out)), path.read_bytes()
        if path.suffix == ".parquet":
            name = f"rows of {path.parent.relative_to(out)}"
            for row in pq.read_table(path).to_pylist():
                yield f"{name}: {row.get('message')} {row.get('outcome')}", b"\n".join(leaves(row))


def leaves(value: Any) -> Iterator[bytes]:
    match value:
        case dict():
            for inner in value.values():
                yield from leaves(inner)
        case list() | tuple():
            for inner in value:
                yield from leaves(inner)
        case bytes():
            yield value
        case _:
            yield str(value).encode()


_WORD = re.compile(re.escape(MARK) + rb"[a-z]{0,5}")
_HEX = re.compile(re.escape(MARK.hex().encode()) + rb"(?:[67][0-9a-f]){0,5}")


def found(analysis: Analysis) -> set[tuple[str, bytes]]:
    """Return the words that are shown anywhere, in plain form or as hex, and where."""
    words = set()
    for where, data in outputs(analysis):
        words |= {(where, word) for word in _WORD.findall(data)}
        digits = _HEX.findall(re.sub(rb"\s", b"", data).lower())
        words |= {(where, bytes.fromhex(one.decode())) for one in digits}
    return words


def not_found(planted: Planted, analysis: Analysis) -> set[str]:
    """Return the kinds of secrets that are not shown anywhere."""
    words = {word for _, word in found(analysis)} & planted.words.keys()
    return set(planted.words.values()) - {planted.words[word] for word in words}


@pytest.mark.long
def test_no_secret_is_in_anything_that_is_written(
    spark: SparkSession, planted: Planted, tmp_path: Path
) -> None:
    plant(planted)
    assert len(planted.words) > 1000
    hidden = analyzed(planted, tmp_path, spark)
    leaks = {(planted.words.get(word, "?"), where) for where, word in found(hidden)}
    assert leaks == set()


@pytest.mark.long
def test_with_credentials_they_are_found(
    spark: SparkSession, planted: Planted, tmp_path: Path
) -> None:
    plant(planted, CREDENTIALS[::4])
    shown = analyzed(planted, tmp_path, spark, show_credentials=True)
    assert not_found(planted, shown) == set()
