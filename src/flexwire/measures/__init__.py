"""Every sum, implemented only once: measures that add up Arrow batches of rows.

The report, the audit and the answers need sums over tables that may contain billions of rows. Each
measure provides ``add(batch)``, ``merge(other)`` and a result. Each task adds the batches that it
writes to its own measures, and the driver merges the measures of all tasks, so no table has to be
read again. The same measures accept batches from finished tables and from streams. The result
classes are in `flexwire.facts`, and `flexwire.protocol.audit` computes the verdicts of the audit.

Laws of this package:

- **The result does not depend on how rows are divided into parts, or on their order.** Each machine
  divides the work in a different way. `tests/spark/test_frame_sums.py`,
  `tests/spark/test_driver.py`, `tests/spark/test_audit_sums.py`
- **A measure can be pickled and remains small even for a long capture.** A measure that cannot
  be both small and exact says so in its docstring. `tests/spark/test_record_sums.py`
- **A record batch counts once and as a whole, however its rows are divided.**
  `tests/spark/test_record_sums.py`
- **Conditions on frames are defined only in `conditions`,** both for Arrow and for SQL, so the
  report and the answers count the same frames. `tests/measures/test_definitions.py`
- **A connection counts for one client.** `tests/spark/test_connection_owners.py`
- **Nothing here imports PySpark.** Import-linter checks this.
"""

from flexwire.extras import require

require("flexwire.measures", "columnar", "numpy", "pyarrow")
