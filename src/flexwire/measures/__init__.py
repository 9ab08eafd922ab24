"""Every sum, once: folds over Arrow batches of the tables' rows.

Each measure has ``add(batch)``, ``merge(other)`` and a result. A task that writes a batch adds it
to measures of its own, and the driver merges those of all tasks: no table is read again. The same
measures take the batches of finished tables. Whatever the parts and their order, the result is the
same. A measure can be pickled and stays small however long the capture is; where it cannot be both
small and exact, it says so. Nothing here imports PySpark.
"""

from flexwire.extras import require

require("flexwire.measures", "columnar", "numpy", "pyarrow")
