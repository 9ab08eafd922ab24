"""Sketches of parts combine into the sketch of all rows, and estimates are close to the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.distinct import (
    HASH,
    HASHES,
    MOST,
    estimate,
    hash_of,
    sketched,
    unsketched,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

VALUES = (0, 1, MOST - 1, MOST, 60_000)


def rows_of(spark: SparkSession) -> DataFrame:
    """Return rows with each value of a group twice, and with as many nulls as values."""
    groups = [spark.range(2 * values).selectExpr(f"{values} as g", "id") for values in VALUES]
    every = groups[0]
    for group in groups[1:]:
        every = every.union(group)
    every = every.union(
        spark.createDataFrame([(values, None) for values in VALUES], "g int, id long")
    )
    number = F.when(F.col("id") % 2 == 0, (F.col("id") / 2).cast("string"))
    twice = every.withColumn(HASH, hash_of(number)).withColumn("rows", F.lit(1).cast("bigint"))
    return twice.union(twice)


@pytest.mark.long
def test_the_sketch_of_parts_is_that_of_all_rows(spark: SparkSession) -> None:
    rows, sums = rows_of(spark), {"rows": F.sum("rows")}
    whole = sketched(rows, ["g"], sums)
    parts = sketched(rows.withColumn("part", F.coalesce("id", F.lit(0)) % 7), ["g", "part"], sums)
    added = sketched(unsketched(parts.drop("part"), ["rows"]), ["g"], sums)
    found = [
        {
            row.g: (row.rows, row.about, row.hashes)
            for row in each.select(
                "g", "rows", estimate(HASHES).alias("about"), F.sort_array(HASHES).alias(HASHES)
            ).collect()
        }
        for each in (whole, added)
    ]
    assert found[0] == found[1]
    for values in VALUES:
        count, about, hashes = found[0][values]
        assert (count, len(hashes)) == (2 * (2 * values + 1), min(values, MOST))
        # The error is at most three standard deviations. For up to 1,023 values, there is no error.
        assert about == (values if values < MOST else pytest.approx(values, rel=0.1))
