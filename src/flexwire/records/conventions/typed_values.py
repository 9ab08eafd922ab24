"""KIP-82's typed values, with the type table of the document or of its earlier revision."""

from __future__ import annotations

from typing import Any, ClassVar

from flexwire.errors import DecodeError, EncodeError, short
from flexwire.records.conventions.convention import BulkCondition, Convention, HeaderEvidence
from flexwire.records.typed import Typed, TypedDialect, ValueType

# An example for each type with a fixed size. `Typed` computes the bytes from it.
_SAMPLES: dict[ValueType, Any] = {
    ValueType.BOOLEAN: False,
    ValueType.BYTE: 0,
    ValueType.CHAR: "a",
    ValueType.SHORT: 0,
    ValueType.INT: 0,
    ValueType.LONG: 0,
    ValueType.FLOAT: 0.0,
    ValueType.DOUBLE: 0.0,
}


def _condition() -> str:
    """Return the condition that a value begins with a known type byte and has its type's size."""
    rest = "substring(value, 2)"
    fits = {
        ValueType.BOOLEAN: f" and {rest} in (X'00', X'01')",
        ValueType.STRING: f" and is_valid_utf8(cast({rest} as string))",
    }
    conditions = []
    # A byte[] may contain anything, including these bytes.
    for kind, sample in (_SAMPLES | {ValueType.STRING: "a", ValueType.BYTES: b"a"}).items():
        data = Typed(kind, sample).encode()
        size = f" and size = {len(data)}" if kind in _SAMPLES else ""
        conditions.append(
            f"(substring(value, 1, 1) = X'{data[:1].hex()}'{size}{fits.get(kind, '')})"
        )
    return " or ".join(conditions)


class TypedValues(Convention):
    """Values that begin with a type byte, read as `Typed` objects, which keep the type.

    >>> TypedValues().read([(b"retries", bytes.fromhex("04 00000003"))])
    [('retries', Typed('int', 3))]
    """

    name = TypedDialect.DOCUMENT.value
    rank = 20
    in_bulk: ClassVar[BulkCondition | None] = BulkCondition(
        _condition(), "if the type byte and the size fit"
    )
    dialect = TypedDialect.DOCUMENT

    def read_value(self, key: str, data: bytes) -> Typed:
        """Read a value that consists of a type byte from the table and the bytes of that type."""
        try:
            return Typed.decode(data, self.dialect)
        except DecodeError as error:
            raise self.misfit(key, error.reason) from None

    def write_value(self, key: str, value: Any) -> bytes:
        """Write a `Typed`. For a plain value, the type would have to be guessed."""
        if not isinstance(value, Typed):
            raise self.misfit(key, f"expected a Typed, got {short(value)}")
        try:
            return value.encode(self.dialect)
        except EncodeError as error:
            raise self.misfit(key, error.reason) from None

    def sign(self, key: str, data: bytes, value: Any) -> HeaderEvidence | None:
        """Judge by the type byte and the size. A single byte or a byte[] may be anything."""
        weight = 2 if len(data) > 1 and value.type != ValueType.BYTES else 1
        return HeaderEvidence(
            key, weight, f"type byte {data[0]:#04x} followed by a valid {value.type}"
        )


class EarlierTypedValues(TypedValues):
    """KIP-82's typed values with the type table of the earlier revision.

    >>> EarlierTypedValues().read([(b"retry", bytes.fromhex("01"))])
    [('retry', Typed('boolean', True))]
    """

    name = TypedDialect.EARLIER.value
    rank = 30
    in_bulk = None
    dialect = TypedDialect.EARLIER
