"""Brokers' request logs, which the logger `kafka.request.logger` writes, read without Spark.

```
file ─▶ lines ─▶ envelope of a container ─▶ layout of the logger ─▶ text or JSON ─▶ LoggedRequest
```
A broker writes a line after it has sent a response. The line contains the request, the response and
the time of each step. It also contains facts that no capture contains: the principal and the
listener, and unencrypted bodies if the connection uses TLS. This package converts lines to
requests. It does not know the meaning of message fields: `flexwire.tables.request_logs` decodes the
bodies.

The law of this package: **each line of a request log becomes a row of a table, or is counted
together with the reason,** because the result would be worthless if lines were silently lost.
`tests/tables/test_request_logs.py`
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
