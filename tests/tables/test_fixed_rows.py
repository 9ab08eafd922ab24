"""The analysis of some captures equals their kept results, row by row and fact by fact.

The kept results come from an earlier analysis, which joined Python objects on Spark, and with which
the present one agreed. The kept results therefore check the reference too.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.reference import facts as reference_facts
from tests.reference.tables import tables as reference_tables
from tests.tables.fixed_rows import CAPTURES, NAMES, RELEASES, files_of, kept, told
from tests.tables.in_process import analyzed_in_process


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compare a result with the kept result, table by table."""
    assert found["tables"].keys() == expected["tables"].keys()
    for name, rows in expected["tables"].items():
        assert found["tables"][name] == rows, name
    for name, fact in expected["facts"].items():
        assert found["facts"][name] == fact, name


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_says_what_is_kept(name: str) -> None:
    tables = reference_tables(files_of(name))
    same(told(tables, reference_facts.facts(tables), CAPTURES / name), without_audit(name))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("everything", {}),
        ("everything", {"range_bytes": 6_000, "chunk_bytes": 1_000}),
        ("hosts", {"range_bytes": 20_000, "chunk_bytes": 3_000}),
        ("strange", {"piece_bytes": 3_000}),
    ],
)
def test_an_analysis_says_what_is_kept(name: str, how: dict[str, Any]) -> None:
    tables, facts = analyzed_in_process(files_of(name), releases=RELEASES, **how)
    found = reference_facts.of_an_analysis(facts)
    found["findings"] = reference_facts.findings(facts)
    same(told(tables, found, CAPTURES / name), kept(name))


def test_what_is_kept_shows_everything() -> None:
    tables = [kept(name)["tables"] for name in NAMES]
    frames = [row for one in tables for row in one["frames"]]
    records = [row for one in tables for row in one["records"]]
    outcomes = {"decoded", "lenient", "failed", "unpaired", "token", "not Kafka"}
    assert {row["outcome"] for row in frames} == outcomes
    assert {row.get("magic") for row in records} == {None, 0, 1, 2}
    codecs = {None, "none", "gzip", "snappy", "lz4", "zstd"}
    assert {row.get("compression") for row in records} == codecs
    assert len({name for one in tables for name in one if name.startswith("messages/")}) > 30
    assert all(kept(name)["facts"]["findings"] for name in NAMES)
    assert sum(row["repeated_bytes"] for row in kept("hosts")["tables"]["connections"]) > 10_000


def without_audit(name: str) -> dict[str, Any]:
    """Return the kept result, without the audit's findings, which the reference lacks."""
    found = kept(name)
    del found["facts"]["findings"]
    return found
