"""Read Kafka's bytes on Spark: formats, column functions, and the analysis of captured traffic.

`register` adds the formats (`formats`) and the SQL functions (`functions`) to a session.
`condition_of` returns the condition of an error.

A capture may be larger than memory, and a connection may continue from one of its files to the
next. A survey therefore first finds the state of all connections at each cut. Then one task for
each range between cuts writes its part of every table (`capture_job`) and adds to the facts. At the
end, everything is published in one step (`outputs`). Other packages read the bytes. This package
contains only the parts that need Spark. PySpark is imported only here, and in the modules where
Spark looks for formats (``pyspark_flexwire_…``).

The laws of this package (tests below `tests/`):

- Every task begins with `begin_task`. Otherwise each garbage collection costs 0.04 CPU seconds
  (`spark/test_tasks.py`).
- A task writes files only through `run_tasks` and `TaskOutput.put`, because Spark may run it twice
  (`spark/test_faults.py`).
- One step publishes an analysis: a rename on this machine, one PUT in a store, or an entry in the
  ledger for Delta and Iceberg (`spark/test_staging.py`, `spark/test_stored.py`,
  `spark/test_delta.py`, `spark/test_iceberg.py`).
- Tasks receive the secrets of key logs in encrypted form, and no file contains them in plain text
  (`spark/test_key_logs.py`).
- Facts are sums that tasks add up and the driver merges (`spark/test_frame_sums.py`,
  `spark/test_driver.py`).
"""

from flexwire.extras import require
from flexwire.spark.conditions import condition_of
from flexwire.spark.registration import register

__all__ = ["condition_of", "register"]

require("flexwire.spark", "spark", "numpy", "pyarrow", "pandas", "pyspark")
