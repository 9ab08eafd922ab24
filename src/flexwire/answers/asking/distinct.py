"""Count distinct values by hash; merged parts result in the same count as all rows together.

A sketch is a list of the `MOST` smallest distinct hashes of some values. Regardless of how the
values are divided into parts, the parts together contain the same smallest hashes, so the estimate
does not depend on how they are divided. Up to `MOST` - 1 distinct values, the estimate is exact,
unless two values have the same 64-bit hash. Beyond that, the largest hash in the sketch shows how
densely the hashes are spaced. The standard error is then 1 / sqrt(`MOST` - 2), about 3 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

MOST: Final = 1024
HASH: Final = "hash"
"""The column that contains the hash of a row's value, or null if the value is null."""
HASHES: Final = "hashes"
"""The column of sums that contains a sketch."""
_LEAST: Final = -(2.0**63)


def hash_of(value: Column) -> Column:
    """Return the hash of a value for `sketched`, or null if the value is null."""
    return F.when(value.isNotNull(), F.xxhash64(value))


def sketched(rows: DataFrame, by: Sequence[str], sums: Mapping[str, Column]) -> DataFrame:
    """Group rows by these columns, and return each group's ``sums`` and the sketch of its hashes.

    Each of the ``sums`` is an aggregate of the column with the same name. When it is applied to the
    sums of groups of rows, the aggregate must return the same value as when it is applied to all
    rows.
    """
    columns = [column.alias(name) for name, column in sums.items()]
    # Equal values are first combined into one row, so that the smallest hashes can be found without
    # a list of all hashes.
    each = rows.groupBy(*by, HASH).agg(*columns)
    place = F.row_number().over(Window.partitionBy(*by).orderBy(F.asc_nulls_last(HASH)))
    few = each.withColumn(HASH, F.when(place <= MOST, F.col(HASH)))
    return few.groupBy(*by).agg(*columns, F.collect_list(HASH).alias(HASHES))


def unsketched(rows: DataFrame, sums: Sequence[str]) -> DataFrame:
    """Convert results of `sketched` back into input rows, with one row for each hash.

    The first row contains the sums.
    """
    each = rows.select("*", F.posexplode_outer(HASHES).alias("place", HASH))
    is_first = F.coalesce(F.col("place") == 0, F.lit(True))
    once = {name: F.when(is_first, F.col(name)) for name in sums}
    return each.withColumns(once).drop("place", HASHES)


def estimate(hashes: str) -> Column:
    """Return approximately how many distinct values a sketch represents."""
    largest = F.array_max(hashes).cast("double")
    share = (largest - F.lit(_LEAST)) / F.lit(-2 * _LEAST)
    count = F.size(hashes).cast("bigint")
    return F.when(count < MOST, count).otherwise(F.round(F.lit(MOST - 1) / share).cast("bigint"))
