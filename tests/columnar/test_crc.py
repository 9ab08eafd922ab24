"""CRCs from the processor's instruction and from tables equal the library's CRCs."""

from __future__ import annotations

import random
from pathlib import Path
from unittest.mock import patch

import google_crc32c
import pyarrow as pa
import pytest

from flexwire.columnar import (
    RecordReader,
    RecordSelection,
    decode_records,
    encode_records,
    record_encoding,
)
from flexwire.kernels import load_kernel
from flexwire.records import Record, encode_batch

CPUINFO = Path("/proc/cpuinfo")
CPU = CPUINFO.read_text().split() if CPUINFO.exists() else []
# Each method needs a minimum number of bytes, and leaves the rest to the next method.
SIZES = [*range(2001), *range(3063, 3082), 1536 + 2 * 192 + 3 * 8 + 5, 100_003]


@pytest.mark.long
@pytest.mark.slow
def test_a_crc_is_the_library_s_in_each_way() -> None:
    data = random.Random(5).randbytes(max(SIZES) + 63)
    crcs = load_kernel("batches").crcs
    wrong = [
        (start, size)
        for start in (0, 1, 2, 3, 7, 8, 31, 63)
        for size in SIZES
        if {*crcs(data[start : start + size])} != {google_crc32c.value(data[start : start + size])}
    ]
    assert not wrong


@pytest.mark.skipif("sse4_2" not in CPU, reason="this processor has no such instruction")
def test_a_processor_s_own_instruction_is_taken() -> None:
    assert len(load_kernel("batches").crcs(b"")) > 1


def segment() -> bytes:
    source = random.Random(5)
    return b"".join(
        encode_batch(
            [Record(number, 1000 + number, None, source.randbytes(900), []) for number in range(3)],
            compression=source.choice(["none", "zstd", "lz4"]),
        )
        for _ in range(40)
    )


def read(data: bytes) -> tuple[pa.Table, list[str], int]:
    reader = RecordReader(data, RecordSelection(), mode="PERMISSIVE")
    return pa.Table.from_batches(reader, reader.schema), list(map(str, reader.errors)), len(data)


def test_it_is_the_kernel_that_checks() -> None:
    data = bytearray(encode_batch([Record(0, 0, None, b"value", [])]))
    data[-1] ^= 1
    with patch.object(google_crc32c, "value", side_effect=AssertionError):
        reader = RecordReader(bytes(data[:-1]) + bytes([data[-1] ^ 1]), RecordSelection())
        assert sum(map(len, reader)) == 1
    assert "crc" in read(bytes(data))[1][0]


@pytest.mark.slow
def test_crcs_that_are_written_are_the_same_without_kernels() -> None:
    rows = decode_records(segment())
    written = encode_records(rows, records_per_batch=7)
    with patch.object(record_encoding, "load_kernel", lambda _: None):
        assert encode_records(rows, records_per_batch=7) == written
    assert decode_records(written).equals(rows)


def test_it_is_the_kernel_that_writes() -> None:
    rows = decode_records(segment())
    with patch.object(google_crc32c, "value", side_effect=AssertionError):
        written = encode_records(rows, records_per_batch=7)
    assert decode_records(written).equals(rows)
