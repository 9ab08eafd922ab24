"""The tables of an analysis: their columns, and how frames, records and log lines become rows.

A capture may have billions of frames, so rows are built as Arrow columns, a batch at a time. The
kernels decode the messages that they are sure of. Messages that they refuse are decoded row by row
with Python objects, as the reference reads them, and are put at their place among the other rows.
`schema` and `log_schema` declare every column once. `frames`, `messages` and `records` build the
rows of captures, `log_rows` those of logs, and `request_logs` those of request logs. `parquet`
writes a file of a table, and `output` opens a finished analysis. Running many tasks is left to
`flexwire.spark`, finding frames to `flexwire.survey`, and adding up rows to `flexwire.measures`.

Laws of this room:

- **Every column of every table is declared in `schema.py` or `log_schema.py`, with its meaning.**
  The page of tables is generated from there. `tests/docs/test_tables_page.py`
- **Only `frames.frame_rows` builds rows of the table of frames,** for captures, streams and request
  logs alike, so that a column cannot mean two things. `tests/tables/test_frames.py`,
  `tests/tables/test_request_logs.py`
- **Every frame is a row, even if its body is lost.** The header decides the kind of a frame.
  `tests/tables/test_lost_bodies.py`
- **Rows that columns cannot decode exactly as the reference go through objects, row by row.**
  `tests/tables/test_messages.py`, `tests/tables/test_reference.py`
- **Tagged fields are counted in `tagged_fields.py` alone,** and the wire is the judge.
  `tests/tables/test_tagged_uses.py`
- **No record batch continues in the next partition's bytes,** although one call reads all
  partitions. `tests/tables/test_records.py`
- **All batches of a range take no more memory than its captured bytes allow,** in whatever order
  they are read. `tests/tables/test_inflation.py`
- **Every byte of every log segment is in one row of `log_batches`:** a batch, or a gap with its
  reason. `tests/tables/test_log_rows.py`
- **A row of a stream depends only on the bytes up to its frame's last byte,** wherever the stream
  was cut. `tests/tables/test_following.py`
- **Joins use `keys.py`,** because frame numbers restart with each analysis.
  `tests/spark/test_grown_tables.py`
"""
