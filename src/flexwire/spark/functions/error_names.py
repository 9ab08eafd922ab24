"""The names of error codes as a column of Spark: an expression, and no function of Python."""

from __future__ import annotations

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
    return _of({number: f"'{name}'" for number, name in ERROR_NAMES.items()}, code)


def kafka_error_is_retriable(code: ColumnOrName) -> Column:
    """Say whether the same may succeed later after an error; null as for `kafka_error_name`."""
    return _of({number: str(number in RETRIABLE) for number in ERROR_NAMES}, code)


def _of(told: dict[int, str], code: ColumnOrName) -> Column:
    """What is told of a code, in SQL; null of one that nothing is told of."""
    # As text it is one call of Java, and not hundreds.
    pairs = ", ".join(f"{number}, {value}" for number, value in told.items())
    return F.expr(f"map({pairs})")[(F.col(code) if isinstance(code, str) else code).cast("int")]
