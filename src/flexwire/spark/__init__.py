"""Kafka's bytes on Spark: formats, functions of columns, and the analysis of captured traffic.

`register` gives a session the formats (`formats`) and the functions in SQL (`functions`).

The analysis: a capture may be larger than memory, and its connections cross its files. So the state
of all connections at each cut is found first (`surveying`), and then each range between cuts is a
task that writes its part of every table (`capture_job`) and adds to the facts. All is
published at once (`outputs`). The reading itself is that of the rooms below; here is only what
needs Spark. PySpark is imported here, where Spark looks for formats (``pyspark_flexwire_…``), and
nowhere else.
"""

from flexwire.extras import require
from flexwire.spark.registration import register

__all__ = ["register"]

require("flexwire.spark", "spark", "numpy", "pyarrow", "pandas", "pyspark")
