"""The formats that flexwire adds to Spark: ``spark.read.format("kafka-log")``.

This package contains only the parts that Spark requires of a data source: a schema, options,
partitions, filters. `flexwire.logs` defines what a log is, and reads it. If nobody registered a
source, Spark looks for a module ``pyspark_…`` at the top of the path. Such modules must be
importable without optional dependencies, so they import this package only when Spark calls them.
"""
