"""The analysis by objects: the reference, which the analysis by columns is held to.

Every packet, frame, message and record is a Python object, Spark joins them, and queries over the
finished tables give the facts. Tests read captures so, and `flexwire.spark.analyze` those of which
too many files overlap in time to be merged. The body of one message that columns refuse is
`flexwire.tables.messages`, for both.
"""
