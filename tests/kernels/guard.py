"""Reads messages that end against a page that nobody may read; run as a program, it may crash.

``python -m tests.kernels.guard ROUNDS [--lie]``: with ``--lie`` the kernel is told that one byte
more is there, which is the proof that the page guards.
"""

from __future__ import annotations

import ctypes
import mmap
import random
import sys
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings

from flexwire.codec import message_of
from flexwire.kernels.cache import load
from flexwire.kernels.objects import layout as L  # noqa: N812 - as in the room itself
from flexwire.kernels.objects.program import ObjectProgram
from tests.codec.specs import message_specs
from tests.codec.test_random_specs import SEEDS, law
from tests.codec.values import random_message
from tests.codec.vectors import class_of
from tests.codec.vectors import load as load_vectors

if TYPE_CHECKING:
    from flexwire.schema.spec import MessageSpec

Sample = tuple[Any, int, bytes]
PAGES = 64
_libc = ctypes.CDLL(None, use_errno=True)


def protect(page: int) -> None:
    """Let nobody touch a page."""
    change = _libc.mprotect
    change.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if change(page, mmap.PAGESIZE, 0):
        raise OSError(ctypes.get_errno(), "mprotect")


class Guarded:
    """Memory between two protected pages: its last byte lies against one, its first against one."""

    def __init__(self) -> None:
        size = PAGES * mmap.PAGESIZE
        self.memory = mmap.mmap(-1, size)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.begin = begin + mmap.PAGESIZE
        self.end = begin + size - mmap.PAGESIZE
        protect(begin)
        protect(self.end)

    def put(self, data: bytes) -> int:
        """Put data against the guard and give its address."""
        ctypes.memmove(self.end - len(data), data, len(data))
        return self.end - len(data)


class Reader:
    """The kernel for structures of one message version, called on any memory."""

    def __init__(self, made: Any, version: int) -> None:
        kernels = load()
        assert kernels is not None
        self.program = ObjectProgram(made.definition.schema(version), made.definition.classes)
        self.shared = self.program.shared(kernels.read_struct, lambda _: None)
        word = ctypes.c_int64
        self.read = ctypes.PYFUNCTYPE(word, word, word, word)(kernels.read_struct)
        self.call = (word * (L.CALL // 8))()

    def __call__(self, begin: int, end: int) -> tuple[bool, int]:
        """Read from ``begin`` to ``end``; whether it was a message, and where it ended."""
        where = ctypes.addressof(self.call)
        for offset, value in (
            (L.C_POSITION, begin),
            (L.C_END, end),
            (L.C_GLOBALS, self.shared),
        ):
            self.call[offset // 8] = value
        try:
            made = self.read(where, self.program.root, 0)
        except UnicodeDecodeError:
            # The entry kernel would clear it, and ctypes raises it.
            made = 0
        if made:
            ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(made))
        return bool(made), self.call[0]


def of_kafka() -> list[Sample]:
    """Give Kafka's own vectors."""
    vectors = (vector for vectors in load_vectors().values() for vector in vectors)
    samples = [(class_of(one), one["version"], bytes.fromhex(one["hex"])) for one in vectors]
    return [sample for sample in samples if len(sample[2]) < PAGES * 500]


def of_any_spec() -> list[Sample]:
    """Give messages of random specs."""
    samples: list[Sample] = []

    @given(message_specs(), SEEDS)
    @settings(law, max_examples=25)
    def collect(spec: MessageSpec, seed: int) -> None:
        made = message_of(spec)
        for version in spec.valid_versions:
            raw = random_message(made, version, seed).encode(version)
            samples.append((made, version, raw))

    collect()
    return samples


def main(rounds: int, *, lie: bool) -> None:
    """Read damaged messages; every position must stay within what the kernel was given."""
    guarded = Guarded()
    source = random.Random(rounds)
    kinds = [of_kafka(), of_any_spec()]
    readers: dict[tuple[Any, int], Reader] = {}
    sound = 0
    for _ in range(rounds):
        made, version, sample = source.choice(source.choice(kinds))
        key = (made, version)
        reader = readers.get(key) or readers.setdefault(key, Reader(made, version))
        raw = bytearray(sample)
        for _ in range(source.choice([0, 1, 1, 2, 5])):
            if raw:
                raw[source.randrange(len(raw))] = source.choice(
                    [0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)]
                )
        data = bytes(raw[: source.randint(0, len(raw))] if source.random() < 0.5 else raw)
        begin = guarded.put(data)
        read, position = reader(begin, guarded.end + lie)
        assert begin <= position <= guarded.end + lie
        sound += read
    print(f"{rounds} rounds, {sound} messages")  # noqa: T201 - what the test reads


if __name__ == "__main__":
    main(int(sys.argv[1]), lie="--lie" in sys.argv)
