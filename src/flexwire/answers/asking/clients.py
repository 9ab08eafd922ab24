"""Who a client is in an answer: its id, and its host without the port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

if TYPE_CHECKING:
    from pyspark.sql import Column


def address(end: Column) -> Column:
    """The host of an end of a connection, as ``address``: "10.0.0.9" of "10.0.0.9:50000".

    An IPv6 address stands in brackets, and has colons too: the port comes after the last one.
    """
    port = F.length(F.substring_index(end, ":", -1))
    return F.substring(end, F.lit(1), F.length(end) - port - 1).alias("address")
