"""Crcs by the processor's instruction: those of the library, and what happens without."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from typing import TYPE_CHECKING
from unittest.mock import PropertyMock, patch

import google_crc32c
import pyarrow as pa
import pytest

from flexwire.columnar import RecordReader, Wanted, decode_records, encode_records, record_encoding
from flexwire.columnar.program import address, allocate
from flexwire.kernels.engine import kernel
from flexwire.kernels.machine import part
from flexwire.kernels.records.crc import HAS_CRC, START, add_bytes, crc_of
from flexwire.records import Record, encode_batch
from tests.each import each

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

needs_instruction = pytest.mark.skipif(not HAS_CRC, reason="this processor has no such instruction")
# Each way of computing begins at a number of bytes, and leaves what remains to the next.
SIZES = [*range(2001), *range(3063, 3082), 1536 + 2 * 192 + 3 * 8 + 5, 100_003]


@part
def unfolded(position: int, end: int) -> int:
    """Give a crc as processors compute it that do not multiply vectors."""
    return add_bytes(START, position, end) ^ START


@pytest.mark.slow
@needs_instruction
@each("computed", [crc_of, unfolded])
def test_a_crc_is_the_library_s(computed: Callable[[int, int], int]) -> None:
    data = random.Random(5).randbytes(max(SIZES) + 63)
    room = allocate(len(data))
    room[:] = memoryview(data)
    wrong = [
        (start, size)
        for start in (0, 1, 2, 3, 7, 8, 31, 63)
        for size in SIZES
        if computed(address(room) + start, address(room) + start + size)
        != google_crc32c.value(data[start : start + size])
    ]
    assert not wrong


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
    reader = RecordReader(data, Wanted(), mode="PERMISSIVE")
    return pa.Table.from_batches(reader, reader.schema), list(map(str, reader.errors)), len(data)


@pytest.mark.slow
def test_a_processor_without_the_instruction_finds_the_same_damage() -> None:
    data = bytearray(segment())
    for place in range(100, len(data), len(data) // 9):
        data[place] ^= 1
    found = read(bytes(data))
    assert len(found[1]) > 5
    with patch.object(
        RecordReader, "_kernel_checks", PropertyMock(return_value=False), create=True
    ):
        assert read(bytes(data)) == found


@needs_instruction
def test_it_is_the_kernel_that_checks() -> None:
    data = bytearray(encode_batch([Record(0, 0, None, b"value", [])]))
    data[-1] ^= 1
    with patch("flexwire.columnar.records.google_crc32c.value", side_effect=AssertionError):
        reader = RecordReader(bytes(data[:-1]) + bytes([data[-1] ^ 1]), Wanted())
        assert sum(map(len, reader)) == 1
    assert "crc" in read(bytes(data))[1][0]


@pytest.mark.slow
def test_crcs_that_are_written_are_the_same_without_the_instruction() -> None:
    rows = decode_records(segment())
    written = encode_records(rows, records_per_batch=7)
    with patch.object(
        record_encoding, "kernel", lambda name: None if name == "seal_records" else kernel(name)
    ):
        assert encode_records(rows, records_per_batch=7) == written
    assert decode_records(written).equals(rows)


@needs_instruction
def test_it_is_the_kernel_that_writes() -> None:
    rows = decode_records(segment())
    with patch.object(google_crc32c, "value", side_effect=AssertionError):
        written = encode_records(rows, records_per_batch=7)
    assert decode_records(written).equals(rows)


@pytest.mark.compiles
def test_kernels_for_any_processor_take_no_instruction_of_this(tmp_path: Path) -> None:
    # It gives whether there are crcs; LLVM ends a process that has an instruction it may not take.
    script = """
import numpy
from flexwire.kernels.engine import kernel
print(kernel("seal_records")(numpy.zeros(100, "i8").ctypes.data, 0, 0))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={
            **os.environ,
            "XDG_CACHE_HOME": str(tmp_path),
            "TMPDIR": str(tmp_path),
            "NUMBA_CPU_NAME": "generic",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
