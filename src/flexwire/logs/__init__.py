"""Brokers' files on disk, read without a broker: logs of partitions, and request logs.

A broker's directories hold more than its logs: files that are about to be deleted, unfinished
compactions, the same partition on another disk. So this room first decides which files are a log,
as a broker decides when it starts. It then cuts the log into pieces that each carry everything
needed to read them, so any machine can read any piece alone. `files` recognises a file by its name.
`discovery` finds logs and chooses between replicas. `pieces` cuts a log into pieces, by indexes and
headers. `records` reads a piece into columns. `metadata` reads the log of the cluster's metadata,
and `request_log` the request logs of brokers. The meaning of a record's bytes is left to
`flexwire.answers.state`, and tables are left to `flexwire.tables`.

Laws of this room:

- **A log is read piece by piece, and never mapped into memory.** A broker may truncate a file while
  it is read. `tests/capture/test_log_segment.py`
- **The files of a log are those that a broker would load when it starts.** Otherwise deleted
  records count, or records count twice. `tests/capture/test_logs_finding.py`,
  `tests/capture/test_logs_choosing.py`
- **An index entry counts only if the batch at its position confirms it,** because an index may be
  stale or damaged. `tests/capture/test_log_segment.py`
- **The columns of records are those of Spark's own Kafka source.** That source reads the same log
  from a real broker, and is the judge. `tests/kafka/test_judged.py`
- **A log does not say which release wrote it.** Only `protocol/record_types.py` knows the types of
  control and metadata records. `tests/protocol/test_record_types.py`
- **If a log is read repeatedly, each batch, and each damage between batches, is returned once.**
  Tables that
  grow depend on it. `tests/tables/test_resumed_logs.py`
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from flexwire.extras import needed_by
from flexwire.logs.files import Isolation, LogQuery, Replicas

if TYPE_CHECKING:
    from flexwire.logs.pieces import plan
    from flexwire.logs.records import BatchDamage, LogPiece, read_piece

__all__ = ["BatchDamage", "Isolation", "LogPiece", "LogQuery", "Replicas", "plan", "read_piece"]

_IN_COLUMNS = {
    "BatchDamage": "flexwire.logs.records",
    "LogPiece": "flexwire.logs.records",
    "plan": "flexwire.logs.pieces",
    "read_piece": "flexwire.logs.records",
}


def __getattr__(name: str) -> object:
    # Segments and request logs can be read one by one without the extra.
    if name in _IN_COLUMNS:
        with needed_by("flexwire.logs", "columnar"):
            return getattr(import_module(_IN_COLUMNS[name]), name)
    raise AttributeError(f"module 'flexwire.logs' has no attribute {name!r}")
