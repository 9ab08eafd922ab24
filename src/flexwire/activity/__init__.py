"""The current activity of a cluster's connections, from growing captures and logs or from a tap.

In PostgreSQL, `pg_stat_activity` lists the connections to a database. This package creates such a
list for Kafka, and `flexwire who` prints it. The package reads captures or request logs as they
grow, or the live capture of a running tap. Each frame is processed only once, and only sums are
kept. The required memory therefore does not grow with the length of the input.

- `connections` collects the facts about each connection from its frames.
- `reading` assembles segments into frames, and decides which connections are forgotten.
- `logged` reads the lines of request logs; each line is a complete request with its response.
- `growing` reads new bytes from captures, `growing_logs` from logs, and `live` from a tap.
- `sources` determines whether the given paths are captures, request logs or sockets.
- `listing` sorts the connections, selects rows, and formats the rows as JSON or as table cells.
- `metrics` adds up the connections by client for a monitoring system.

The laws of this package (tests below `tests/`):

- An input that is read in parts results in the same list as an input that is read all at once
  (`activity/test_growing.py`, `activity/test_logged.py`).
- The sums of a capture equal the sums over its messages (`flexwire.capture.messages`), and the
  sums of a log equal the sums over its lines (`activity/test_activity.py`,
  `activity/test_logged.py`).
- Memory is bounded by limits on the number of connections, and on the topics and pending requests
  of each connection. Omitted items are counted (`activity/test_activity.py`).
- A connection is listed only if some of its bytes decode as Kafka, because the bytes of other
  protocols can contain anything, including a password (`activity/test_activity.py`).
- A counter for a monitoring system never decreases, and the number of series is limited
  (`activity/test_metrics.py`).
"""
