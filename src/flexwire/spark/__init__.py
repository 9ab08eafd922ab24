"""The analysis of captured traffic on Spark.

PySpark and pyarrow are imported here and nowhere else.
"""
