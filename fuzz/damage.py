"""Damage captures of Kafka's traffic at the places that guide a reader of captures.

Most damage is in values that lead from packet to packet: lengths of blocks and packets, numbers and
descriptions of interfaces, times, byte orders, the ends of files, and gzip's own bytes.
"""

from __future__ import annotations

import gzip
import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import random

_GZIP = b"\x1f\x8b"
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_SECTION_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_PCAP_ORDERS = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<"}
_PCAP_HEAD, _RECORD_HEAD, _BLOCK_HEAD, _PACKET_HEAD = 24, 16, 8, 20
_LIMIT = 64 << 20
_LENGTHS = (0, 1, 3, 8, 11, 12, 13, 31, 32, 65536, _LIMIT, _LIMIT + 4, 2**31 - 4, 2**31, 2**32 - 1)
_FRACTIONS = (999_999, 1_000_000, 2**31, 2**32 - 1)


class _Part(NamedTuple):
    """A block or a packet's record: its place, its kind, and its byte order."""

    start: int
    stop: int
    kind: int
    order: str


def damage_file(source: random.Random, data: bytes) -> bytes:
    """Return a file with one to three damages; a gzip'd file is damaged inside or outside."""
    if data[:2] != _GZIP:
        return _damaged(source, data)
    if source.random() < 0.5:  # noqa: PLR2004 - as often the one as the other
        return gzip.compress(_damaged(source, gzip.decompress(data)), 1, mtime=0)
    return source.choice(_GZIP_DAMAGES)(source, data)


def _damaged(source: random.Random, data: bytes) -> bytes:
    for _ in range(source.choice([1, 1, 2, 3])):
        parts = _parts(data)
        if not parts:
            return source.choice(_OF_BYTES)(source, data)
        if parts[0].kind == _SECTION:
            data = source.choice([*_ANYWHERE, *_OF_BLOCKS, *_OF_BLOCKS])(source, data)
        else:
            data = source.choice([*_ANYWHERE, *_OF_RECORDS])(source, data)
    return data


def _parts(data: bytes) -> list[_Part]:
    """Return the blocks or records of a file, as far as each leads to the next."""
    found: list[_Part] = []
    order = _PCAP_ORDERS.get(data[:4], ">")
    if data[:4] != _SECTION.to_bytes(4):
        at = _PCAP_HEAD
        while at + _RECORD_HEAD <= len(data):
            (size,) = struct.unpack_from(f"{order}I", data, at + 8)
            found.append(_Part(at, min(len(data), at + _RECORD_HEAD + size), _PACKET, order))
            at = found[-1].stop
        return found
    at = 0
    while at + _BLOCK_HEAD + 4 <= len(data):
        order = _SECTION_ORDERS.get(data[at + 8 : at + 12], order) if data[at] == 10 else order  # noqa: PLR2004 - its first byte
        kind, size = struct.unpack_from(f"{order}II", data, at)
        if not _BLOCK_HEAD + 4 <= size <= len(data) - at:
            break
        found.append(_Part(at, at + size, kind, order))
        at += size
    return found


def _any(source: random.Random, data: bytes, kind: int = _PACKET) -> _Part:
    parts = [one for one in _parts(data) if one.kind == kind]
    return source.choice(parts or _parts(data))


def _with(data: bytes, at: int, new: bytes) -> bytes:
    """Replace bytes at a place, as far as the file has so many."""
    new = new[: max(0, len(data) - at)]
    return data[:at] + new + data[at + len(new) :]


def _number(source: random.Random, order: str, old: int) -> bytes:
    near = (old + source.choice([-4, -1, 1, 4, 8, 100])) % 2**32
    return struct.pack(f"{order}I", source.choice([near, near, *_LENGTHS, source.getrandbits(32)]))


# Damages of any file.


def _cut(source: random.Random, data: bytes) -> bytes:
    return data[: source.randrange(len(data) + 1)]


def _flip(source: random.Random, data: bytes) -> bytes:
    at = source.randrange(max(1, len(data)))
    return _with(data, at, bytes([data[at] ^ 1 << source.randrange(8)]) if data else b"")


def _overwrite(source: random.Random, data: bytes) -> bytes:
    size = source.choice([1, 4, 16, 500, 5000])
    fill = source.choice([source.randbytes(size), bytes(size), b"\xff" * size])
    return _with(data, source.randrange(len(data) + 1), fill)


def _insert(source: random.Random, data: bytes) -> bytes:
    at = source.randrange(len(data) + 1)
    return data[:at] + source.randbytes(source.choice([1, 2, 4, 40, 3000])) + data[at:]


def _again(source: random.Random, data: bytes) -> bytes:
    """Repeat or remove some parts, so that bytes of connections are repeated or missing."""
    parts = _parts(data)
    start, stop = sorted(source.choices(range(len(parts)), k=2)) if parts else (0, 0)
    if start == stop:
        return data
    some = data[parts[start].start : parts[stop].start]
    at = source.choice(parts).start
    if source.random() < 0.5:  # noqa: PLR2004 - as often the one as the other
        return data[:at] + some + data[at:]
    return data[: parts[start].start] + data[parts[stop].start :]


def _within_packet(source: random.Random, data: bytes) -> bytes:
    """Change bytes of a packet's headers, from the link header to the first payload bytes."""
    one = _any(source, data)
    at = one.start + source.randrange(_RECORD_HEAD, 120)
    return _with(
        data, min(at, one.stop), source.choice([source.randbytes(2), b"\xff", b"\0\0\0\0"])
    )


# Damages of pcapng.


def _block_length(source: random.Random, data: bytes) -> bytes:
    one = source.choice(_parts(data))
    at = source.choice([one.start + 4, one.stop - 4])
    return _with(data, at, _number(source, one.order, one.stop - one.start))


