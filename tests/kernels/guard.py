"""Read messages that end at a protected page; when run as a program, this may crash.

``python -m tests.kernels.guard ROUNDS [--lie]``: with ``--lie``, the kernel is told that there is
one more byte. The crash shows that the page guards the memory.
"""

from __future__ import annotations

import ctypes
import mmap
import random
import sys
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings

from flexwire.codec import message_of
from flexwire.codec.samples import random_message
from flexwire.kernels import objects, objects_read
from tests.codec.specs import message_specs
from tests.codec.test_random_specs import SEEDS, law
from tests.codec.vectors import class_of
from tests.codec.vectors import load as load_vectors

if TYPE_CHECKING:
    from flexwire.schema.spec import MessageSpec

Sample = tuple[Any, int, bytes]
PAGES = 64
_SIZE_AT = 16
# From 3.14 on CPython stores flags in the lowest bits of an object's address.
_ALIGNMENT = 4 if sys.version_info >= (3, 14) else 1
_libc = ctypes.CDLL(None, use_errno=True)


def protect(page: int) -> None:
    """Forbid all access to a page."""
    change = _libc.mprotect
    change.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if change(page, mmap.PAGESIZE, 0):
        raise OSError(ctypes.get_errno(), "mprotect")


class Guarded:
    """Memory between two protected pages; its first and last bytes are next to them."""

    def __init__(self) -> None:
        size = PAGES * mmap.PAGESIZE
        self.memory = mmap.mmap(-1, size)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.begin = begin + mmap.PAGESIZE
        self.end = begin + size - mmap.PAGESIZE
        protect(begin)
        protect(self.end)

    def put(self, data: bytes) -> int:
        """Put data next to the guard and return its address."""
        ctypes.memmove(self.end - len(data), data, len(data))
        return self.end - len(data)

    def put_bytes(self, data: bytes, *, lie: bool = False) -> bytes:
        """Return bytes that end at the guard, which takes the place of their last zero byte.

        Only one such object exists at a time, until the next one is made. From CPython 3.14, up to
        three bytes are between the end and the guard. With ``lie``, the object claims to be one
        byte longer than it is.
        """
        empty = sys.getsizeof(b"") - 1
        at = self.end - len(data) - empty
        at -= at % _ALIGNMENT
        ctypes.memmove(at, id(data), empty + len(data))
        # The fields of the object: a large reference count, the class, the size.
        ctypes.c_int64.from_address(at).value = 1 << 30
        ctypes.c_int64.from_address(at + _SIZE_AT).value = len(data) + lie
        made: bytes = ctypes.cast(at, ctypes.py_object).value
        return made


class Reader:
    """The kernel for one message version."""

    def __init__(self, made: Any, version: int) -> None:
        program = objects.Program(made.definition.schema(version), made.definition.classes)
        self.read = objects_read.decoder(program, lambda _: None)

    def __call__(self, data: bytes) -> bool:
        """Read bytes that may be a message; return whether they are one."""
        return self.read(data) is not None


def of_kafka() -> list[Sample]:
    """Return Kafka's own vectors."""
    vectors = (vector for vectors in load_vectors().values() for vector in vectors)
    samples = [(class_of(one), one["version"], bytes.fromhex(one["hex"])) for one in vectors]
    return [sample for sample in samples if len(sample[2]) < PAGES * 500]


def of_any_spec() -> list[Sample]:
    """Return messages of random specs."""
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
    """Read damaged messages."""
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
        sound += reader(guarded.put_bytes(data, lie=lie))
    print(f"{rounds} rounds, {sound} messages")  # noqa: T201 - the test reads this


if __name__ == "__main__":
    main(int(sys.argv[1]), lie="--lie" in sys.argv)
