"""The formats that Spark reads by flexwire: ``spark.read.format("kafka-log")``.

Here is only what Spark asks of a data source: a schema, options, partitions, filters. What a log is
and how it is read stands in `flexwire.logs`. Spark finds a source that nobody registered as
a module ``pyspark_…`` at the top of the path, which must import without anything that may be
missing; those modules import from here when they are asked.
"""