def _block_kind(source: random.Random, data: bytes) -> bytes:
    one = source.choice(_parts(data))
    kind = source.choice([0, 1, 2, 3, 4, 5, 6, 0x0BAD, _SECTION, 2**32 - 1])
    return _with(data, one.start, struct.pack(f"{one.order}I", kind))


def _section_head(source: random.Random, data: bytes) -> bytes:
    one = _any(source, data, _SECTION)
    at, new = source.choice(
        [
            (8, source.choice(list(_SECTION_ORDERS))),
            (8, source.randbytes(4)),
            (12, source.randbytes(2)),
            (16, source.choice([bytes(8), b"\xff" * 8, source.randbytes(8)])),
        ]
    )
    return _with(data, one.start + at, new)


def _interface(source: random.Random, data: bytes) -> bytes:
    """Change the link type, snaplen or clock, or add an interface that all later packets use."""
    one = _any(source, data, _INTERFACE)
    at, new = source.choice(
        [
            (8, struct.pack(f"{one.order}H", source.choice([0, 1, 9, 101, 113, 147, 276, 65535]))),
            (12, _number(source, one.order, 65535)),
            (16, source.randbytes(8)),
        ]
    )
    if source.random() < 0.3:  # noqa: PLR2004 - now and then
        at = source.choice(_parts(data)).start
        return data[:at] + data[one.start : one.stop] + data[at:]
    return _with(data, one.start + at, new)


def _interface_clock(source: random.Random, data: bytes) -> bytes:
    """Add a section with an interface that counts time in another way."""
    one, head = _any(source, data, _INTERFACE), _any(source, data, _SECTION)
    resolution = source.choice([0, 1, 3, 6, 9, 12, 20, 63, 0x80, 0x94, 0xA8, 0xFF])
    body = data[one.start + 8 : one.start + 16] + struct.pack(f"{one.order}HHB3x", 9, 1, resolution)
    length = struct.pack(f"{one.order}I", len(body) + 12)
    made = data[one.start : one.start + 4] + length + body + length
    at = source.choice(_parts(data)).start
    return data[:at] + data[head.start : head.stop] + made + data[at:]


def _packet_head(source: random.Random, data: bytes) -> bytes:
    """Change a packet's interface number, time, captured length or original length."""
    one = _any(source, data)
    at = one.start + _BLOCK_HEAD + source.choice([0, 4, 8, 12, 16])
    return _with(data, at, _number(source, one.order, 0 if at == one.start + 8 else 100))


def _options(source: random.Random, data: bytes) -> bytes:
    """Add options behind a packet, with any lengths."""
    one = _any(source, data)
    codes = [0, 1, 2, 5, 65535]
    made = b"".join(
        struct.pack(f"{one.order}HH", source.choice(codes), source.choice([0, 1, 5, 9, 400, 65535]))
        + source.randbytes(source.choice([0, 4, 8]))
        for _ in range(source.choice([1, 2, 30]))
    )
    length = struct.pack(f"{one.order}I", one.stop - one.start + len(made))
    block = data[one.start : one.start + 4] + length + data[one.start + 8 : one.stop - 4]
    return data[: one.start] + block + made + length + data[one.stop :]


def _times(source: random.Random, data: bytes) -> bytes:
    """Move the times of consecutive packets much later or earlier, or let them go back."""
    parts = [one for one in _parts(data) if one.kind == _PACKET]
    if not parts:
        return data
    start = source.randrange(len(parts))
    by = source.choice([-1, 1, 400, -400, -(2**20), 2**31])
    at = 12 if data[:4] == _SECTION.to_bytes(4) else 0
    for one in parts[start : start + source.choice([1, 20, 1000])]:
        (high,) = struct.unpack_from(
            f"{one.order}I", data.ljust(one.start + 40, b"\0"), one.start + at
        )
        data = _with(data, one.start + at, struct.pack(f"{one.order}I", (high + by) % 2**32))
    return data


# Damages of pcap.


def _record_head(source: random.Random, data: bytes) -> bytes:
    one = source.choice(_parts(data))
    at = source.choice([0, 4, 8, 8, 8, 12])
    if at == 4:  # noqa: PLR2004 - the fraction of a second
        return _with(data, one.start + at, struct.pack(f"{one.order}I", source.choice(_FRACTIONS)))
    return _with(data, one.start + at, _number(source, one.order, one.stop - one.start - 16))


def _file_head(source: random.Random, data: bytes) -> bytes:
    at = source.choice([0, 4, 6, 8, 12, 16, 20])
    return _with(data, at, source.choice([source.randbytes(4), bytes(4), b"\xff" * 4]))


# Damages of gzip's own bytes.


def _cut_gzip(source: random.Random, data: bytes) -> bytes:
    return data[: source.randrange(2, len(data) + 1)]


def _flip_gzip(source: random.Random, data: bytes) -> bytes:
    at = source.randrange(2, len(data))
    return _with(data, at, bytes([data[at] ^ 1 << source.randrange(8)]))


def _end_gzip(source: random.Random, data: bytes) -> bytes:
    """Add bytes behind the end: zeros, any bytes, or the file again."""
    return data + source.choice([bytes(9), source.randbytes(50), data, _GZIP])


_OF_BYTES = (_cut, _flip, _overwrite, _insert)
_ANYWHERE = (*_OF_BYTES, _again, _within_packet, _times)
_OF_BLOCKS = (
    *(_block_length, _block_length, _block_kind, _section_head, _interface, _interface_clock),
    *(_packet_head, _packet_head, _options),
)
_OF_RECORDS = (_record_head, _record_head, _record_head, _file_head)
_GZIP_DAMAGES = (_cut_gzip, _flip_gzip, _end_gzip)
