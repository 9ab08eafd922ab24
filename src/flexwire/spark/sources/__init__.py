"""The formats that flexwire adds to Spark, such as ``spark.read.format("kafka-log")``.

This package contains only the parts that Spark requires of a data source: a schema, options,
partitions and filters. `flexwire.logs` defines what a log is, and reads logs. If a source is not
registered, Spark looks for a module ``pyspark_…`` at the top of the path. Such modules must be
importable without optional dependencies, so they import this package only when Spark calls them.
"""
