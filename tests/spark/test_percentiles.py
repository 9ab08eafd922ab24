"""Percentiles on Spark depend only on the values: any division gives the same result as sorting."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.percentiles import (
    EXACT_BELOW,
    at_rank,
    at_rank_within,
    bucket,
    percentile,
    ranked,
    rounded,
)
from tests.searching import in_make_long

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PERCENTS = (50, 90, 99)


def by_sorting(values: list[int], percent: int) -> int:
    found = sorted(values)[-(-percent * len(values) // 100) - 1]
    digits = len(str(found)) - 5
    return found if found < EXACT_BELOW else found // 10**digits * 10**digits


@pytest.mark.parametrize("largest", [50, *in_make_long(EXACT_BELOW, 10**6, 10**12, 2**63)])
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
        # The counts of two days contain the same values.
        in_buckets = (
            counted.union(counted)
            .groupBy("group", bucket("rounded").alias("bucket"))
            .agg(
                F.sum("rows").alias("all"), F.collect_list(F.struct("rounded", "rows")).alias("of")
            )
        )
        each = ranked(in_buckets, ["group"], "bucket", "all").select(
            *(at_rank_within("of", "rounded", "rows", "all", percent) for percent in PERCENTS)
        )
        # Each percentile falls into one bucket.
        columns = zip(*each.collect(), strict=True)
        assert [[one for one in of if one is not None] for of in columns] == [
            [value] for value in expected
        ]


def test_a_bucket_has_a_thousand_values_and_keeps_their_order(spark: SparkSession) -> None:
    source = random.Random(1)
    values = sorted({source.randrange(10 ** source.randrange(1, 19)) for _ in range(5_000)})
    rows = spark.createDataFrame([(value,) for value in values], "value bigint")
    found = [row[0] for row in rows.coalesce(1).select(bucket("value")).collect()]
    assert found == sorted(found)
    for value, of in zip(values, found, strict=True):
        digits = max(len(str(value)) - 2, 0)
        assert of == value // 10**digits * 10**digits


def test_no_value_has_no_percentile(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(None,)], "value bigint")
    assert rows.agg(percentile("value", 50)).collect()[0][0] is None
