"""Percentiles on Spark depend on the values alone: any split has the same result as sorting."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.percentiles import EXACT_BELOW, at_rank, percentile, ranked, rounded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PERCENTS = (50, 90, 99)


def by_sorting(values: list[int], percent: int) -> int:
    found = sorted(values)[-(-percent * len(values) // 100) - 1]
    digits = len(str(found)) - 5
    return found if found < EXACT_BELOW else found // 10**digits * 10**digits


@pytest.mark.parametrize("largest", [50, EXACT_BELOW, 10**6, 10**12, 2**63])
def test_percentiles_are_those_of_the_sorted_values_on_any_split(
    largest: int, spark: SparkSession
) -> None:
    source = random.Random(largest)
    values = [source.randrange(largest) for _ in range(997)]
    values += [10**power + off for power in range(19) for off in (-1, 0, 1) if 10**power < largest]
    expected = [by_sorting(values, percent) for percent in PERCENTS]
    rows = spark.createDataFrame([(value,) for value in [*values, None]], "value bigint")
    for parts in (1, 7):
        split = rows.repartition(parts)
        [found] = split.agg(*(percentile("value", percent) for percent in PERCENTS)).collect()
        assert list(found) == expected
        counted = (
            split.where("value is not null")
            .groupBy(F.lit(1).alias("group"), rounded("value").alias("rounded"))
            .agg(F.count("*").alias("rows"))
        )
        [found] = (
            ranked(counted, ["group"], "rounded", "rows")
            .groupBy("group")
            .agg(*(at_rank("rounded", percent) for percent in PERCENTS))
            .collect()
        )
        assert list(found)[1:] == expected


def test_no_value_has_no_percentile(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(None,)], "value bigint")
    assert rows.agg(percentile("value", 50)).collect()[0][0] is None
