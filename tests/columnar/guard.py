"""Run the columnar kernels between protected pages, as a program that may crash.

``python -m tests.columnar.guard ROUNDS [--lie input|columns|output]``. In each round, a message,
damaged or not, ends at a protected page, and so do all columns and the output. With a lie, the
kernels are told that there is one more byte than exists. The crash shows that the pages work.
"""

from __future__ import annotations

import ctypes
import mmap
import random
from typing import Any

import numpy as np
import pyarrow as pa

from flexwire.codec import Encoding
from flexwire.columnar import (
    decode_messages,
    encode_messages,
    encoding,
    message_sizes,
    program,
    reference,
)
from flexwire.errors import CodecError
from tests.codec.test_random_specs import damage
from tests.guard_arguments import asked
from tests.kernels.guard import Sample, of_any_spec, of_kafka

PAGE = mmap.PAGESIZE
# The maximum number of rows in a call, and of pages in a buffer.
ROWS, PAGES = 200, 128
# These bytes before a buffer must be unchanged afterwards.
MARK = bytes(range(1, 17))
_protect = ctypes.CDLL(None, use_errno=True).mprotect
_protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Area:
    """Several pages of memory before a protected page."""

    def __init__(self, pages: int) -> None:
        self.memory = mmap.mmap(-1, (pages + 1) * PAGE)
        self.size = pages * PAGE
        self.begin = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.end = self.begin + self.size
        if _protect(self.end, PAGE, 0):
            raise OSError(ctypes.get_errno(), "mprotect")

    def last(self, size: int, lie: int = 0) -> np.ndarray[Any, Any]:
        """Return the last bytes before the guard; the final ``lie`` bytes are beyond it."""
        begin = self.end - size + lie
        ctypes.memmove(begin - len(MARK), MARK, len(MARK))
        return np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(begin)), np.uint8)


class Areas:
    """Memory areas for the buffers of one call; the next call reuses the areas."""

    def __init__(self) -> None:
        self.areas: list[Area] = []
        self.given: list[tuple[Area, int]] = []
        self.lie = 0

    def allocate(self, size: int) -> np.ndarray[Any, Any]:
        """Replace `buffers.allocate`."""
        assert size + len(MARK) <= PAGES * PAGE, "a call of fewer rows"
        if len(self.given) == len(self.areas):
            self.areas.append(Area(PAGES))
        area = self.areas[len(self.given)]
        self.given.append((area, size))
        return area.last(size, self.lie)

    def check(self) -> None:
        """Check that the bytes before each buffer are unchanged, and release all buffers."""
        for area, size in self.given:
            at = area.end - size + self.lie - len(MARK)
            assert ctypes.string_at(at, len(MARK)) == MARK, "written before a buffer"
        self.given.clear()

    def copy(self, array: pa.Array, lie: int = 0) -> pa.Array:
        """Copy an array into guarded buffers of exactly its size."""
        copied: list[pa.Buffer | None] = []
        for buffer in array.buffers()[: array.type.num_buffers]:
            if buffer is None:
                copied.append(None)
                continue
            own = self.allocate(buffer.size)
            own[:] = np.frombuffer(buffer, np.uint8)
            copied.append(pa.foreign_buffer(own.ctypes.data, buffer.size + lie, own))
        if len(array) and array.type in {pa.string(), pa.binary()}:
            offset(copied[1], len(array))[0] += lie
        children: list[pa.Array] | None = None
        if pa.types.is_struct(array.type):
            children = [self.copy(array.field(at), lie) for at in range(array.type.num_fields)]
        elif pa.types.is_list(array.type):
            children = [self.copy(array.values, lie)]
        return pa.Array.from_buffers(array.type, len(array), copied, children=children)


