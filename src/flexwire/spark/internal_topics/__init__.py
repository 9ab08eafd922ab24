"""Internal topics as state: what coordinators and controllers know, from the records they wrote.

`internal_records` gives the records of an internal topic with the messages that they are, and each
view is a function of them in plain DataFrame code: a row for each thing that there was at an offset
or a time. **A view is exact, or says that it does not know:** where compaction may have removed
what would be needed, a row says so. How logs are read is left to `flexwire.spark.formats`.
"""

from flexwire.spark.internal_topics.records import internal_records

__all__ = ["internal_records"]
