"""Arrow functions as functions of Spark, which bring the catalog of their caller along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa  # noqa: TC002 - Spark reads the annotations of `run`
import pyspark
from pyspark.sql.pandas.types import from_arrow_type

from flexwire.errors import AnalysisError
from flexwire.schema.catalog import catalog, use_carried
from flexwire.spark.tasks import spare_modules

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column

    Task = Callable[..., pa.Array]

_OLDEST = (4, 1)


def arrow_function(name: str, task: Task, kind: pa.DataType) -> Callable[..., Column]:
    """Give a function of columns that workers run as ``task``, on the catalog of this process.

    ``task`` takes an Arrow array for each column and gives one of type ``kind``. Raises
    `AnalysisError` on PySpark 4.0, which has no `arrow_udf`.
    """
    check_version(name, pyspark.__version__)
    # Only here, as PySpark 4.0 does not have it.
    from pyspark.sql.pandas.functions import arrow_udf  # noqa: PLC0415 - see above

    carried = catalog().carried

    def run(*columns: pa.Array) -> pa.Array:
        spare_modules()
        use_carried(carried)
        return task(*columns)

    run.__name__ = name
    # Its overloads want what it warns of.
    make: Any = arrow_udf
    made: Callable[..., Column] = make(run, from_arrow_type(kind))
    return made


def check_version(name: str, version: str) -> None:
    """Refuse a PySpark that has no Arrow functions.

    >>> check_version("from_kafka", "4.0.1")
    Traceback (most recent call last):
    flexwire.errors.AnalysisError: from_kafka needs PySpark 4.1 or later, got 4.0.1
    """
    if tuple(map(int, version.split(".")[:2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise AnalysisError(f"{name} needs PySpark {oldest} or later, got {version}")