class Stripes:
    """Put messages into one column; each ends at its own protected page.

    The rows between the messages cover the protected pages and are null.
    """

    def __init__(self) -> None:
        self.stride = 8 * PAGE
        self.memory = mmap.mmap(-1, ROWS * self.stride)
        self.begin = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        for row in range(1, ROWS + 1):
            if _protect(self.begin + row * self.stride - PAGE, PAGE, 0):
                raise OSError(ctypes.get_errno(), "mprotect")

    def put(self, messages: list[bytes], lie: int) -> pa.Array:
        """Return the column; with a lie, each message is one byte longer."""
        offsets = np.zeros(2 * len(messages) + 1, np.int32)
        for row, message in enumerate(messages):
            end = (row + 1) * self.stride - PAGE
            ctypes.memmove(self.begin + end - len(message), message, len(message))
            offsets[2 * row : 2 * row + 2] = end - len(message), end + lie
        offsets[-1] = offsets[-2]
        valid = program.bits(np.tile(np.array([1, 0], np.uint8), len(messages)))
        data = pa.foreign_buffer(self.begin, ROWS * self.stride, self)
        return pa.Array.from_buffers(
            pa.binary(), 2 * len(messages), [valid, pa.py_buffer(offsets), data]
        )


def offset(buffer: pa.Buffer, number: int) -> np.ndarray[Any, Any]:
    """Return one of the offsets in a buffer as an array that can be changed in place."""
    place = (ctypes.c_int32 * 1).from_address(buffer.address + 4 * number)
    return np.frombuffer(memoryview(place), np.int32)


def lying_offsets(array: pa.Array, source: random.Random) -> None:
    """Change offsets of an array or of its children in place."""
    if pa.types.is_struct(array.type):
        lying_offsets(array.field(source.randrange(array.type.num_fields)), source)
        return
    if pa.types.is_list(array.type) and len(array.values) and source.random() < 0.7:
        lying_offsets(array.values, source)
        return
    if len(array) and not pa.types.is_primitive(array.type):
        lie = source.choice([-1, 0, 1, 77, 2**30, -(2**31)])
        offset(array.buffers()[1], source.randrange(len(array) + 1))[0] = lie


def refuse(_rows: reference.MessageRows, _row: int) -> Any:
    """Stand in for the reference executor."""
    raise CodecError("refused")


class Round:
    """Run one call after another on messages of one version."""

    def __init__(self, seed: int, lie: str | None) -> None:
        self.source = random.Random(seed)
        self.lie = lie
        self.memory, self.areas = Stripes(), Areas()
        self.refused = self.lied = 0
        for module in (program, encoding):
            setattr(module, "allocate", self.areas.allocate)  # noqa: B010 - it has the type of what it replaces
        # The reference executor is not tested here, and would take most of the time.
        setattr(reference.MessageRows, "_one", refuse)  # noqa: B010 - see above

    def __call__(self, sample: Sample, count: int) -> None:
        """Decode damaged messages; encode and measure the resulting columns."""
        made, version, raw = sample
        messages = [raw, *(damage(raw, self.source) for _ in range(count - 1))]
        data = self.memory.put(messages, int(self.lie == "input"))
        self.areas.lie = 8 if self.lie == "output" else 0
        kind = self.source.choice(list(Encoding)) if self.source.random() < 0.2 else Encoding.KAFKA
        absent: Any = self.source.choice(["null", "default"])
        found = decode_messages(
            made, data, version, encoding=kind, absent=absent, mode="PERMISSIVE"
        )
        self.refused += len(messages) - (len(found.values) - found.values.null_count)
        # Copied, because the next call reuses the memory areas.
        sound = pa.concat_arrays([found.values.filter(found.values.is_valid()), found.values[:0]])
        self.areas.check()
        if self.lie != "output":
            self.write(made, sound, version, kind)

    def write(self, made: Any, structs: pa.Array, version: int, kind: Encoding) -> None:
        """Encode and measure valid columns, and columns with false offsets."""
        for lying in (False, True):
            copied = self.areas.copy(structs, int(self.lie == "columns"))
            if lying:
                lying_offsets(copied, self.source)
            for write in (encode_messages, message_sizes):
                try:
                    write(made, copied, version, encoding=kind, mode="PERMISSIVE")
                except CodecError:
                    self.lied += 1
                    assert lying
            del copied
            self.areas.check()


def main() -> None:
    """Run the requested number of messages, and print their results."""
    rounds, lie = asked(__doc__, "input", "columns", "output")
    run = Round(rounds, lie)
    samples = [one for one in [*of_kafka(), *of_any_spec()] if len(one[2]) < 2000]
    done = 0
    while done < rounds:
        run(run.source.choice(samples), min(ROWS, rounds - done))
        done += ROWS
    print(f"{done} messages, {run.refused} refused, {run.lied} columns that lied")  # noqa: T201 - the test reads this output


if __name__ == "__main__":
    main()
