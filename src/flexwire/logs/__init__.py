"""The logs of partitions, read in bulk without a broker: which files they are, and their records.

A broker's directories hold more than its logs: what is about to be deleted, what a compaction has
not finished, the same partition on another disk. `files` says what a file is, `finding` which of
them are a log as a broker would take it when it starts, `planning` what of it is asked for and in
which pieces it is read, and `reading` returns the records of a piece in columns. Indexes are
trusted as far as the batch that they point to proves them. Planning reads indexes and headers. A
piece is read alone, anywhere, and holds all that is needed for it.

`metadata` is the log of the cluster's metadata, and `request_log` what brokers log of requests.
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
    # Segments and request logs are read one by one without the extra.
    if name in _IN_COLUMNS:
        with needed_by("flexwire.logs", "columnar"):
            return getattr(import_module(_IN_COLUMNS[name]), name)
    raise AttributeError(f"module 'flexwire.logs' has no attribute {name!r}")
