"""The tables in an output can be found by name in a Spark catalog."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from flexwire.errors import FlexwireError
from flexwire.spark.analyze import analyze
from flexwire.spark.dataframes import output_of
from flexwire.spark.external_tables import register_tables
from flexwire.spark.publishing.catalogs import catalog_table
from tests.capture.interleaved import CLEAN, write_capture
from tools.maven import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PLACE = "spark_catalog.kafka_tables"
FILES = replace(CLEAN, files=2)


@pytest.fixture
def database(spark: SparkSession) -> Iterator[SparkSession]:
    """Yield the session, whose catalog does not contain the database before or after the test."""
    spark.sql(f"DROP DATABASE IF EXISTS {PLACE} CASCADE")
    yield spark
    spark.sql(f"DROP DATABASE IF EXISTS {PLACE} CASCADE")


def registered(spark: SparkSession) -> set[str]:
    """Return the names in the database. Spark lists a session's temporary views with them."""
    rows = spark.sql(f"SHOW TABLES IN {PLACE}").collect()
    return {row["tableName"] for row in rows if not row["isTemporary"]}


def told(spark: SparkSession, name: str, what: str) -> list[str]:
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {PLACE}.{name}").collect()
    return [row["data_type"] for row in rows if row["col_name"] == what]


@pytest.mark.long
def test_an_analysis_registers_the_tables_that_it_wrote(
    database: SparkSession, tmp_path: Path
) -> None:
    captures = write_capture(tmp_path / "captures", 5, FILES)
    out = tmp_path / "out"
    done = analyze(captures, out, spark=database, register=PLACE)
    names = {catalog_table(name): name for name in output_of(out).names}
    assert registered(database) == names.keys()
    assert "messages_fetch_request" in names
    assert told(database, "frames", "Type") == ["EXTERNAL"]
    count = len(names)
    note = f"{count} tables registered in {PLACE}, an in-memory catalog that ends with this session"
    assert note in done.notes
    for name, table in names.items():
        ours = output_of(out).table(table)
        theirs = database.table(f"{PLACE}.{name}").toArrow()
        assert theirs.column_names == ours.column_names
        assert sorted(map(repr, theirs.to_pylist())) == sorted(map(repr, ours.to_pylist()))
    # The next analysis uses the same names, even for a session that has read the previous one.
    other = write_capture(tmp_path / "others", 6, replace(FILES, files=1))
    analyze(other, out, spark=database, register=PLACE)
    frames = output_of(out).table("frames").num_rows
    assert database.table(f"{PLACE}.frames").count() == frames


@pytest.mark.long
def test_what_the_output_has_no_more_is_dropped_and_no_file_with_it(
    database: SparkSession, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    analyze(write_capture(tmp_path / "captures", 5, FILES), out, spark=database)
    database.range(3).createOrReplaceTempView("a_view_of_somebody")
    names = register_tables(database, out, PLACE)
    files = sorted(out.rglob("*.parquet"))
    table = out / "tables" / "messages" / "FetchRequest"
    table.rename(tmp_path / "moved")
    assert register_tables(database, out, PLACE) == [
        name for name in names if name != "messages_fetch_request"
    ]
    assert registered(database) == {*names} - {"messages_fetch_request"}
    (tmp_path / "moved").rename(table)
    assert register_tables(database, out, PLACE) == names
    assert sorted(out.rglob("*.parquet")) == files
    assert database.catalog.dropTempView("a_view_of_somebody")


def test_the_table_of_somebody_else_stays(database: SparkSession, tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    captures = write_capture(tmp_path / "captures", 5, replace(FILES, files=1))
    for place in (out, other):
        analyze(captures, place, spark=database)
    register_tables(database, out, PLACE)
    with pytest.raises(FlexwireError, match="is not a table of this output; choose another"):
        register_tables(database, other, PLACE)


@pytest.mark.long
def test_delta_and_iceberg_tables_are_not_registered_by_mistake(
    database: SparkSession, tmp_path: Path
) -> None:
    captures = write_capture(tmp_path / "captures", 5, replace(FILES, files=1))
    delta, iceberg = tmp_path / "delta", tmp_path / "iceberg"
    with pytest.raises(FlexwireError, match=r"add its jar, and set spark\.sql\.catalog"):
        analyze(captures, delta, spark=database, format="delta", register=PLACE)
    # The error was raised before anything was decoded.
    assert not (delta / "tables").exists()
    analyze(captures, iceberg, spark=database, format="iceberg")
    with pytest.raises(FlexwireError, match="which are already in a catalog"):
        register_tables(database, iceberg, PLACE)


@pytest.mark.long
def test_another_session_finds_them_in_a_metastore(tmp_path: Path) -> None:
    """A metastore keeps tables after a session: one process writes, and another one reads."""
    captures = write_capture(tmp_path / "captures", 5, replace(FILES, files=1))
    out = tmp_path / "out"
    said = []
    for what in ("write", "read"):
        command = [sys.executable, "-m", "tests.spark.metastore", what, str(tmp_path), str(out)]
        command += [*map(str, captures)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        said += done.stdout.splitlines()
    names = {catalog_table(name): name for name in output_of(out).names}
    assert said[0] == f"{len(names)} tables registered in spark_catalog.kafka"
    expected = [f"{name}: {output_of(out).table(names[name]).num_rows}" for name in sorted(names)]
    assert said[1:] == expected


@pytest.mark.long
def test_a_catalog_that_would_end_with_our_session_is_refused(tmp_path: Path) -> None:
    captures = write_capture(tmp_path / "captures", 5, replace(FILES, files=1))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "flexwire", "analyze", *map(str, captures)]
    command += ["--out", str(out), "--register", "spark_catalog.kafka", "--master", "local[1]"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "spark_catalog exists only in the memory of this session" in done.stderr
    assert not (out / "tables").exists()
