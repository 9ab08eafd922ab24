"""Make the tables of an analysis row by row, so that a test decides their content."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flexwire.answers.asking.answer import AnalysisTables
from flexwire.schema.catalog import catalog
from flexwire.tables.message_schema import table_schema
from flexwire.tables.schema import CONNECTIONS_TABLE, FRAMES_TABLE, RECORDS
from flexwire.tasks import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START_US = 1_700_000_000_000_000
SECOND = 1_000_000
BROKER = "10.0.0.1:9092"


class Told:
    """Frames, messages and connections. Times are microseconds after `START_US`."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self.connections: list[dict[str, Any]] = []
        self.messages: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self._next: Counter[tuple[str, str]] = Counter()

    def connection(self, client: str, first_us: int, last_us: int, **more: Any) -> str:
        """Return a client connection that is known to be Kafka, and captured from start to end."""
        row = {
            "connection": f"{client}>{BROKER}",
            "client": client,
            "broker": BROKER,
            "first_time": START_US + first_us,
            "last_time": START_US + last_us,
            "seen_from_start": True,
            "closed_by": "client",
            "reset": False,
            "is_kafka": True,
        }
        self.connections.append(row | more)
        return str(row["connection"])

    def exchange(
        self,
        who: tuple[str | None, str],
        api: str,
        at_us: int,
        latency_us: int | None = 1000,
        asked: dict[str, Any] | None = None,
        answer: dict[str, Any] | None = None,
        *,
        sizes: tuple[int | None, int | None] = (100, 50),
    ) -> None:
        """Add a client's request, and the response unless ``latency_us`` is None."""
        is_answered = latency_us is not None
        self._frame(who, f"{api}Request", at_us, asked, sizes[0], answered=is_answered)
        if latency_us is not None:
            answered_at = at_us + latency_us
            self._frame(who, f"{api}Response", answered_at, answer, sizes[1], latency_us=latency_us)

    def _frame(
        self,
        who: tuple[str | None, str],
        message: str,
        at_us: int,
        body: dict[str, Any] | None,
        size: int | None,
        **more: Any,
    ) -> None:
        client_id, client = who
        connection = f"{client}>{BROKER}"
        direction = "request" if message.endswith("Request") else "response"
        entry = catalog().entry(message)
        both = {
            "time": START_US + at_us,
            "connection": connection,
            "direction": direction,
            "frame_index": self._next[connection, direction],
            "message": message,
            "api_key": entry.api_key,
            # A client may send the same id each time.
            "correlation_id": 7,
            "client_id": client_id,
            "size": size,
        }
        self._next[connection, direction] += 1
        self.messages[message].append(both | {"body": body or {}})
        about = {"client": client, "broker": BROKER, "outcome": "decoded"}
        self.frames.append(both | about | {"api_name": entry.type.api_name(message)} | more)

    def tables(self, spark: SparkSession) -> AnalysisTables:
        """Write these rows as tables, with the existing messages."""
        found = {
            name: _table(spark, rows, table_schema(name, record_bytes=False))
            for name, rows in self.messages.items()
        }
        return AnalysisTables(
            _table(spark, self.frames, FRAMES_TABLE),
            _table(spark, self.connections, CONNECTIONS_TABLE),
            _table(spark, [], RECORDS),
            found.get,
        )


def _table(spark: SparkSession, rows: list[dict[str, Any]], schema: pa.Schema) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema), spark_schema(schema))
