"""The tables of an analysis: their columns, and how frames become their rows, in columns.

What columns are sure of is decoded in columns; what they refuse is decoded row by row from objects,
as the reference reads it. Nothing here knows of Spark: a task of it is one of the callers.
"""
