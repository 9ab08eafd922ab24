"""The client software of each connection, found in all frames of the connection.

A client sends its software name in a single request. After that request, the rows for the
connection's frames contain the name. The name may therefore appear on any day of the connection, or
only in a later analysis. For daily sums, a part groups the frames of each connection by the
software in their own rows. The total fills in what other analyses learned, and determines the
software of each connection (`software_of`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.day_sums import DAY, analysis_of, day_of_time
from flexwire.tables.keys import ANALYSIS, CONNECTION_KEY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

SOFTWARE: Final = ("client_software_name", "client_software_version")
"""The columns of frames that contain the name and the version of the client's software."""
CONNECTION: Final = (ANALYSIS, *CONNECTION_KEY)
"""The columns of sums that identify a connection."""


def connection_columns(rows: DataFrame) -> list[Column]:
    """Return the columns `DAY` and `CONNECTION` for rows with a ``time``."""
    return [day_of_time().alias(DAY), analysis_of(rows), *map(F.col, CONNECTION_KEY)]


def with_clients(rows: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Fill in the software that other analyses learned, in rows with `CONNECTION`."""
    if tables.clients is None:
        return rows
    known = {name: f"known_{name}" for name in SOFTWARE if name in tables.clients.columns}
    clients = tables.clients.select(
        *CONNECTION, *(F.col(name).alias(column) for name, column in known.items())
    )
    joined = rows.join(F.broadcast(clients), [*CONNECTION], "left")
    filled: dict[str, Column] = {name: F.coalesce(name, column) for name, column in known.items()}
    return joined.withColumns(filled).drop(*known.values())


def software_of(rows: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Return the client software of each connection, by `CONNECTION`.

    ``rows`` contain `CONNECTION`, and the `SOFTWARE` from the rows of all frames of each
    connection. If the frames of a connection name different software, the greatest name is used.
    """
    named = with_clients(rows.select(*CONNECTION, *SOFTWARE).distinct(), tables)
    with_names = named.where(F.col(SOFTWARE[0]).isNotNull())
    names = with_names.groupBy(*CONNECTION).agg(F.max(F.struct(*SOFTWARE)).alias("one"))
    return F.broadcast(names.select(*CONNECTION, "one.*"))


OF_CONNECTION: Final = pa.schema(
    [(DAY, pa.date32()), *((name, pa.string()) for name in (*CONNECTION, *SOFTWARE))]
)
"""The columns of sums with one row for each day, connection, and software named on that day."""
