"""The brokers' request logs: what `kafka.request.logger` writes, read without Spark.

```
file ─▶ lines ─▶ envelope of a container ─▶ layout of the logger ─▶ text or JSON ─▶ LoggedRequest
```
A broker writes a line when it has sent a response: what was asked, what was answered, how long each
step took, and what no capture shows: principal and listener. It is plain behind TLS. Nothing here
knows what a message's fields mean: the bodies stay as they are in the line.
"""

from __future__ import annotations

from flexwire.logs.request_log.lines import RequestLogPiece, pieces_of, read_lines
from flexwire.logs.request_log.recognition import BrokerLogKind, kind_of
from flexwire.logs.request_log.requests import (
    BadLine,
    LoggedRequest,
    RefusedRequest,
    RequestLogReader,
)
from flexwire.logs.request_log.times import Zone

__all__ = [
    "BadLine",
    "BrokerLogKind",
    "LoggedRequest",
    "RefusedRequest",
    "RequestLogPiece",
    "RequestLogReader",
    "Zone",
    "kind_of",
    "pieces_of",
    "read_lines",
]
