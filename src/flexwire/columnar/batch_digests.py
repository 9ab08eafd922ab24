"""Record batches digested by a kernel: facts of each, sizes of their records, hashes of their keys.

A `RecordReader` that is given these hands over what its kernel digests as a row of words for each
batch, and what the kernel refuses as the object that was read instead; both become the same row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from flexwire.columnar import value_hash as H  # noqa: N812 - a word in front of some ten
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

    from flexwire.records import Record, RecordBatch

    Words = np.ndarray[Any, Any]

MOST_KEYS: Final = 1 << 20
"""So many keys are handed over at once, 32 MB of them; of one batch more, where it has more."""
# So many batches are held, and then given.
_MOST_BATCHES: Final = 1 << 16
_MASK: Final = (1 << 64) - 1
_MAGIC, _OUTCOME = "magic", "outcome"

KEYS_DTYPE: Final = np.dtype(
    [("hash", "<u8"), ("other", "<u8"), ("offset", "<i8"), ("size", "<i8")]
)
"""A key: both halves of its hash, the offset of its record, and the bytes of that."""
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
"""What a batch's records come to. A tombstone is a record with a key and a null for its value; of
timestamps these are the lowest and the highest in milliseconds, those that are -1 left out."""
# Sizes below _EXACT are a class each; above that there are _HALF classes up to each power of two.
_HALF: Final = 64
_EXACT: Final = 2 * _HALF
SIZES: Final = _HALF * 26
"""The classes of sizes: as many as sizes of 31 bits have."""
_PLACE: Final = ("position", _MAGIC, "last_offset", "uncompressed_size")
_FACTS: Final = (*_PLACE, *_OF_HEADER, *_OF_RECORDS, _OUTCOME)


class BatchDigests:
    """Digests of record batches, taken as a `pa.RecordBatch` of words: one row a batch.

    ``keys`` is given the keys of records that have one, an array of `KEYS_DTYPE` that it is to be
    done with when it returns; records of control batches are not among them. ``seed`` is what the
    hashes begin with. ``at`` is added to the batches' positions. ``outcomes`` returns a number for
    each batch from its attributes, producer id and base offset, which is the column ``outcome``;
    the keys of a batch are given only where its outcome is one of ``settled``. ``heard`` is given
    the digests of some batches as soon as they are made, an array of each fact by its name.
    """

    def __init__(
        self,
        keys: Callable[[Words], None],
        seed: int = 0,
        outcomes: Callable[[Words, Words, Words], Words] | None = None,
        settled: Sequence[int] = (0,),
        heard: Callable[[dict[str, Words]], None] | None = None,
    ) -> None:
        self.at = 0
        self.sizes: Words = np.zeros(SIZES, np.int64)
        """How many records there are of each class of sizes."""
        self.skipped: list[Words] = []
        """Where batches stand that have no record that is wanted, and how many bytes they have."""
        self._keys_done = keys
        self._seed = seed
        self._outcomes = outcomes
        self._settled = settled
        self._heard = heard
        # So many of the keys that are held are known to be of settled batches.
        self._kept_keys = 0
        self._rows: list[dict[str, Words]] = []
        self._count = 0
        self._digests: Words = np.zeros(0, DIGEST)
        self._keys: Words = np.zeros(0, KEYS_DTYPE)
        room = load_kernel("record_sums")
        self._run = room and room.BatchDigester(self.sizes, seed)

    @property
    def has_room(self) -> bool:
        """Whether more batches can be held; else the digests are to be taken first."""
        return self._count < _MOST_BATCHES

    def want(self, limits: tuple[int, int, int, int], *, check_crc: bool) -> None:
        """Say which records are digested: lowest and highest offset, then timestamp."""
        if self._run is not None:
            self._run.want(limits, check_crc)

    def read(self, batches: Words, first: int, data: Words) -> tuple[int, bool]:
        """Digest batches of a table from the first on, as `RecordColumnBuilder.read` reads them."""
        self._make_room(batches[first])
        self._digests = np.zeros(len(batches), DIGEST)
        found: tuple[int, bool] = self._run.read(batches, first, data, self._digests)
        return found

    def _make_room(self, batch: Words) -> None:
        """Have room for the keys of a batch at least."""
        size = int(batch["end"] - batch["start"])
        count = min(max(0, int(batch["count"])), size // LEAST_RECORD)
        if count > self._run.capacity - self._run.used:
            self.finish()
        if count > self._run.capacity or not self._run.capacity:
            room = pa.allocate_buffer(max(count, MOST_KEYS) * KEYS_DTYPE.itemsize)
            self._keys = np.frombuffer(room, KEYS_DTYPE)
            self._run.take_keys(self._keys)

    def finish(self) -> None:
        """Hand over the keys that there are."""
        if self._run is not None and self._run.used:
            self._keys_done(self._keys[: self._run.used])
            self._run.used = self._kept_keys = 0

    def counted(self, batches: Words, first: int) -> None:
        """Hear that batches of the table, from the ``first`` row on, were done with."""
        digests = self._digests[first : first + len(batches)]
        kept = batches["is_skipped"] == 0
        # Of the others there may be none that is wanted either.
        kept &= (digests["records"] > 0) | (batches["count"] == 0)
        if not kept.all():
            self._skip(batches["position"][~kept], batches["size"][~kept])
        batches, digests = batches[kept], digests[kept]
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

    def _outcome(self, rows: dict[str, Words]) -> Words:
        if self._outcomes is None:
            return np.zeros(len(rows[_MAGIC]), np.int64)
        # In the attributes of messages these bits have no meaning.
        attributes = np.where(rows[_MAGIC] == RECORD_BATCH, rows["attributes"], 0)
        return self._outcomes(attributes, rows["producer_id"], rows["base_offset"])

    def _keep_settled(self, rows: dict[str, Words]) -> None:
        """Drop the keys of batches that are not settled; those of these rows came last."""
        is_settled = np.isin(rows[_OUTCOME], self._settled)
        used = self._run.used
        if not is_settled.all():
            counts = np.where(
                rows["attributes"] & CONTROL_MASK == 0, rows["records"] - rows["null_keys"], 0
            )
            own = self._keys[self._kept_keys : used]
            kept = own[np.repeat(is_settled, counts)]
            own[: len(kept)] = kept
            used = self._kept_keys + len(kept)
            self._run.used = used
        self._kept_keys = used

    def _skip(self, positions: Words, sizes: Words) -> None:
        self.skipped.append(np.stack([positions + self.at, sizes]))

    def _hold(self, rows: dict[str, Words], count: int) -> None:
        if count:
            self._rows.append(rows)
            self._count += count
            if self._heard is not None:
                self._heard(rows)

    def add(self, batch: RecordBatch, records: Sequence[Record]) -> bool:
        """Take in a batch that was read into objects, of which some records are wanted; True."""
        if batch.records and not records:
            self._skip(np.array([batch.position]), np.array([batch.size]))
            return True
        size, each = extents(batch)
        kept = {*map(id, records)}
        sizes = [one for one, record in zip(each, batch.records, strict=True) if id(record) in kept]
        times = [one.timestamp for one in records if one.timestamp != NO_VALUE]
        facts = {name: getattr(batch, name) for name in _OF_HEADER}
        facts |= {
            "position": batch.position + self.at,
            _MAGIC: batch.magic,
            "last_offset": batch.last_offset,
            "uncompressed_size": size,
            "records": len(records),
            "key_bytes": sum(len(one.key or b"") for one in records),
            "value_bytes": sum(len(one.value or b"") for one in records),
            "null_keys": sum(one.key is None for one in records),
            "tombstones": 0,
            "record_headers": sum(len(one.headers) for one in records),
            "oldest": min(times, default=INT64_MAX),
            "newest": max(times, default=INT64_MIN),
        }
        rows = {name: np.array([value], np.int64) for name, value in facts.items()}
        rows[_OUTCOME] = self._outcome(rows)
        if not batch.is_control:
            rows["tombstones"][0] = sum(
                one.key is not None and one.value is None for one in records
            )
            np.add.at(self.sizes, [class_of(one) for one in sizes], 1)
            keys = [
                (*hash_of(one.key, self._seed), one.offset, bytes_of)
                for one, bytes_of in zip(records, sizes, strict=True)
                if one.key is not None
            ]
            if keys and int(rows[_OUTCOME][0]) in self._settled:
                self._keys_done(np.array(keys, KEYS_DTYPE))
        self._hold(rows, 1)
        return True

    def take(self) -> pa.RecordBatch:
        """Give the digests so far, and begin anew."""
        found = {
            name: np.concatenate([np.zeros(0, np.int64), *(one[name] for one in self._rows)])
            for name in _FACTS
        }
        self._rows.clear()
        self._count = 0
        return pa.RecordBatch.from_pydict({name: pa.array(one) for name, one in found.items()})


def class_of(size: int) -> int:
    """Give the class of a record size: each of its own up to 127, and then 64 up to twice that.

    >>> class_of(127), class_of(128), class_of(129), class_of(130)
    (127, 128, 128, 129)
    """
    halvings = max(0, size.bit_length() - _EXACT.bit_length() + 1)
    return _HALF * halvings + (size >> halvings)


def least_of(kind: int) -> int:
    """Give the least size of a class.

    >>> [least_of(class_of(one)) for one in (0, 127, 129, 1001)]
    [0, 127, 128, 1000]
    """
    halvings = max(0, kind // _HALF - 1)
    return (kind - _HALF * halvings) << halvings


def hash_of(key: bytes, seed: int) -> tuple[int, int]:
    """Give both halves of a key's hash, as the kernel has them.

    >>> hash_of(b"a", 1) == hash_of(b"a", 1), hash_of(b"a", 1) == hash_of(b"a", 2)
    (True, False)
    """
    one = seed ^ (len(key) * H.TAKE & _MASK)
    other = (seed * H.SECOND_MIX + len(key)) & _MASK
    for place in range(0, len(key), 8):
        word = int.from_bytes(key[place : place + 8], "little")
        one = (one ^ word) * H.TAKE & _MASK
        one ^= one >> H.TAKE_SHIFT
        other = (other ^ word) * H.FIRST_MIX & _MASK
        other ^= other >> H.MIX_SHIFT
    return _mixed(one), _mixed(other)


def _mixed(code: int) -> int:
    for mix in (H.FIRST_MIX, H.SECOND_MIX):
        code = (code ^ code >> H.MIX_SHIFT) * mix & _MASK
    return code ^ code >> H.MIX_SHIFT
