"""Reading and writing records: kernels where there are any, else Python.

Most batches of real topics have one to twenty records, and Python's code for a batch takes longer
than all of these. So even what chooses between the two is no call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flexwire.records.record import Record


@dataclass(frozen=True)
class RecordFunctions:
    """The functions with which a process reads and writes batches: kernels, or Python.

    The classes of batches and of their iterators are above this module, and so not named here.
    """

    read_body: Callable[..., list[Record]]
    """Do what `flexwire.records.body.read_records` does, errors included."""
    write_body: Callable[..., tuple[bytes, int]]
    """Do what `flexwire.records.body.write_records` does, errors included."""
    iterate: Callable[[Any, int, bool, int], Any]
    """Do what `flexwire.records.decode.iterate` does, errors included."""
    read_all: Callable[[bytes, int, bool], tuple[list[Record], int]]
    """Return the records of the batches from a position on, and where the sound ones end."""
    read_records: Callable[[Any], list[Record]]
    """Do what `flexwire.records.batch.read_and_keep` does, errors included."""
    write_batch: Callable[..., bytes]
    """Do what `flexwire.records.encode.write_plain_batch` does, errors included."""


class ActiveFunctions:
    """The functions that this process runs.

    `flexwire.records.batch_executors.use_functions`, which stands above batches, puts them in.
    """

    __slots__ = ("functions",)

    functions: RecordFunctions


ACTIVE = ActiveFunctions()


def read_records(
    data: bytes,
    start: int,
    *,
    count: int,
    base_offset: int,
    base_timestamp: int,
    budget: int,
    append_time: int | None,
) -> list[Record]:
    """Do what `flexwire.records.body.read_records` does, errors included."""
    read = ACTIVE.functions.read_body
    return read(data, start, count, base_offset, base_timestamp, budget, append_time)


def write_records(
    records: Sequence[Record], base_offset: int, base_timestamp: int
) -> tuple[bytes, int]:
    """Do what `flexwire.records.body.write_records` does, errors included."""
    return ACTIVE.functions.write_body(records, base_offset, base_timestamp)
