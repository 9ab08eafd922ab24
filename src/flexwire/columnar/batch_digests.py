"""Digest record batches with a kernel: facts about batches, record sizes, and hashes of keys.

A `RecordReader` passes on a row of words for each batch that its kernel has digested. If the kernel
refuses a batch, the reader reads the batch as an object and passes on this object. Both words and
objects become rows of the same form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from flexwire.columnar import value_hash as H  # noqa: N812 - a short prefix for about ten names
from flexwire.kernels import load_kernel
from flexwire.records.decode import extents
from flexwire.wire.batch_layout import (
    CONTROL_MASK,
    HEADER_SIZE,
    LEAST_RECORD,
    NO_VALUE,
    RECORD_BATCH,
)
from flexwire.wire.limits import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flexwire.columnar.arrays import NumpyArray
    from flexwire.records import Record, RecordBatch


MOST_KEYS: Final = 1 << 20
"""The largest number of keys that are passed on in one call (32 MB). A single batch with more keys
than this is passed on as a whole.
"""
# This many batches are collected before they are returned.
_MOST_BATCHES: Final = 1 << 16
_MASK: Final = (1 << 64) - 1
_MAGIC, _OUTCOME = "magic", "outcome"

KEYS_DTYPE: Final = np.dtype(
    [("hash", "<u8"), ("other", "<u8"), ("offset", "<i8"), ("size", "<i8")]
)
"""A key: both halves of its hash, and the offset and size of its record."""
_OF_HEADER: Final = (
    "size",
    "base_offset",
    "partition_leader_epoch",
    "attributes",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
)
_OF_RECORDS: Final = (
    "records",
    "key_bytes",
    "value_bytes",
    "null_keys",
    "tombstones",
    "record_headers",
    "oldest",
    "newest",
)
DIGEST: Final = np.dtype([(name, np.int64) for name in _OF_RECORDS])
"""Sums over the records of a batch. A tombstone is a record that has a key and a null value.
``oldest`` and ``newest`` are the lowest and highest timestamps in milliseconds, ignoring timestamps
of -1."""
# Each size below _EXACT has its own class. The larger sizes between one power of two and the next
# are divided into _HALF classes.
_HALF: Final = 64
_EXACT: Final = 2 * _HALF
SIZES: Final = _HALF * 26
"""The number of size classes, which is sufficient for 31-bit sizes."""
_PLACE: Final = ("position", _MAGIC, "last_offset", "uncompressed_size")
_FACTS: Final = (*_PLACE, *_OF_HEADER, *_OF_RECORDS, _OUTCOME)


class BatchDigests:
    """Digests of record batches, returned as a `pa.RecordBatch` of words, with one row per batch.

    ``keys`` is called with the keys of records that have one, in an array of `KEYS_DTYPE` that is
    valid only during the call. Records of control batches are left out. ``seed`` is the initial
    value of the hashes. ``at`` is added to the positions of the batches. ``outcomes`` returns a
    number for each batch, from the batch's attributes, producer id and base offset. This number is
    the column ``outcome``. The keys of a batch are passed on only if its outcome is in ``settled``.
    ``heard`` receives digests as soon as they have been made, several batches at a time: one array
    for each fact, by name.
    """

    def __init__(
        self,
        keys: Callable[[NumpyArray], None],
        seed: int = 0,
        outcomes: Callable[[NumpyArray, NumpyArray, NumpyArray], NumpyArray] | None = None,
        settled: Sequence[int] = (0,),
        heard: Callable[[dict[str, NumpyArray]], None] | None = None,
    ) -> None:
        self.at = 0
        self.sizes: NumpyArray = np.zeros(SIZES, np.int64)
        """The number of records in each size class."""
        self.skipped: list[NumpyArray] = []
        """The positions and sizes of batches that contain no wanted records."""
        self._keys_done = keys
        self._seed = seed
        self._outcomes = outcomes
        self._settled = settled
        self._heard = heard
        # The number of keys that are held from settled batches.
        self._kept_keys = 0
        self._rows: list[dict[str, NumpyArray]] = []
        self._count = 0
        self._digests: NumpyArray = np.zeros(0, DIGEST)
        self._keys: NumpyArray = np.zeros(0, KEYS_DTYPE)
        room = load_kernel("record_sums")
        self._run = room and room.BatchDigester(self.sizes, seed)

    @property
    def has_room(self) -> bool:
        """True if there is room for more batches. If there is none, `take` must be called first."""
        return self._count < _MOST_BATCHES

    def want(self, limits: tuple[int, int, int, int], *, check_crc: bool) -> None:
        """Set which records are digested, by the lowest and highest offset and timestamp."""
        if self._run is not None:
            self._run.want(limits, check_crc)

    def read(self, batches: NumpyArray, first: int, data: NumpyArray) -> tuple[int, bool]:
        """Digest a table's batches, starting at ``first``, as `RecordColumnBuilder.read` does."""
        self._make_room(batches[first])
        self._digests = np.zeros(len(batches), DIGEST)
        stopped: tuple[int, bool] = self._run.read(batches, first, data, self._digests)
        return stopped

    def _make_room(self, batch: NumpyArray) -> None:
        """Make room for the keys of at least one batch."""
        size = int(batch["end"] - batch["start"])
        count = min(max(0, int(batch["count"])), size // LEAST_RECORD)
        if count > self._run.capacity - self._run.used:
            self.finish()
        if count > self._run.capacity or not self._run.capacity:
            room = pa.allocate_buffer(max(count, MOST_KEYS) * KEYS_DTYPE.itemsize)
            self._keys = np.frombuffer(room, KEYS_DTYPE)
            self._run.take_keys(self._keys)

    def finish(self) -> None:
        """Pass on the remaining keys."""
        if self._run is not None and self._run.used:
            self._keys_done(self._keys[: self._run.used])
            self._run.used = self._kept_keys = 0

    def counted(self, batches: NumpyArray, first: int) -> None:
        """Add the digests of the table's finished batches, starting with row ``first``."""
        digests = self._digests[first : first + len(batches)]
        is_kept = batches["is_skipped"] == 0
        # Even batches that were not skipped may contain no wanted records.
        is_kept &= (digests["records"] > 0) | (batches["count"] == 0)
        if not is_kept.all():
            self._skip(batches["position"][~is_kept], batches["size"][~is_kept])
        batches, digests = batches[is_kept], digests[is_kept]
        rows = {name: batches[name].copy() for name in _OF_HEADER}
        rows |= {name: digests[name].copy() for name in _OF_RECORDS}
        rows["position"] = batches["position"] + self.at
        rows[_MAGIC] = np.full(len(batches), RECORD_BATCH)
        rows["last_offset"] = rows["base_offset"] + batches["last_offset_delta"]
        inflated = batches["end"] - batches["start"]
        rows["uncompressed_size"] = inflated + HEADER_SIZE
        rows[_OUTCOME] = self._outcome(rows)
        self._keep_settled(rows)
        self._hold(rows, len(batches))

    def _outcome(self, rows: dict[str, NumpyArray]) -> NumpyArray:
        if self._outcomes is None:
            return np.zeros(len(rows[_MAGIC]), np.int64)
        # In the attributes of messages (magic 0 and 1), these bits have no meaning.
        attributes = np.where(rows[_MAGIC] == RECORD_BATCH, rows["attributes"], 0)
        return self._outcomes(attributes, rows["producer_id"], rows["base_offset"])

    def _keep_settled(self, rows: dict[str, NumpyArray]) -> None:
        """Drop the keys of batches that are not settled, which are the most recent keys."""
        is_settled = np.isin(rows[_OUTCOME], self._settled)
        used = self._run.used
        if not is_settled.all():
            counts = np.where(
                rows["attributes"] & CONTROL_MASK == 0, rows["records"] - rows["null_keys"], 0
            )
            own = self._keys[self._kept_keys : used]
            settled_keys = own[np.repeat(is_settled, counts)]
            own[: len(settled_keys)] = settled_keys
            used = self._kept_keys + len(settled_keys)
            self._run.used = used
        self._kept_keys = used

    def _skip(self, positions: NumpyArray, sizes: NumpyArray) -> None:
        self.skipped.append(np.stack([positions + self.at, sizes]))

    def _hold(self, rows: dict[str, NumpyArray], count: int) -> None:
        if count:
            self._rows.append(rows)
            self._count += count
            if self._heard is not None:
                self._heard(rows)

    def add(self, batch: RecordBatch, records: Sequence[Record]) -> bool:
        """Add a batch that was read as objects and contains wanted records. Return True."""
        if batch.records and not records:
            self._skip(np.array([batch.position]), np.array([batch.size]))
            return True
        size, each = extents(batch)
        wanted_ids = {*map(id, records)}
        sizes = [
            extent
            for extent, record in zip(each, batch.records, strict=True)
            if id(record) in wanted_ids
        ]
        times = [record.timestamp for record in records if record.timestamp != NO_VALUE]
        facts = {name: getattr(batch, name) for name in _OF_HEADER}
        facts |= {
            "position": batch.position + self.at,
            _MAGIC: batch.magic,
            "last_offset": batch.last_offset,
            "uncompressed_size": size,
            "records": len(records),
            "key_bytes": sum(len(record.key or b"") for record in records),
            "value_bytes": sum(len(record.value or b"") for record in records),
            "null_keys": sum(record.key is None for record in records),
            "tombstones": 0,
            "record_headers": sum(len(record.headers) for record in records),
            "oldest": min(times, default=INT64_MAX),
            "newest": max(times, default=INT64_MIN),
        }
        rows = {name: np.array([value], np.int64) for name, value in facts.items()}
        rows[_OUTCOME] = self._outcome(rows)
        if not batch.is_control:
            rows["tombstones"][0] = sum(
                record.key is not None and record.value is None for record in records
            )
            np.add.at(self.sizes, [class_of(extent) for extent in sizes], 1)
            keys = [
                (*hash_of(record.key, self._seed), record.offset, bytes_of)
                for record, bytes_of in zip(records, sizes, strict=True)
                if record.key is not None
            ]
            if keys and int(rows[_OUTCOME][0]) in self._settled:
                self._keys_done(np.array(keys, KEYS_DTYPE))
        self._hold(rows, 1)
        return True

    def take(self) -> pa.RecordBatch:
        """Return the digests so far, and start over without digests."""
        columns = {
            name: np.concatenate([np.zeros(0, np.int64), *(row[name] for row in self._rows)])
            for name in _FACTS
        }
        self._rows.clear()
        self._count = 0
        return pa.RecordBatch.from_pydict(
            {name: pa.array(values) for name, values in columns.items()}
        )


def class_of(size: int) -> int:
    """Return the class to which a record size belongs.

    Each size up to 127 has its own class. The larger sizes between one power of two and the next
    are divided into 64 classes.

    >>> class_of(127), class_of(128), class_of(129), class_of(130)
    (127, 128, 128, 129)
    """
    halvings = max(0, size.bit_length() - _EXACT.bit_length() + 1)
    return _HALF * halvings + (size >> halvings)


def least_of(kind: int) -> int:
    """Return the smallest size in a class.

    >>> [least_of(class_of(one)) for one in (0, 127, 129, 1001)]
    [0, 127, 128, 1000]
    """
    halvings = max(0, kind // _HALF - 1)
    return (kind - _HALF * halvings) << halvings


def hash_of(key: bytes, seed: int) -> tuple[int, int]:
    """Return both halves of a key's hash, as the kernel computes them.

    >>> hash_of(b"a", 1) == hash_of(b"a", 1), hash_of(b"a", 1) == hash_of(b"a", 2)
    (True, False)
    """
    first = seed ^ (len(key) * H.TAKE & _MASK)
    other = (seed * H.SECOND_MIX + len(key)) & _MASK
    for place in range(0, len(key), 8):
        word = int.from_bytes(key[place : place + 8], "little")
        first = (first ^ word) * H.TAKE & _MASK
        first ^= first >> H.TAKE_SHIFT
        other = (other ^ word) * H.FIRST_MIX & _MASK
        other ^= other >> H.MIX_SHIFT
    return _mixed(first), _mixed(other)


def _mixed(code: int) -> int:
    for mix in (H.FIRST_MIX, H.SECOND_MIX):
        code = (code ^ code >> H.MIX_SHIFT) * mix & _MASK
    return code ^ code >> H.MIX_SHIFT
