"""The tables of an analysis: their columns, and how frames, records and log lines become rows.

A capture may contain billions of frames, so rows are built as Arrow columns, one batch at a time.
The kernels decode most messages. Messages that the kernels refuse are decoded row by row with
Python objects, as the reference reads them. The rows of these messages are then inserted at the
right places among the other rows. `schema` and `log_schema` declare every column once. `frames`,
`messages` and `records` build the rows of captures, `log_rows` those of logs, and `request_logs`
those of request logs. `parquet` writes a table's file, and `output` opens a finished analysis.
Three tasks belong to other packages: `flexwire.spark` runs many tasks, `flexwire.survey` finds
frames, and `flexwire.measures` adds up rows.

Laws of this package:

- **Every column of every table is declared in `schema.py` or `log_schema.py`, with its meaning.**
  The documentation page on tables is generated from these files. `tests/docs/test_tables_page.py`
- **Only `frames.frame_rows` builds rows of the table of frames,** for captures, streams and request
  logs, so that each column has one meaning. `tests/tables/test_frames.py`,
  `tests/tables/test_request_logs.py`
- **Every frame is a row, even if its body is lost.** The header determines the kind of a frame.
  `tests/tables/test_lost_bodies.py`
- **Rows that columns cannot decode exactly like the reference are decoded as objects, row by row.**
  `tests/tables/test_messages.py`, `tests/tables/test_reference.py`
- **Tagged fields are counted only in `tagged_fields.py`,** and the tests compare its counts with
  the bytes on the wire. `tests/tables/test_tagged_uses.py`
- **No record batch continues in the next partition's bytes,** although one call reads all
  partitions. `tests/tables/test_records.py`
- **All batches of a range take no more memory than its captured bytes allow,** in whatever order
  they are read. `tests/tables/test_inflation.py`
- **Every byte of every log segment is in one row of `log_batches`:** in a batch, or in a gap with
  its reason. `tests/tables/test_log_rows.py`
- **A row of a stream depends only on the bytes up to its frame's last byte,** wherever the stream
  was cut. `tests/tables/test_following.py`
- **Joins use `keys.py`,** because frame numbers restart with each analysis.
  `tests/spark/test_grown_tables.py`
"""
