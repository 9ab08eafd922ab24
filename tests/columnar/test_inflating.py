"""For every codec, compressed batches have the same content as columns and as objects."""

from __future__ import annotations

import gzip
import random
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import cramjam
import google_crc32c
import numpy as np
import pytest
import zstandard

from flexwire.columnar import records as inflating
from flexwire.columnar.batch_table import new_table
from flexwire.columnar.program import address
from flexwire.columnar.records import RecordReader, RecordSelection, decode_records
from flexwire.errors import RecordError
from flexwire.kernels import batches
from flexwire.records import Compression, Record, decode_batches, encode_batch
from flexwire.records.compression import deflate, inflate, inflate_into, lz4_bound, zstd_bound
from tests.records.lz4_frames import library_frames

if TYPE_CHECKING:
    from collections.abc import Callable

CODECS = [one for one in Compression if one is not Compression.NONE]
LZ4, ZSTD = 3, 4
ROOM = 1 << 18
_noise = random.Random(7).randbytes(3000)
CONTENTS = [b"", b"x", b"flexwire " * 900, _noise, _noise * 3, bytes(200_000)]


def sealed(batch: bytes, body: bytes) -> bytes:
    """Return the batch with other records, and with their length and CRC."""
    rest = batch[21:61] + body
    length = (len(rest) + 9).to_bytes(4, "big")
    crc = int(google_crc32c.value(rest)).to_bytes(4, "big")
    return batch[:8] + length + batch[12:17] + crc + rest


def several(compression: str, count: int) -> bytes:
    records = [Record(at, 1000 + at, b"key", b"value %d" % at * 9, []) for at in range(count)]
    return encode_batch(records, compression=compression)


def test_a_group_of_all_compressions_is_read_in_order() -> None:
    source = random.Random(1)
    parts = [several(str(one), count) for one in Compression for count in (1, 3, 200)]
    for _ in range(10):
        source.shuffle(parts)
        data = b"".join(parts)
        expected = [r.value for batch in decode_batches(data) for r in batch.records]
        assert decode_records(data)["value"].to_pylist() == expected


