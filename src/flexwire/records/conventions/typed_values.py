"""KIP-82's typed values, by the document's type table and by that of the earlier revision."""

from __future__ import annotations

from typing import Any

from flexwire.errors import DecodeError, EncodeError, short
from flexwire.records.conventions.convention import Convention, Evidence
from flexwire.records.typed import Typed, TypedDialect, ValueType


class TypedValues(Convention):
    """Values that begin with a type byte; they are read to `Typed`, which keeps the type.

    >>> TypedValues().read([(b"retries", bytes.fromhex("04 00000003"))])
    [('retries', Typed('int', 3))]
    """

    name = TypedDialect.DOCUMENT.value
    dialect = TypedDialect.DOCUMENT

    def read_value(self, key: str, data: bytes) -> Typed:
        """Read a value whose type byte the table has, and whose bytes are that type's."""
        try:
            return Typed.decode(data, self.dialect)
        except DecodeError as error:
            raise self.misfit(key, error.reason) from None

    def write_value(self, key: str, value: Any) -> bytes:
        """Write a `Typed`; a plain value would leave its type to be guessed."""
        if not isinstance(value, Typed):
            raise self.misfit(key, f"expected a Typed, got {short(value)}")
        try:
            return value.encode(self.dialect)
        except EncodeError as error:
            raise self.misfit(key, error.reason) from None

    def sign(self, key: str, data: bytes, value: Any) -> Evidence | None:
        """Judge by the type byte and the size; a lone byte or a byte[] may be anything."""
        weight = 2 if len(data) > 1 and value.type != ValueType.BYTES else 1
        return Evidence(key, weight, f"type byte {data[0]:#04x}, and bytes of a {value.type}")


class EarlierTypedValues(TypedValues):
    """The same with the type table of the earlier revision.

    >>> EarlierTypedValues().read([(b"retry", bytes.fromhex("01"))])
    [('retry', Typed('boolean', True))]
    """

    name = TypedDialect.EARLIER.value
    dialect = TypedDialect.EARLIER
