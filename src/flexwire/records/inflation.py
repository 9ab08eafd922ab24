"""Limits on the inflation of record batches: for each batch, and for all batches in an analysis.

A few bytes of zstd data may legitimately inflate to megabytes of constant data. A single batch may
therefore inflate up to its own limit, even if its compressed size is small. All batches that are
read together share an allowance in proportion to the captured bytes. If the batches exceed this
allowance, each batch is limited by a ratio. The same batches are then left out, whatever the
reading order.
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
"""The largest allowed ratio of inflated bytes to captured bytes, about gzip's maximum."""
RECORD_COST: Final = 256
"""The number of bytes that a record or record header counts as, in addition to its content."""
BEYOND: Final = "; to allow them, raise max_"
"""The part of an error's reason that shows that a batch exceeds a limit."""


@dataclass(frozen=True, slots=True)
class Inflation:
    """The limits for inflating compressed batches.

    Attributes:
        max_inflated: the largest number of bytes to which one batch may inflate.
        max_ratio: the largest number of inflated bytes for each captured byte, over all batches.
        is_held: whether each batch is limited by this ratio, because all batches exceeded it,
            or because that was requested.
    """

    max_inflated: int = MAX_INFLATED
    max_ratio: int = MAX_RATIO
    is_held: bool = False

    def __post_init__(self) -> None:
        to_int(self.max_inflated, "max_inflated", least=0)
        to_int(self.max_ratio, "max_ratio", least=1, bits=32)

    @property
    def ratio(self) -> int | None:
        """The maximum number of bytes for each byte of a batch, or None without such a limit."""
        return self.max_ratio if self.is_held else None

    def allowance(self, captured: int) -> int:
        """Return how many bytes ``captured`` bytes may inflate to before the ratio applies.

        One batch may always inflate up to its own limit.
        """
        return self.max_inflated + self.max_ratio * captured

    def held(self) -> Inflation:
        """Return the same limits, with the ratio applied to each batch."""
        return replace(self, is_held=True)


INFLATION: Final = Inflation()
"""The limits that are used by default."""


def count_bytes(records: Iterable[Record]) -> int:
    """Return the number of bytes in records, plus `RECORD_COST` for each record and record header.

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
    """Return the reason for leaving out a batch that exceeds the ratio when inflated."""
    return f"the records inflate to more than {ratio} times their batch{BEYOND}ratio"


def records_within(batch: RecordBatch, ratio: int | None) -> list[Record]:
    """Return the records of a batch, inflated to at most ``ratio`` times its bytes.

    With None, no ratio applies. Raises the `RecordError` of `RecordBatch.records`, and a
    `RecordError` for a batch that exceeds the ratio.

    >>> from flexwire.records import Record, decode_batches, encode_batch
    >>> data = encode_batch([Record(0, 0, None, bytes(10_000), [])], compression=Compression.ZSTD)
    >>> [batch] = decode_batches(data)
    >>> len(records_within(batch, 1000)), len(data) < 100
    (1, True)
    >>> [batch] = decode_batches(data)
    >>> records_within(batch, 10)
    Traceback (most recent call last):
    ...
    flexwire.errors.RecordError: record batch at byte 0: the records inflate to more than 10 times \
their batch; to allow them, raise max_ratio
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
