"""Big-endian, untyped values of fixed width, as Java's ByteBuffer and KIP-1308 write them."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from flexwire.errors import short
from flexwire.records.conventions.convention import BulkCondition, Convention, HeaderEvidence

if TYPE_CHECKING:
    from collections.abc import Mapping

_LAYOUTS = {
    "boolean": struct.Struct(">?"),
    "byte": struct.Struct(">b"),
    "short": struct.Struct(">h"),
    "int": struct.Struct(">i"),
    "long": struct.Struct(">q"),
    "float": struct.Struct(">f"),
    "double": struct.Struct(">d"),
}
_TYPES = (*_LAYOUTS, "string")
_BY_WIDTH = {
    1: ("boolean", "byte"),
    2: ("short",),
    4: ("int", "float"),
    8: ("long", "double"),
}


def _is_text(data: bytes) -> bool:
    try:
        return data.decode().isprintable()
    except UnicodeDecodeError:
        return False


class FixedWidth(Convention):
    """Values without a type. The reader must specify a type for each key.

    ``types`` maps keys to Java type names: boolean (one byte, 0 or 1), byte, short, int,
    long, float and double, which are big-endian, and string (UTF-8). A record header whose key has
    no type is invalid. The source is KIP-1308, whose accessors (``intValue`` …) do not change the
    bytes of record headers.

    >>> FixedWidth({"retries": "int"}).read([(b"retries", bytes.fromhex("00000003"))])
    [('retries', 3)]
    """

    name = "kip-1308"
    rank = 60
    in_bulk = BulkCondition("size in (1, 2, 4, 8)", "if the values have 1, 2, 4 or 8 bytes")

    def __init__(self, types: Mapping[str, str] | None = None) -> None:
        self.types = dict(types or {})
        for key, type_ in self.types.items():
            if type_ not in _TYPES:
                reason = f"{short(type_)} is not a type; the types are {', '.join(_TYPES)}"
                raise self.misfit(key, reason)

    def read_value(self, key: str, data: bytes) -> bool | int | float | str:
        """Read a value of the type specified for the key."""
        type_ = self._type(key)
        if type_ == "string":
            return self.text(key, data)
        layout = _LAYOUTS[type_]
        if len(data) != layout.size:
            raise self.misfit(key, f"expected {layout.size} bytes for {type_}, got {len(data)}")
        if type_ == "boolean" and data[0] > 1:
            raise self.misfit(key, f"expected 0 or 1 for boolean, got {data[0]}")
        value: bool | int | float = layout.unpack(data)[0]
        return value

    def write_value(self, key: str, value: Any) -> bytes:
        """Write a value of the type specified for the key. Only a float may lose digits."""
        type_ = self._type(key)
        if type_ == "string" and isinstance(value, str):
            return self.encoded(key, value)
        # In Python a bool is also an int, but a caller who specifies the type int does not mean a
        # bool.
        if type_ != "string" and isinstance(value, bool) is (type_ == "boolean"):
            with suppress(struct.error, OverflowError):
                data = _LAYOUTS[type_].pack(value)
                if isinstance(value, float) or _LAYOUTS[type_].unpack(data)[0] == value:
                    return data
        raise self.misfit(key, f"expected a {type_}, got {short(value)}")

    def evidence(self, key: str, data: bytes) -> HeaderEvidence | None:
        """Judge only by the width if no type was specified. A text of that width proves nothing."""
        if key in self.types:
            return super().evidence(key, data)
        if _is_text(data):
            return None
        types = _BY_WIDTH.get(len(data), ())
        if not types:
            return HeaderEvidence(
                key,
                -1,
                f"the {len(data)} bytes are not valid text, and no type is that many bytes long",
            )
        values = [f"{type_} {_LAYOUTS[type_].unpack(data)[0]!r}" for type_ in types]
        return HeaderEvidence(key, 1, " or ".join(values))

    def _type(self, key: str) -> str:
        if key not in self.types:
            hint = f"FixedWidth({{{short(key)}: 'int'}})"
            raise self.misfit(key, f"the bytes do not state their type; specify it, as in {hint}")
        return self.types[key]
