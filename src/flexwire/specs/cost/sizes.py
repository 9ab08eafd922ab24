"""Count how often each size occurs, and how many bytes each field takes."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from flexwire.wire.cursor import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.wire.schema import Schema


class Sizes:
    """Numbers of bytes. Sizes may be negative. Equal numbers are stored once, with a count.

    >>> sizes = Sizes([4, 8, 8])
    >>> sizes.count, sizes.total, sizes.least, sizes.median, sizes.most
    (3, 20, 4, 8, 8)
    """

    __slots__ = ("_times",)

    def __init__(self, sizes: Iterable[int] = ()) -> None:
        self._times = Counter(sizes)

    def add(self, size: int, times: int = 1) -> None:
        """Count a size."""
        self._times[size] += times

    def merge(self, other: Sizes) -> None:
        """Add all sizes of another object."""
        self._times.update(other._times)

    def padded(self, count: int) -> Sizes:
        """Return these sizes, padded with zeros to ``count`` values."""
        padded = Sizes()
        padded.merge(self)
        if count > self.count:
            padded.add(0, count - self.count)
        return padded

    @property
    def count(self) -> int:
        """The number of sizes."""
        return self._times.total()

    @property
    def total(self) -> int:
        """The sum of all sizes."""
        return sum(size * times for size, times in self._times.items())

    @property
    def least(self) -> int:
        """The smallest size, or 0 if there are no sizes."""
        return min(self._times, default=0)

    @property
    def most(self) -> int:
        """The largest size, or 0 if there are no sizes."""
        return max(self._times, default=0)

    @property
    def median(self) -> float:
        """The median of the sizes, or 0 if there are no sizes."""
        count = self.count
        both = self._at((count - 1) // 2) + self._at(count // 2)
        return both / 2 if both % 2 else both // 2

    def _at(self, place: int) -> int:
        seen = 0
        for size in sorted(self._times):
            seen += self._times[size]
            if seen > place:
                return size
        return 0


TAGGED_FIELDS = "_taggedFields"
"""The name under which bytes of a structure's tagged fields are counted if no field contains them.
"""
UNKNOWN = "_unknownTaggedFields"

# Bytes that begin or end the tagged fields. Other bytes there precede a field's value.
_OF_THE_STRUCTURE = frozenset({"tagged field count", "end of optional fields"})


@lru_cache(maxsize=65536)
def field_path(steps: tuple[str, ...]) -> str:
    """Join a path, with ``[]`` for every index. An array includes its elements.

    >>> field_path(("topics", "[]", "partitions", "[]")), field_path(("topics", "[]", "name"))
    ('topics[].partitions', 'topics[].name')
    """
    text = ""
    for step in steps:
        text += step if step == "[]" or not text else f".{step}"
    return text.removesuffix("[]")


class _SizingReader(Reader):
    """Count the bytes of each field. A tag and its size belong to the field that follows."""

    __slots__ = ("_ahead", "_depth", "sizes")

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.sizes: dict[str, int] = {}
        # The bytes of a tag and a size, and the depth of the field to which they belong.
        self._ahead = 0
        self._depth = 0

    def annotate(self, start: int, label: str, value: object) -> None:
        del value
        path, size = self.path, self.position - start
        if path and path[-1] == TAGGED_FIELDS and label not in _OF_THE_STRUCTURE:
            self._ahead += size
            self._depth = len(path)
        elif len(path) > 1 and path[-2] == TAGGED_FIELDS:
            # The last step is the tag, and there can be 2**31 tags.
            self._add([*path[:-2], UNKNOWN], self._ahead + size)
            self._ahead = 0
        else:
            if self._ahead:
                self._add(path[: self._depth], self._ahead)
                self._ahead = 0
            self._add(path, size)

    def _add(self, path: list[str], size: int) -> None:
        name = field_path(tuple(["[]" if step[0] == "[" else step for step in path]))
        self.sizes[name] = self.sizes.get(name, 0) + size


def read_sizes(schema: Schema, data: bytes) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the value of exactly one message, and the bytes of each field by path.

    The sizes add up to the size of ``data``. The length and the elements of an array count as part
    of the array, except elements that are structures. The count of tagged fields counts as part of
    the structure, under `TAGGED_FIELDS`. Raises `DecodeError`.
    """
    reader = _SizingReader(data)
    value = schema.read(reader)
    if reader.position != len(data):
        rest = len(data) - reader.position
        raise reader.error(f"the message ends here but {rest} bytes follow")
    return value, reader.sizes
