"""The names in generated source: a field's own for its local, and none for two things.

A field may be called ``size``, a structure ``UUID``. What the source itself needs comes first, then
locals, then what the module holds; what comes later takes a "_" for each name that was there.
"""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING

from flexwire.codec import refusing

if TYPE_CHECKING:
    from collections.abc import Iterable

HOMES = {
    "Struct": "struct",
    "pack": "struct",
    "unpack_from": "struct",
    "UUID": "uuid",
    "starmap": "itertools",
    **dict.fromkeys(refusing.__all__, refusing.__name__),
}
"""What generated source imports, and from where."""
_BUILTINS = ("bool", "bytearray", "bytes", "dict", "float", "len", "list", "range", "str")
_DECODING = (
    *("count", "data", "end", "high", "item", "items", "limit", "marker", "position", "rows"),
    *("size", "stop", "tag", "tags"),
)
_ENCODING = ("known", "message", "out", "payload", "raw")
OWN = frozenset({*HOMES, *_BUILTINS, *_DECODING, *_ENCODING, "unknown", "_"})
"""What a field's local and a module's constant may not be called."""


class Names:
    """The names of one module, made from the attributes that its structures have.

    >>> names = Names(["topic_id", "size", "size_"])
    >>> names.local("topic_id"), names.local("size"), names.local("size_")
    ('topic_id', 'size__', 'size_')
    >>> names.shared("class", "UUID"), names.shared("function", "decode_UUID")
    ('UUID_', 'decode_UUID')
    """

    def __init__(self, attributes: Iterable[str]) -> None:
        wanted = set(attributes)
        self._taken = OWN | wanted
        self._locals: dict[str, str] = {}
        self._shared: dict[tuple[str, str], str] = {}
        for name in sorted(wanted):
            self._locals[name] = self._free(name) if name in OWN else name

    def local(self, attribute: str) -> str:
        """Give the local that holds a field."""
        return self._locals[attribute]

    def shared(self, kind: str, wanted: str) -> str:
        """Give the module's name for a thing of one kind, the same each time."""
        key = (kind, wanted)
        if key not in self._shared:
            self._shared[key] = self._free(wanted)
        return self._shared[key]

    def _free(self, name: str) -> str:
        while name in self._taken or keyword.iskeyword(name):
            name += "_"
        self._taken |= {name}
        return name
