"""Reading and writing records: kernels where this process runs on them, else Python.

Most batches of real topics have one to twenty records, and Python's code for a batch takes longer
than all of these. So even what chooses between the two is a comparison and no call.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from flexwire.kernels.loading import kernels
from flexwire.records import body
from flexwire.records.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flexwire.kernels.cache import Kernels


# Python's code takes about as long for a record as for so many bytes of a message.
_RECORD_WORK = 60


class _Functions(NamedTuple):
    read: Callable[..., list[Record]] = body.read_records
    write: Callable[..., tuple[bytes, int]] = body.write_records


_PYTHON = _Functions()


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
    # A count that cannot be true costs no work.
    functions = _functions(kernels(_RECORD_WORK * count if 0 < count < len(data) else 0))
    return functions.read(data, start, count, base_offset, base_timestamp, budget, append_time)


def write_records(
    records: Sequence[Record], base_offset: int, base_timestamp: int
) -> tuple[bytes, int]:
    """Do what `flexwire.records.body.write_records` does, errors included."""
    functions = _functions(kernels(_RECORD_WORK * len(records)))
    return functions.write(records, base_offset, base_timestamp)


def _functions(loaded: Kernels | None) -> _Functions:
    return _PYTHON if loaded is None else functions_on(loaded)


@cache
def functions_on(loaded: Kernels) -> _Functions:
    """Give the functions that run on kernels; Python's, where a record is not as they take it."""
    # This needs ctypes, and would slow down a process that runs without kernels.
    from flexwire.kernels.objects.functions import UnsuitableError  # noqa: PLC0415 - see above
    from flexwire.kernels.records.objects_functions import record_function  # noqa: PLC0415 - see above

    try:
        return _Functions(
            record_function(loaded.read_records, Record, "read_records", _PYTHON.read),
            record_function(loaded.write_records, Record, "write_records", _PYTHON.write),
        )
    except UnsuitableError:
        return _PYTHON


@dataclass(frozen=True, slots=True)
class BatchFunctions:
    """What a process does with whole batches; on kernels C functions, which fall back to Python.

    The classes of batches and of their iterators are above this module, and so not named here.
    """

    iterate: Callable[[Any, int, bool, int], Any]
    """Do what `flexwire.records.decode.iterate` does, errors included."""
    read_all: Callable[[bytes, int, bool], tuple[list[Record], int]]
    """Return the records of the batches from a position on, and where the sound ones end."""
    read_records: Callable[[Any], list[Record]]
    """Do what `flexwire.records.batch.read_and_keep` does, errors included."""
    write: Callable[..., bytes]
    """Do what `flexwire.records.encode.write_plain_batch` does, errors included."""


class _Running:
    """The functions that decode now, and the kernels that they are for; none before the first.

    ``functions_on`` makes them: `flexwire.records` puts in
    `flexwire.records.batch_executors.batch_functions_on`, which is above the batches that ask.
    """

    __slots__ = ("functions_on", "iterate", "on", "read_all")

    functions_on: Callable[[Kernels | None], BatchFunctions]
    on: Kernels | str | None
    iterate: Callable[[Any, int, bool, int], Any]
    read_all: Callable[[bytes, int, bool], tuple[list[Record], int]]

    def __init__(self) -> None:
        self.on = "not decided"


RUNNING = _Running()
