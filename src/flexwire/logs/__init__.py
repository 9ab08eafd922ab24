"""Brokers' files on disk, read without a broker: the logs of partitions, and request logs.

A broker's directories contain more than its logs: files that are about to be deleted, unfinished
compactions, and copies of the same partition on another disk. This package first decides which
files belong to a log, just as a broker does when it starts. It then divides the log into pieces.
Each piece contains everything that is needed to read it, so any machine can read any piece
independently. `files` recognizes files by their names. `discovery` finds logs and chooses among
replicas. `pieces` divides a log into pieces, using indexes and headers. `records` reads a piece
into columns. `metadata` reads the cluster's metadata log, and `request_log` reads brokers' request
logs. `flexwire.answers.state` interprets the bytes of records, and `flexwire.tables` builds the
tables of an analysis.

The laws of this package:

- **A log is read piece by piece, and never mapped into memory.** A broker may truncate a file while
  it is being read. `tests/capture/test_log_segment.py`
- **The files of a log are those that a broker would load when it starts.** If other files were
  read, deleted records would be counted, or records would be counted twice.
  `tests/capture/test_logs_finding.py`, `tests/capture/test_logs_choosing.py`
- **An index entry counts only if the batch at its position confirms it,** because an index may be
  stale or damaged. `tests/capture/test_log_segment.py`
- **Records have the same columns as in Spark's own Kafka source.** That source reads the same log
  from a real broker, and a test compares the results. `tests/kafka/test_judged.py`
- **A log does not reveal which release wrote it.** Only `protocol/record_types.py` knows the types
  of control and metadata records. `tests/protocol/test_record_types.py`
- **If a log is read repeatedly, each batch is returned once, and each damaged place between batches
  is reported once.** Tables that grow depend on this. `tests/tables/test_resumed_logs.py`
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
    # Without the optional packages, segments and request logs can be read one at a time.
    if name in _IN_COLUMNS:
        with needed_by("flexwire.logs", "columnar"):
            return getattr(import_module(_IN_COLUMNS[name]), name)
    raise AttributeError(f"module 'flexwire.logs' has no attribute {name!r}")
