"""The state of coordinators and controllers, computed from the records in internal topics.

The modules in this package read the records that coordinators and controllers wrote.

`internal_records` decodes the records of an internal topic. Each view is a function of these
records, written with plain DataFrame operations. A view returns a row for each object that existed
at an offset or a time. **A view is exact, or reports that it is not:** if compaction may have
removed a record that a view needs, the row says so. `flexwire.spark.sources` reads the logs.
"""

from flexwire.answers.state.commits import (
    lag,
    last_commits,
    transactional_commits,
    unused_groups,
    unused_topics,
)
from flexwire.answers.state.groups import group_members, group_protocols, groups
from flexwire.answers.state.log import InternalLog, open_log, unreadable
from flexwire.answers.state.partitions import (
    end_offsets,
    hanging_transactions,
    open_transactions,
    transactions,
)
from flexwire.answers.state.records import captured_records, control_records, internal_records
from flexwire.answers.state.remote_segments import remote_segments
from flexwire.answers.state.share_state import share_state

__all__ = [
    "InternalLog",
    "captured_records",
    "control_records",
    "end_offsets",
    "group_members",
    "group_protocols",
    "groups",
    "hanging_transactions",
    "internal_records",
    "lag",
    "last_commits",
    "open_log",
    "open_transactions",
    "remote_segments",
    "share_state",
    "transactional_commits",
    "transactions",
    "unreadable",
    "unused_groups",
    "unused_topics",
]
