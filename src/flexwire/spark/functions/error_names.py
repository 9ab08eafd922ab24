"""The names of error codes as a column of Spark: an expression, and no function of Python."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.protocol.error_codes import ERROR_NAMES, RETRIABLE

if TYPE_CHECKING:
    from pyspark.sql import Column

    from flexwire.spark.functions.columns import ColumnOrName


def kafka_error_name(code: ColumnOrName) -> Column:
    """Give the name of an error code: "NOT_COORDINATOR" of 16.

    Args:
        code: error codes, as ``body.error_code`` of the message tables; null gives null, as does a
            code that Kafka 4.4 does not have.
    """
    return F.create_map(*_pairs({code: F.lit(name) for code, name in ERROR_NAMES.items()}))[
        _int(code)
    ]


def kafka_error_is_retriable(code: ColumnOrName) -> Column:
    """Say whether the same may succeed later after an error; null as for `kafka_error_name`."""
    return F.create_map(*_pairs({code: F.lit(code in RETRIABLE) for code in ERROR_NAMES}))[
        _int(code)
    ]


def _pairs(values: dict[int, Column]) -> list[Column]:
    return [*chain.from_iterable((F.lit(code), value) for code, value in values.items())]


def _int(code: ColumnOrName) -> Column:
    return (F.col(code) if isinstance(code, str) else code).cast("int")
