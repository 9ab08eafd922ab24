"""Every sum, written once: folds over Arrow batches of the tables' rows.

The report, the audit and the answers need sums over tables that may have billions of rows. Each
measure has ``add(batch)``, ``merge(other)`` and a result. A task adds the batches that it writes to
measures of its own, and the driver merges the measures of all tasks. So no table is read again. The
same measures take the batches of finished tables and of streams. The classes of the results are in
`flexwire.facts`, and the verdicts of the audit are left to `flexwire.protocol.audit`.

Laws of this room:

- **The result does not depend on how rows are cut into parts, or on their order.** Tasks are cut
  differently on each machine. `tests/spark/test_frame_sums.py`, `tests/spark/test_driver.py`,
  `tests/spark/test_audit_sums.py`
- **A measure can be pickled, and stays small however long the capture is.** A measure that cannot
  be both small and exact says so in its docstring. `tests/spark/test_record_sums.py`
- **A record batch counts once and as a whole, however its rows are cut.**
  `tests/spark/test_record_sums.py`
- **A condition on frames is written in `conditions` only,** for Arrow and for SQL, so that the
  report and the answers count the same frames. `tests/measures/test_definitions.py`
- **A connection counts for one client.** `tests/spark/test_connection_owners.py`
- **Nothing here imports PySpark.** Import-linter holds it.
"""

from flexwire.extras import require

require("flexwire.measures", "columnar", "numpy", "pyarrow")
