"""Bounds on the inflation of record batches: of each, and of all of an analysis.

A few bytes of zstd stand for megabytes of constant data, and that is no mistake. So a single batch
may inflate as far as its own bound, whatever its size. All batches that are read together have an
allowance in proportion to the bytes that were captured. Where they take more, each batch is held to
a ratio: what is left out is then the same in whatever order the batches are read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from flexwire.arguments import to_int
from flexwire.errors import RecordError
from flexwire.records.batch import MAX_INFLATED
from flexwire.records.record import Compression

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.records.batch import RecordBatch
    from flexwire.records.record import Record

MAX_RATIO: Final = 1024
"""How many bytes each captured byte may inflate to: about as many as gzip can make of one."""
RECORD_COST: Final = 256
"""So many bytes a record or record header counts for, besides its content."""
BEYOND: Final = "; if that is meant, raise max_"
"""Is part of the reason where a batch inflates beyond a bound, and of no other."""


@dataclass(frozen=True, slots=True)
class Inflation:
    """Bounds on the inflation of compressed batches.

    Attributes:
        max_inflated: the most bytes that one batch inflates to.
        max_ratio: the most bytes for each byte that was captured, over all batches.
        is_held: whether each batch is held to this ratio, because all of them had taken more, or
            because that was asked for.
    """

    max_inflated: int = MAX_INFLATED
    max_ratio: int = MAX_RATIO
    is_held: bool = False

    def __post_init__(self) -> None:
        to_int(self.max_inflated, "max_inflated", least=0)
        to_int(self.max_ratio, "max_ratio", least=1, bits=32)

    @property
    def ratio(self) -> int | None:
        """The most bytes for each byte of a batch; None where batches are not held to any."""
        return self.max_ratio if self.is_held else None

    def allowance(self, captured: int) -> int:
        """Return what the batches in so many captured bytes may take before they are held.

        One batch may always inflate as far as its own bound.
        """
        return self.max_inflated + self.max_ratio * captured

    def held(self) -> Inflation:
        """Return the same bounds with each batch held to the ratio."""
        return replace(self, is_held=True)


INFLATION: Final = Inflation()
"""The bounds where none are given."""


def count_bytes(records: Iterable[Record]) -> int:
    """Return the bytes of records, and `RECORD_COST` for each of them and each of their headers.

    >>> from flexwire.records import Record
    >>> count_bytes([Record(0, 0, b"key", None, [(b"a", b"b")])])
    517
    """
    return sum(
        RECORD_COST
        + len(record.key or b"")
        + len(record.value or b"")
        + sum(RECORD_COST + len(key) + len(value or b"") for key, value in record.headers)
        for record in records
    )


def ratio_reason(ratio: int) -> str:
    """Return the reason why a batch is left out that inflates to more than its ratio."""
    return f"the records inflate beyond {ratio} times their batch{BEYOND}ratio"


def records_within(batch: RecordBatch, ratio: int | None) -> list[Record]:
    """Return the records of a batch, inflated to at most ``ratio`` times the bytes of the batch.

    None is no ratio. Raises `RecordError` as `RecordBatch.records` does, and beyond the ratio.

    >>> from flexwire.records import Record, decode_batches, encode_batch
    >>> data = encode_batch([Record(0, 0, None, bytes(10_000), [])], compression=Compression.ZSTD)
    >>> [batch] = decode_batches(data)
    >>> len(records_within(batch, 1000)), len(data) < 100
    (1, True)
    >>> [batch] = decode_batches(data)
    >>> records_within(batch, 10)
    Traceback (most recent call last):
    ...
    flexwire.errors.RecordError: record batch at byte 0: the records inflate beyond 10 times their \
batch; if that is meant, raise max_ratio
    """
    own = batch.max_inflated
    if ratio is None or batch.compression is Compression.NONE or ratio * batch.size >= own:
        return batch.records
    batch.max_inflated = ratio * batch.size
    try:
        return batch.records
    except RecordError as error:
        if BEYOND not in error.reason:
            raise
        raise RecordError(ratio_reason(ratio), offset=error.offset) from None
    finally:
        batch.max_inflated = own
