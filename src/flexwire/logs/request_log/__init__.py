"""The brokers' request logs, which `kafka.request.logger` writes, read without Spark.

```
file ─▶ lines ─▶ envelope of a container ─▶ layout of the logger ─▶ text or JSON ─▶ LoggedRequest
```
A broker writes a line when it has sent a response. The line holds the request, the response and the
time of each step. It also has facts that no capture shows: the principal and the listener, and
plain bodies if the connection uses TLS. This room turns lines into requests. It does not know what
the fields of a message mean: `flexwire.tables.request_logs` decodes the bodies.

Law of this room: **each line of a request log is a row of a table, or is counted with the reason,**
because a log that silently loses lines proves nothing. `tests/tables/test_request_logs.py`
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