@pytest.mark.parametrize("room", [1, 50, 3000, 100_000])
def test_what_there_is_no_room_for_is_read_too(room: int) -> None:
    data = b"".join(several(str(one), count) for one in Compression for count in (200, 1, 90, 3))
    expected = decode_records(data)
    with (
        patch.object(inflating, "MOST_ENOUGH", room // 2),
        patch.object(inflating, "_SPARE", room - room // 2),
    ):
        assert decode_records(data).equals(expected)


@pytest.mark.parametrize("compression", [str(one) for one in CODECS])
def test_a_batch_beyond_the_limit_is_the_error_that_objects_raise(compression: str) -> None:
    small, large = several(compression, 2), several(compression, 300)
    data = small + large + small
    limit = len(several("none", 300)) - 61
    assert decode_records(data, max_inflated=limit).num_rows == 304
    with pytest.raises(RecordError) as expected:
        _ = [batch.records for batch in decode_batches(data, max_inflated=limit - 1)]
    with pytest.raises(RecordError, match="max_inflated") as found:
        decode_records(data, max_inflated=limit - 1)
    assert str(found.value) == str(expected.value)
    reader = RecordReader(data, RecordSelection(max_inflated=limit - 1), mode="PERMISSIVE")
    assert sum(len(one) for one in reader) == 4
    assert [str(one) for one in reader.errors] == [str(expected.value)]


@pytest.mark.parametrize("compression", [str(one) for one in CODECS])
def test_a_damaged_body_is_the_error_that_objects_raise(compression: str) -> None:
    source = random.Random(2)
    small, whole = several(compression, 2), several(compression, 30)
    refused = 0
    for _ in range(150):
        body = bytearray(whole[61:])
        for _ in range(source.choice([1, 2])):
            body[source.randrange(len(body))] = source.randrange(256)
        cut = source.choice([len(body), len(body), source.randrange(1, len(body))])
        damaged = sealed(whole, bytes(body[:cut]) + source.choice([b"", b"", b"\x00", b"\x07abc"]))
        data = small + damaged + small
        expected: list[bytes | None] = []
        error = ""
        for batch in decode_batches(data):
            try:
                expected += [record.value for record in batch.records]
            except RecordError as raised:
                error = str(raised)
        reader = RecordReader(data, RecordSelection(), mode="PERMISSIVE")
        found = [value for one in reader for value in one["value"].to_pylist()]
        assert found == expected
        assert [str(one) for one in reader.errors] == ([error] if error else [])
        refused += bool(error)
    assert refused > 20


def test_a_batch_that_is_skipped_is_not_inflated() -> None:
    damaged = sealed(several("lz4", 30), b"\x00" * 9)
    for compression in CODECS:
        broken = sealed(several(str(compression), 30), b"\x00" * 9)
        later = encode_batch([Record(100, 1, b"", b"later", [])], compression=str(compression))
        found = decode_records(broken + later + damaged, offsets=(100, 100))
        assert found["value"].to_pylist() == [b"later"]


@pytest.mark.parametrize("compression", [str(one) for one in CODECS])
def test_records_that_are_not_compressed_as_their_batch_says_are_an_error(compression: str) -> None:
    plain = several("none", 30)[61:]
    for beside in (b"", several("zstd", 3)):
        with pytest.raises(RecordError):
            decode_records(beside + sealed(several(compression, 30), plain))


def test_groups_end_once_they_have_enough() -> None:
    for compression in Compression:
        one = several(str(compression), 50)
        inflated = len(several("none", 50)) - 61
        table = RecordReader(one * 20, RecordSelection())
        found = table._scan()
        enough = 5 * inflated if compression is not Compression.NONE else 5 * len(one)
        assert table._inflater.inflate_group(found.copy(), enough) == 5
        assert table._inflater.inflate_group(found.copy(), enough + 1) == 6
        assert table._inflater.inflate_group(found.copy(), 1 << 24) == 20


# Codecs that inflate into a given buffer.


def _into(compression: Compression, data: bytes, size: int) -> bytes | None:
    memory = bytearray(b"\xa5" * (size + 64))
    room = memoryview(memory)[:size]
    found = inflate_into(compression, memoryview(data), room)
    assert memory[size:] == b"\xa5" * 64
    return None if found < 0 else bytes(room[:found])


DEFLATE: list[tuple[Compression, Callable[[bytes], bytes]]] = [
    (Compression.GZIP, gzip.compress),
    (Compression.LZ4, lambda data: bytes(cramjam.lz4.compress(data))),
    (Compression.ZSTD, lambda data: bytes(cramjam.zstd.compress(data))),
    (Compression.SNAPPY, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    # Two parts, each framed as Kafka's Java code frames data.
    (
        Compression.SNAPPY,
        lambda data: b"".join(
            deflate(Compression.SNAPPY, part, level=None, magic=2)
            for part in (data[:100], data[100:])
        ),
    ),
]


@pytest.mark.parametrize(("compression", "compress"), DEFLATE)
def test_a_codec_fills_its_room_and_no_more(
    compression: Compression, compress: Callable[[bytes], bytes]
) -> None:
    for content in CONTENTS:
        data = compress(content)
        assert _into(compression, data, 1 << 19) == content
        if compression in {Compression.GZIP, Compression.SNAPPY}:
            assert _into(compression, data, len(content)) == content
        for size in {0, len(content) // 2, len(content) - 1} - {-1, len(content)}:
            assert _into(compression, data, size) is None


@pytest.mark.parametrize(("compression", "compress"), DEFLATE)
def test_a_codec_takes_nothing_that_is_refused_otherwise(
    compression: Compression, compress: Callable[[bytes], bytes]
) -> None:
    source = random.Random(3)
    sound = [compress(content[:3000]) for content in CONTENTS]
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
    empty = compress(b"")
    cases = [a + b for a in (b"", empty * 70, skippable, *sound) for b in (b"", skippable, *sound)]
    cases += [one + behind for one in sound for behind in (b"\x00" * 9, b"\x07", one[:5], b"\x1f")]
    for _ in range(3000):
        raw = bytearray(source.choice(sound))
        raw[source.randrange(len(raw))] = source.randrange(256)
        cases.append(bytes(raw[: source.choice([len(raw), source.randrange(len(raw))])]))
    taken = 0
    for case in cases:
        found = _into(compression, case, ROOM)
        if found is not None:
            taken += 1
            assert found == inflate(compression, case, magic=2, limit=ROOM)
    assert taken >= len(CONTENTS)


def test_zstd_without_contexts_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = [bytes(cramjam.zstd.compress(content)) for content in CONTENTS]
    found = [_into(Compression.ZSTD, body, ROOM) for body in bodies]
    assert found == list(CONTENTS)
    monkeypatch.setattr("flexwire.records.compression._HAS_CONTEXTS", False)
    assert [_into(Compression.ZSTD, body, ROOM) for body in bodies] == found


def test_a_large_window_is_not_for_the_context() -> None:
    # A frame of one byte whose header declares a window of 64 MiB: magic, flags, window, block.
    frame = bytes.fromhex("28b52ffd 00 80 09 00 00") + b"x"
    context = zstandard.ZstdDecompressor(max_window_size=8 << 20).decompressobj()
    with pytest.raises(zstandard.ZstdError, match="memory"):
        context.decompress(frame)
    assert _into(Compression.ZSTD, frame, ROOM) == b"x"


def test_gzip_of_several_members_or_of_a_size_that_lies_is_asked_for() -> None:
    plain = gzip.compress(b"flexwire", mtime=0)
    assert plain[3] == 0, "no flags"
    named = plain[:3] + b"\x08" + plain[4:10] + b"name\x00" + plain[10:]
    empty = gzip.compress(b"", mtime=0)
    wrong = [plain[:-4] + size.to_bytes(4, "little") for size in (0, 7, 9, ROOM, 2**32 - 1)]
    for data in (plain + plain, empty + plain, plain + empty, *wrong, plain[:-1], b"\x1f"):
        assert _into(Compression.GZIP, data, ROOM) is None
    for data in (plain, named):
        assert _into(Compression.GZIP, data, ROOM) == b"flexwire"
        assert _into(Compression.GZIP, data, 8) == b"flexwire"
        assert _into(Compression.GZIP, data, 7) is None


def test_a_bound_that_is_known_is_taken() -> None:
    data = memoryview(bytes(cramjam.zstd.compress(b"flexwire")))
    room = memoryview(bytearray(100))
    assert inflate_into(Compression.ZSTD, data, room, bound=100) == 8
    for bound in (-1, 101):
        assert inflate_into(Compression.ZSTD, data, room, bound=bound) == -1


# The kernel's own limits.


def _bound(data: bytes, compression: int = ZSTD) -> int:
    try:
        return {LZ4: lz4_bound, ZSTD: zstd_bound}[compression](data)
    except RecordError:
        return -1


def _kernel_bounds(
    bodies: list[bytes], *, skipped: int = 0, attributes: int | list[int] = ZSTD
) -> list[int]:
    arrays = [np.frombuffer(body, np.uint8) for body in bodies]
    table: Any = new_table(len(bodies))
    starts = [address(one) for one in arrays]
    table["start"] = starts
    table["end"] = [at + len(one) for at, one in zip(starts, arrays, strict=True)]
    table["attributes"], table["is_skipped"] = attributes, skipped
    bounds: Any = np.zeros(len(bodies), np.int64)
    batches.bound_inflated(table, bounds)
    found: list[int] = bounds.tolist()
    return found


def _damaged(source: random.Random, sound: list[bytes]) -> list[bytes]:
    cases = [*sound]
    for _ in range(5000):
        raw = bytearray(source.choice(sound)[:2000])
        for _ in range(source.choice([0, 1, 1, 3])):
            raw[source.randrange(min(len(raw), 24))] = source.choice([0, 1, 2, 4, 6, 0xFF])
        raw = raw[: source.choice([len(raw), source.randrange(len(raw) + 1)])]
        cases.append(bytes(raw) + source.choice([b"", b"", source.choice(sound)]))
    return cases


def _zstd_frames(source: random.Random) -> list[bytes]:
    sound = [
        bytes(cramjam.zstd.compress(content, level))
        for content in (*CONTENTS, _noise * 200, bytes(1 << 20))
        for level in (-5, 1, 3, 19)
    ]
    # Every size of the fields for the dictionary id and the content size, with and without a
    # checksum.
    for descriptor in range(256):
        body = source.randbytes(source.randrange(14)) + b"\x01\x00\x00"
        sound.append(b"\x28\xb5\x2f\xfd" + bytes([descriptor]) + body + bytes(20))
        sound.append(b"\x28\xb5\x2f\xfd" + bytes([descriptor]) + bytes(30))
    return sound


@pytest.mark.parametrize("compression", [LZ4, ZSTD])
def test_the_kernel_bounds_what_python_bounds(compression: int) -> None:
    source = random.Random(8)
    sound = _zstd_frames(source)
    if compression == LZ4:
        sound = [one for content in CONTENTS for one in library_frames(content)]
    cases = _damaged(source, sound)
    expected = [_bound(case, compression) for case in cases]
    assert _kernel_bounds(cases, attributes=compression) == expected
    assert len(set(expected)) > 20
    assert expected.count(-1) > 500
    assert len(expected) - expected.count(-1) > 500


def test_the_kernel_bounds_each_prefix_as_python_does() -> None:
    whole = bytes(cramjam.zstd.compress(_noise[:100], 3)) + bytes(cramjam.zstd.compress(b"x" * 90))
    cases = [whole[:size] for size in range(len(whole) + 1)]
    assert _kernel_bounds(cases) == [_bound(case) for case in cases]
    assert _kernel_bounds([whole], skipped=1) == [0]
    frame = next(library_frames(_noise[:100]))
    cases = [frame[:size] for size in range(len(frame) + 1)]
    assert _kernel_bounds(cases, attributes=LZ4) == [_bound(case, LZ4) for case in cases]


def test_no_batch_but_one_of_lz4_or_zstd_has_a_bound() -> None:
    attributes = [high | low for high in (0, 0x08, 0x10, 0x70) for low in range(8)]
    # The size of every body can be bounded, but each body has a different bound.
    bodies = [bytes(cramjam.zstd.compress(_noise[:size])) for size in range(len(attributes))]
    expected = [
        {ZSTD: _bound(body), LZ4: -1}.get(one & 0x07, 0)
        for one, body in zip(attributes, bodies, strict=True)
    ]
    assert _kernel_bounds(bodies, attributes=attributes) == expected
    assert len(set(expected)) == 6
