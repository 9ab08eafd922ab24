"""A label matches the same client ids in Python and on Spark."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession  # noqa: TC002 - pytest reads the annotation

from flexwire.answers.asking.labels import team_column, team_of

PATTERNS = ("*", "?", "a*", "*a", "a?c", "a.c", "[a]", "", "a\n*", "é?", "\\d", "A", "😀", "$^")
CLIENT_IDS = (
    None,
    "",
    "a",
    "abc",
    "a.c",
    "axc",
    "[a]",
    "a\nb",
    "a\n",
    "éa",
    "\\d",
    "7",
    "A",
    "😀",
    "$^",
    "ba",
)


@pytest.mark.parametrize(
    ("labels", "client_id", "team"),
    [
        ({"a*": "one", "*": "rest"}, "abc", "one"),
        ({"*": "rest", "a*": "one"}, "abc", "rest"),
        ({"a.c": "one"}, "abc", None),
        ({"*": "rest"}, None, None),
        ({"*": "rest"}, "", "rest"),
        ({}, "abc", None),
    ],
)
def test_the_first_pattern_that_fits_says_the_team(
    labels: dict[str, str], client_id: str | None, team: str | None
) -> None:
    assert team_of(labels, client_id) == team


@pytest.mark.spark
def test_spark_finds_the_teams_that_python_finds(spark: SparkSession) -> None:
    rows = spark.createDataFrame(pa.table({"client_id": pa.array(CLIENT_IDS)}))
    labels = [{one: "first"} for one in PATTERNS]
    labels += [{one: "first", other: "second"} for one, other in product(PATTERNS[:5], repeat=2)]
    columns = [team_column(one).alias(f"c{number}") for number, one in enumerate(labels)]
    for row in rows.select("client_id", *columns).collect():
        client_id, *teams = row
        assert teams == [team_of(one, client_id) for one in labels], client_id
