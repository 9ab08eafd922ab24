"""How often each size occurred, and how many bytes each field takes."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from flexwire.wire.cursor import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.wire.schema import Schema


class Sizes:
    """Numbers of bytes, negative ones too, of which only the different ones are kept.

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
        """Count all that the other has counted."""
        self._times.update(other._times)

    def padded(self, count: int) -> Sizes:
        """Give these sizes and as many zeros as make ``count`` of them."""
        padded = Sizes()
        padded.merge(self)
        if count > self.count:
            padded.add(0, count - self.count)
        return padded

    @property
    def count(self) -> int:
        """How many sizes there are."""
        return self._times.total()

    @property
    def total(self) -> int:
        """What they add up to."""
        return sum(size * times for size, times in self._times.items())

    @property
    def least(self) -> int:
        """The smallest; 0 without sizes."""
        return min(self._times, default=0)

    @property
    def most(self) -> int:
        """The largest; 0 without sizes."""
        return max(self._times, default=0)

    @property
    def median(self) -> float:
        """The middle one, or what lies half way between the middle two; 0 without sizes."""
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
"""The name under which a structure has the count of its tagged fields, or the end of its buffer."""
UNKNOWN = "_unknownTaggedFields"

# What begins or ends the tagged fields; all else in their place stands before a field's value.
_OF_THE_STRUCTURE = frozenset({"tagged field count", "end of optional fields"})


@lru_cache(maxsize=65536)
def field_path(steps: tuple[str, ...]) -> str:
    """Join a path of which every index is ``[]``; the elements of an array are part of it.

    >>> field_path(("topics", "[]", "partitions", "[]")), field_path(("topics", "[]", "name"))
    ('topics[].partitions', 'topics[].name')
    """
    text = ""
    for step in steps:
        text += step if step == "[]" or not text else f".{step}"
    return text.removesuffix("[]")


class _SizingReader(Reader):
    """Counts the bytes of each field. A tag and its size belong to the field after them."""

    __slots__ = ("_ahead", "_depth", "sizes")

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.sizes: dict[str, int] = {}
        # The bytes of a tag and a size, and how deep the field they belong to stands.
        self._ahead = 0
        self._depth = 0

    def annotate(self, start: int, label: str, value: object) -> None:
        del value
        path, size = self.path, self.position - start
        if path and path[-1] == TAGGED_FIELDS and label not in _OF_THE_STRUCTURE:
            self._ahead += size
            self._depth = len(path)
        elif len(path) > 1 and path[-2] == TAGGED_FIELDS:
            # The last step is the tag, and there may be 2**31 of them.
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
    """Read exactly one message; gives its value, and by path the bytes of each field.

    The sizes add up to those of ``data``. The length of an array is the array's, and so are its
    elements where they are not structures; the count of tagged fields is the structure's, under
    `TAGGED_FIELDS`. Raises `DecodeError`.
    """
    reader = _SizingReader(data)
    value = schema.read(reader)
    if reader.position != len(data):
        rest = len(data) - reader.position
        raise reader.error(f"the message ends here but {rest} bytes follow")
    return value, reader.sizes
