"""Percentiles on Spark depend on the values alone: on any split, they are those of Python's sort."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import pytest

from flexwire.answers.asking.percentiles import EXACT_BELOW, percentile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SHARES = (0.5, 0.9, 0.99)


def by_sorting(values: list[int], share: float) -> int:
    found = sorted(values)[math.ceil(share * len(values)) - 1]
    digits = len(str(found)) - 5
    return found if found < EXACT_BELOW else found // 10**digits * 10**digits


@pytest.mark.parametrize("largest", [50, EXACT_BELOW, 10**6, 10**12])
def test_percentiles_are_those_of_the_sorted_values_on_any_split(
    largest: int, spark: SparkSession
) -> None:
    source = random.Random(largest)
    values = [source.randrange(largest) for _ in range(997)]
    values += [10**power + off for power in range(13) for off in (-1, 0, 1) if 10**power < largest]
    rows = spark.createDataFrame([(value,) for value in [*values, None]], "value bigint")
    for parts in (1, 7):
        asked = [percentile("value", share) for share in SHARES]
        [found] = rows.repartition(parts).agg(*asked).collect()
        assert list(found) == [by_sorting(values, share) for share in SHARES]


def test_no_value_has_no_percentile(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(None,)], "value bigint")
    assert rows.agg(percentile("value", 0.5)).collect()[0][0] is None
