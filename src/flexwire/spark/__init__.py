"""The analysis of captured traffic and log segments on Spark.

A capture may be larger than memory, and its connections cross its files. So Spark sorts segments by
connection, one task reads all of a connection in order (`frames`), and what each frame is travels
on as a row: paired by number (`pairs`), decoded into typed columns (`bodies`, `records`), counted
(`facts`), and written as tables that are published whole (`staging`). The reading itself is that of
the rooms below; here is only what needs Spark. PySpark is imported here and nowhere else.
"""

from flexwire.spark.registration import register

__all__ = ["register"]
