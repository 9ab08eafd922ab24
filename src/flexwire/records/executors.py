"""Read and write records: with kernels if there are any, and otherwise in Python.

Most batches in real topics have one to twenty records, and one Python call per batch takes longer
than processing all of its records. Therefore, even the choice between kernels and Python must not
need a call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flexwire.records.record import Record


@dataclass(frozen=True)
class RecordFunctions:
    """The kernel or Python functions with which a process reads and writes batches.

    The classes of batches and their iterators depend on this module, so their types do not occur
    here.
    """

    read_body: Callable[..., list[Record]]
    """Do the same as `flexwire.records.body.read_records`, with the same errors."""
    write_body: Callable[..., tuple[bytes, int]]
    """Do the same as `flexwire.records.body.write_records`, with the same errors."""
    iterate: Callable[[Any, int, bool, int], Any]
    """Do the same as `flexwire.records.decode.iterate`, with the same errors."""
    read_all: Callable[[bytes, int, bool], tuple[list[Record], int]]
    """Return the records of the batches from a position on, and the place where valid batches end.
    """
    read_records: Callable[[Any], list[Record]]
    """Do the same as `flexwire.records.batch.read_and_keep`, with the same errors."""
    write_batch: Callable[..., bytes]
    """Do the same as `flexwire.records.encode.write_plain_batch`, with the same errors."""


class ActiveFunctions:
    """The functions that this process uses.

    `flexwire.records.batch_executors.use_functions` sets these functions, because that module can
    depend on batches.
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
    """Do the same as `flexwire.records.body.read_records`, with the same errors."""
    read = ACTIVE.functions.read_body
    return read(data, start, count, base_offset, base_timestamp, budget, append_time)


def write_records(
    records: Sequence[Record], base_offset: int, base_timestamp: int
) -> tuple[bytes, int]:
    """Do the same as `flexwire.records.body.write_records`, with the same errors."""
    return ACTIVE.functions.write_body(records, base_offset, base_timestamp)
