"""Make records in every possible compressed form, and a compression bomb in each form."""

from __future__ import annotations

import gzip
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import cramjam

from flexwire.records.compression import with_old_checksum
from tests.records.batches import GZIP, LZ4, SNAPPY, ZSTD, batch, message, record
from tests.records.test_inflate import xerial

if TYPE_CHECKING:
    from collections.abc import Callable


def _lz4(data: bytes, magic: int) -> bytes:
    frame = bytes(cramjam.lz4.compress(data))
    return frame if magic else with_old_checksum(frame)


def _halves(deflate: Callable[[bytes], Any]) -> Callable[[bytes, int], bytes]:
    def both(data: bytes, _: int) -> bytes:
        middle = len(data) // 2
        return bytes(deflate(data[:middle])) + bytes(deflate(data[middle:]))

    return both


def _once(deflate: Callable[[bytes], Any]) -> Callable[[bytes, int], bytes]:
    return lambda data, _: bytes(deflate(data))


def _zip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


class Form(NamedTuple):
    """One way to compress records: the magic of the format, and the attribute bits of the codec."""

    magic: int
    bits: int
    deflate: Callable[[bytes, int], bytes]

    def body(self, values: list[bytes]) -> bytes:
        """Return records of these values in their uncompressed form."""
        if self.magic == 2:
            return b"".join(record(at, value=one) for at, one in enumerate(values))
        return b"".join(message(one, magic=self.magic, offset=at) for at, one in enumerate(values))

    def packed(self, body: bytes, count: int) -> bytes:
        """Return a batch or a wrapper message with this many records."""
        data = self.deflate(body, self.magic)
        if self.magic == 2:
            return batch(data, count, attributes=self.bits)
        return message(data, magic=self.magic, offset=count - 1, attributes=self.bits)


_CODECS: dict[str, tuple[int, Callable[[bytes, int], bytes]]] = {
    "gzip": (GZIP, _once(_zip)),
    "snappy": (SNAPPY, _once(cramjam.snappy.compress_raw)),
    "xerial": (SNAPPY, lambda data, _: xerial(data[:99], data[99:])),
    "lz4": (LZ4, _lz4),
}
FORMS = {
    f"magic {magic}, {name}": Form(magic, bits, deflate)
    for magic in (0, 1, 2)
    for name, (bits, deflate) in _CODECS.items()
} | {
    "magic 2, gzip members": Form(2, GZIP, _halves(_zip)),
    "magic 2, lz4 frames": Form(2, LZ4, _halves(cramjam.lz4.compress)),
    "magic 2, zstd": Form(2, ZSTD, _once(cramjam.zstd.compress)),
    "magic 2, zstd frames": Form(2, ZSTD, _halves(cramjam.zstd.compress)),
}
"""All codecs, each in every format that supports it."""


@cache
def bomb(count: int) -> bytes:
    """Return a zstd batch with this many records of the smallest size, all with the same bytes."""
    return FORMS["magic 2, zstd"].packed(record() * count, count)
