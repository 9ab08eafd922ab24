"""Brokers' request logs as input of an analysis: the tables of traffic, from lines.

```
files ─▶ what they are ─▶ pieces, some a task ─▶ frames, messages/<Message>, forwarded_requests
                             └─▶ sums, and what lines say of connections ─▶ connections, packets
```
A task reads its pieces line by line (`flexwire.logs.request_log`) and writes its part of each
table (`flexwire.tables.request_logs`). No line needs another one but for its connection, of which
the driver puts together what tasks have told.
"""
