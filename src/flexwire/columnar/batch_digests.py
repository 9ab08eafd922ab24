"""Record batches digested by a kernel: facts of each, sizes of their records, hashes of their keys.

A `RecordReader` that is given these hands over what its kernel digests as a row of words for each
batch, and what the kernel refuses as the object that was read instead; both become the same row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from flexwire.columnar.program import address, allocate
from flexwire.columnar.record_columns import take_batches
from flexwire.kernels.columns import hashing_layout as H  # noqa: N812 - a word in front of some ten
from flexwire.kernels.records import columns_layout as L  # noqa: N812 - as H is one
from flexwire.kernels.records import digesting_layout as D  # noqa: N812 - as H is one
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
_WORD: Final = 8
_MASK: Final = (1 << 64) - 1
_MAGIC, _OUTCOME = "magic", "outcome"

KEYS_DTYPE: Final = np.dtype(
    [("hash", "<u8"), ("other", "<u8"), ("offset", "<i8"), ("size", "<i8")]
)
"""A key: both halves of its hash, the offset of its record, and the bytes of that."""
_OF_HEADER: Final = {
    "size": L.B_SIZE,
    "base_offset": L.B_BASE_OFFSET,
    "partition_leader_epoch": L.B_EPOCH,
    "attributes": L.B_ATTRIBUTES,
    "max_timestamp": L.B_MAX_TIMESTAMP,
    "producer_id": L.B_PRODUCER,
    "producer_epoch": L.B_PRODUCER_EPOCH,
    "base_sequence": L.B_SEQUENCE,
}
_OF_RECORDS: Final = {
    "records": D.G_RECORDS,
    "key_bytes": D.G_KEY_BYTES,
    "value_bytes": D.G_VALUE_BYTES,
    "null_keys": D.G_NULL_KEYS,
    "tombstones": D.G_TOMBSTONES,
    "record_headers": D.G_HEADERS,
    "oldest": D.G_OLDEST,
    "newest": D.G_NEWEST,
}
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

    kernel: ClassVar = "digest_records"

    def __init__(
        self,
        keys: Callable[[Words], None],
        seed: int = 0,
        outcomes: Callable[[Words, Words, Words], Words] | None = None,
        settled: Sequence[int] = (0,),
        heard: Callable[[dict[str, Words]], None] | None = None,
    ) -> None:
        self.at = 0
        self.sizes: Words = np.zeros(D.SIZES, np.int64)
        """How many records there are of each class of sizes."""
        self.words: Words = np.zeros(D.DIGESTING // _WORD, np.int64)
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
        self._digests: Words = np.zeros((0, D.DIGEST // _WORD), np.int64)
        self._keys: Words = np.zeros(0, np.int64)
        self._set(D.D_SIZES, address(self.sizes))
        self._set(D.D_SEED, seed - (1 << 64) if seed >> 63 else seed)

    def _set(self, word: int, value: int) -> None:
        self.words[word // _WORD] = value

    def get(self, word: int) -> int:
        """Give a word of the run."""
        return int(self.words[word // _WORD])

    @property
    def has_room(self) -> bool:
        """Whether more batches can be held; else the digests are to be taken first."""
        return self._count < _MOST_BATCHES

    def begin(self, batches: Words, first: int, data: Words, *, check: bool) -> None:
        """Have batches of a table digested, from the first on; ``check`` their crcs too."""
        self._make_room(batches[first])
        self._digests = np.zeros((len(batches), D.DIGEST // _WORD), np.int64)
        take_batches(self.words, batches, first, data, check=check)
        self._set(D.D_DIGESTS, address(self._digests))

    def _make_room(self, batch: Words) -> None:
        """Have room for the keys of a batch at least."""
        size = int(batch[L.B_END // _WORD] - batch[L.B_START // _WORD])
        count = min(max(0, int(batch[L.B_COUNT // _WORD])), size // LEAST_RECORD)
        if count > self.get(D.D_CAPACITY) - self.get(D.D_USED):
            self.finish()
        if count > self.get(D.D_CAPACITY) or not self.get(D.D_CAPACITY):
            capacity = max(count, MOST_KEYS)
            self._keys = allocate(capacity * D.KEY)
            self._set(D.D_KEYS, address(self._keys))
            self._set(D.D_CAPACITY, capacity)

    def finish(self) -> None:
        """Hand over the keys that there are."""
        used = self.get(D.D_USED)
        if used:
            self._keys_done(self._keys[: used * D.KEY].view(KEYS_DTYPE))
            self._set(D.D_USED, 0)
            self._kept_keys = 0

    def counted(self, batches: Words, first: int) -> None:
        """Hear that batches of the table, from the ``first`` row on, were done with."""
        digests = self._digests[first : first + len(batches)]
        kept = batches[:, L.B_SKIP // _WORD] == 0
        # Of the others there may be none that is wanted either.
        kept &= (digests[:, D.G_RECORDS // _WORD] > 0) | (batches[:, L.B_COUNT // _WORD] == 0)
        if not kept.all():
            self._skip(batches[~kept, L.B_POSITION // _WORD], batches[~kept, L.B_SIZE // _WORD])
        batches, digests = batches[kept], digests[kept]
        rows = {name: batches[:, word // _WORD].copy() for name, word in _OF_HEADER.items()}
        rows |= {name: digests[:, word // _WORD].copy() for name, word in _OF_RECORDS.items()}
        rows["position"] = batches[:, L.B_POSITION // _WORD] + self.at
        rows[_MAGIC] = np.full(len(batches), RECORD_BATCH)
        rows["last_offset"] = rows["base_offset"] + batches[:, L.B_LAST_DELTA // _WORD]
        inflated = batches[:, L.B_END // _WORD] - batches[:, L.B_START // _WORD]
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
        used = self.get(D.D_USED)
        if not is_settled.all():
            counts = np.where(
                rows["attributes"] & CONTROL_MASK == 0, rows["records"] - rows["null_keys"], 0
            )
            own = self._keys[: used * D.KEY].view(KEYS_DTYPE)[self._kept_keys :]
            kept = own[np.repeat(is_settled, counts)]
            own[: len(kept)] = kept
            used = self._kept_keys + len(kept)
            self._set(D.D_USED, used)
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
    halvings = max(0, size.bit_length() - D.EXACT.bit_length() + 1)
    return D.HALF * halvings + (size >> halvings)


def least_of(kind: int) -> int:
    """Give the least size of a class.

    >>> [least_of(class_of(one)) for one in (0, 127, 129, 1001)]
    [0, 127, 128, 1000]
    """
    halvings = max(0, kind // D.HALF - 1)
    return (kind - D.HALF * halvings) << halvings


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
