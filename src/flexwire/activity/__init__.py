"""The current activity of a cluster's connections, from captures and logs that grow, or from a tap.

`pg_stat_activity` lists the connections of a database. This room makes the same list for Kafka, and
`flexwire who` prints it. It reads captures or request logs as they grow, or the live capture of a
running tap. It takes each frame once, and keeps only sums. So memory does not grow with the length
of the input.

- `connections` keeps the facts about each connection, and needs only its frames.
- `reading` makes frames of segments, and decides which connections are forgotten.
- `logged` takes the lines of request logs, which are whole requests with their responses.
- `growing`, `growing_logs` and `live` read new bytes of captures, of logs, and of a tap.
- `sources` finds out which of these kinds some paths name.
- `listing` orders the connections, selects some of them, and writes them as JSON and as cells.
- `metrics` adds them up by client for a monitor.

The laws of this room (tests below `tests/`):

- An input that is read in parts gives the same list as one that is read at once
  (`activity/test_growing.py`, `activity/test_logged.py`).
- Sums equal those of `flexwire.capture.messages`, and those of a log's own lines
  (`activity/test_activity.py`, `activity/test_logged.py`).
- Memory is bounded: the number of connections has a limit, and so have the topics and waiting
  requests of each. Omitted items are counted (`activity/test_activity.py`).
- A connection is listed only if something on it decodes as Kafka, because text from other protocols
  may be anything, even a password (`activity/test_activity.py`).
- A counter for a monitor never falls, and the number of series is bounded
  (`activity/test_metrics.py`).
"""
