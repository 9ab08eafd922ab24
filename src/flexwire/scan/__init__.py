"""Read captures and logs as rows for engines other than Spark: Arrow, Polars, DuckDB, pandas.

```
paths ─▶ read_capture, read_kafka_log ─▶ pyarrow.RecordBatchReader ─▶ DuckDB, pandas, Parquet
      └▶ scan_capture, scan_kafka_log ─▶ polars.LazyFrame
```
A single process reads one batch after another, so the input may be larger than memory. The columns
are those of Spark's data sources `kafka-capture` and `kafka-log`.

The laws of this package:

- **The rows are those of Spark's data sources**, so a query can be moved to Spark when one machine
  is not enough. `tests/scan/test_captures.py`, `tests/scan/test_logs.py`
- **A reader holds only a few batches at a time**, whatever it reads. `tests/scan/test_captures.py`
- **Only data that Polars does not need is left out**: columns that were not requested, and rows
  after the last requested one. Polars itself applies every filter. `tests/scan/test_frames.py`
"""

from __future__ import annotations

from flexwire.scan.captures import read_capture
from flexwire.scan.frames import scan_capture, scan_kafka_log
from flexwire.scan.logs import read_kafka_log

__all__ = ["read_capture", "read_kafka_log", "scan_capture", "scan_kafka_log"]
