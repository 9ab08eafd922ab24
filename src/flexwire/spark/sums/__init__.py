"""The facts of the report as partial sums over batches of the tables' rows.

A task that writes a batch of a table adds it to sums of its own, and the driver merges the sums of
all tasks: so no table is read again. Whatever the parts and their order, the facts are the same.
Each class has ``add(batch)`` and ``merge(other)``, can be pickled, and stays small however long the
capture is; where it cannot be both small and exact, it says so. Rows are grouped with numpy and
pyarrow, and PySpark is not imported here.
"""

from flexwire.spark.sums.connections import ConnectionSums
from flexwire.spark.sums.failures import FAILURES, FailureSums
from flexwire.spark.sums.frames import FrameSums
from flexwire.spark.sums.timeline import bucket_us

__all__ = ["FAILURES", "ConnectionSums", "FailureSums", "FrameSums", "bucket_us"]
