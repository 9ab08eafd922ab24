"""Values as Variants, the binary form that Spark and Parquet share (version 1).

A Variant consists of a value and its metadata: the names of all fields in the value. Spark offers a
builder only for JSON, and JSON cannot represent bytes, dates or times. Converting a Python value
here takes a tenth of the time that Spark's builder takes. The encoding is specified in
VariantEncoding, a document of the Parquet format.

The names of a type's fields are the same in all rows, and so the metadata is too. Each column
becomes a list that contains the bytes of its values, and a structure concatenates the bytes of its
fields.
"""

from __future__ import annotations

import struct
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.errors import EncodeError, short
from flexwire.facts.units import microseconds_of
from flexwire.wire.limits import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        # This mark tells Spark that a struct of two binaries is a Variant.
        pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
    ]
)
"""A Variant in Arrow, in the form that Spark accepts."""

_VERSION = 1
# The basic type is in the lowest two bits of a value's first byte.
_PRIMITIVE, _SHORT_TEXT, _OBJECT, _ARRAY = range(4)
_NULL, _TRUE, _FALSE, _INT8, _INT16, _INT32, _INT64, _DOUBLE = range(8)
_DECIMAL4, _DECIMAL8, _DECIMAL16, _DATE, _TIMESTAMP = 8, 9, 10, 11, 12
_BINARY, _TEXT = 15, 16
_LONGEST_SHORT, _BYTE, _FEW = 63, 255, 1024
# The number of digits that an integer of 4, 8 or 16 bytes can hold.
_DIGITS = {9: (_DECIMAL4, 4), 18: (_DECIMAL8, 8), 38: (_DECIMAL16, 16)}
_EPOCH_DAY = date(1970, 1, 1)
# The largest Variant that Spark accepts by default, in bytes.
MOST = 16 * 1024 * 1024

NULL = bytes([_NULL << 2])
_PLAIN = {
    None: NULL,
    True: bytes([_TRUE << 2]),
    False: bytes([_FALSE << 2]),
}
_INTS = tuple(
    (-(1 << (bits - 1)), (1 << (bits - 1)) - 1, kind << 2, struct.Struct(f"<B{code}"))
    for bits, kind, code in ((8, _INT8, "b"), (16, _INT16, "h"), (32, _INT32, "i"))
)
_LONG, _FLOAT = struct.Struct("<Bq"), struct.Struct("<Bd")
_SIZED, _DAYS = struct.Struct("<BI"), struct.Struct("<Bi")


def to_variant(value: Any) -> tuple[bytes, bytes]:
    r"""Return the bytes of a value and of its metadata.

    None, bool, int, float, Decimal, str, bytes, date and datetime keep their types. A UUID becomes
    text, and so does a number of more than 38 digits or a value of any other type. A list becomes
    an array, and a dict becomes an object with strings as keys. Raises `EncodeError` for more than
    `MOST` bytes.

    >>> to_variant(5)
    (b'\x0c\x05', b'\x01\x00\x00')
    """
    names: dict[str, int] = {}
    data = _value(value, names)
    if len(data) > MOST:
        raise EncodeError(
            f"the value takes {len(data)} bytes, but a Variant can hold at most {MOST}"
        )
    return data, metadata_of(names)


def variants(values: Iterable[Any]) -> pa.StructArray:
    """Return a column of Variants.

    None becomes the null value of Variants, not a null of the column.
    """
    pairs = [to_variant(value) for value in values]
    columns = [pa.array([pair[at] for pair in pairs], pa.binary()) for at in (0, 1)]
    return pa.StructArray.from_arrays(columns, fields=list(VARIANT))


def _value(value: Any, names: dict[str, int]) -> bytes:
    # A lookup table contains the common types. For a subclass, the base classes are checked.
    write = WRITERS.get(type(value))
    if write is not None:
        return write(value)
    if isinstance(value, dict):
        return _object(value, names)
    if isinstance(value, list | tuple):
        return _array([_value(item, names) for item in value])
    for kind, write_kind in WRITERS.items():
        if isinstance(value, kind):
            return write_kind(value)
    return _text(value.isoformat() if hasattr(value, "isoformat") else str(value))


def _float(value: float) -> bytes:
    return _FLOAT.pack(_DOUBLE << 2, value)


def _binary(value: bytes) -> bytes:
    return _SIZED.pack(_BINARY << 2, len(value)) + value


def _moment(value: datetime) -> bytes:
    return _LONG.pack(_TIMESTAMP << 2, microseconds_of(value))


def _day(value: date) -> bytes:
    return _DAYS.pack(_DATE << 2, (value - _EPOCH_DAY).days)


def _int(value: int) -> bytes:
    for low, high, kind, layout in _INTS:
        if low <= value <= high:
            return layout.pack(kind, value)
    if INT64_MIN <= value <= INT64_MAX:
        return _LONG.pack(_INT64 << 2, value)
    return _decimal(Decimal(value))


def _decimal(value: Decimal) -> bytes:
    if not value.is_finite():
        return _FLOAT.pack(_DOUBLE << 2, float(value))
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - it is a finite number
    # The scale in a Variant is never negative.
    shift = max(exponent, 0)
    scale, size = max(-exponent, 0), len(digits) + shift
    for most, (kind, width) in _DIGITS.items():
        if size <= most and scale <= most:
            unscaled: int = int("".join(map(str, digits))) * 10**shift * (-1 if sign else 1)
            return bytes([kind << 2, scale]) + unscaled.to_bytes(width, "little", signed=True)
    return _text(format(value, "f") if abs(exponent) <= _BYTE else str(value))


def _text(value: str) -> bytes:
    data = _encoded(value)
    if len(data) <= _LONGEST_SHORT:
        return bytes([len(data) << 2 | _SHORT_TEXT]) + data
    return _SIZED.pack(_TEXT << 2, len(data)) + data


def _array(items: list[bytes]) -> bytes:
    width = width_of(sum(map(len, items)))
    return array_head(len(items), width) + joined(items, width)


def array_head(count: int, width: int) -> bytes:
    """Return the bytes before an array's items, whose offsets are numbers of ``width`` bytes."""
    is_large = count > _BYTE
    return bytes([(is_large << 2 | width - 1) << 2 | _ARRAY]) + _count(count)


def _object(value: dict[Any, Any], names: dict[str, int]) -> bytes:
    keys = tuple(value)
    # Field names repeat and are cached. Keys that come from data are not.
    is_known = set(map(type, keys)) == {str} and len("".join(keys)) <= _FEW
    fields = _known_fields(keys) if is_known else _fields(keys)
    numbers = [names.setdefault(name, len(names)) for _, name in fields]
    items = [_value(value[key], names) for key, _ in fields]
    width = width_of(sum(map(len, items)))
    return object_head(numbers, width) + joined(items, width)


def object_head(numbers: list[int], width: int) -> bytes:
    """Return the bytes before an object's items: the numbers of its fields' names."""
    is_large, id_width = len(numbers) > _BYTE, width_of(max(numbers, default=0))
    head = (is_large << 4 | (id_width - 1) << 2 | width - 1) << 2 | _OBJECT
    ids = b"".join(number.to_bytes(id_width, "little") for number in numbers)
    return bytes([head]) + _count(len(numbers)) + ids


@lru_cache(maxsize=1024)
def _known_fields(keys: tuple[str, ...]) -> list[tuple[str, str]]:
    return _fields(keys)


def _fields(keys: tuple[Any, ...]) -> list[tuple[Any, str]]:
    """Return the keys and their names as strings, in the order that an object needs."""
    texts = {key if isinstance(key, str) else str(key): key for key in keys}
    if len(texts) < len(keys):
        raise EncodeError(f"two keys in {short(keys)} are the same string")
    return [(texts[name], name) for name in in_order(texts)]


def in_order(names: Iterable[str]) -> list[str]:
    """Return names in the order of an object's fields, sorted by their bytes."""
    return sorted(names, key=lambda name: name.encode("utf-8", "surrogatepass"))


def _count(count: int) -> bytes:
    return count.to_bytes(4 if count > _BYTE else 1, "little")


def joined(items: Sequence[bytes], width: int) -> bytes:
    """Return the offsets of the items, each a number of ``width`` bytes, followed by the items."""
    ends = accumulate(map(len, items), initial=0)
    if width == 1:
        return bytes(ends) + b"".join(items)
    return b"".join([*(at.to_bytes(width, "little") for at in ends), *items])


def metadata_of(names: Iterable[str]) -> bytes:
    """Return the metadata of a Variant with these names, in the order of their numbers."""
    texts = [_encoded(name) for name in names]
    size = sum(map(len, texts))
    width = width_of(max(size, len(texts)))
    head = bytes([_VERSION | (width - 1) << 6])
    return head + len(texts).to_bytes(width, "little") + joined(texts, width)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise EncodeError(f"{short(text)} cannot be encoded as UTF-8: {error.reason}") from None


def width_of(number: int) -> int:
    """Return the number of bytes that a non-negative number needs."""
    return max(1, (number.bit_length() + 7) // 8)


# The functions that write values other than lists and dicts. The order matters: a bool is also an
# int, and a datetime is also a date.
WRITERS: dict[type, Callable[[Any], bytes]] = {
    bool: _PLAIN.__getitem__,
    type(None): _PLAIN.__getitem__,
    int: _int,
    float: _float,
    str: _text,
    bytes: _binary,
    Decimal: _decimal,
    datetime: _moment,
    date: _day,
}

_BYTE_OF_COLUMN = 255


def struct_variants(structs: pa.StructArray) -> pa.StructArray:
    """Return structures as Variants, equal to the results of `to_variant` for their dicts.

    Null stays null. Raises `EncodeError` for a row that exceeds the maximum size of a Variant.
    """
    names: dict[str, int] = {}
    values = _column(structs, names)
    largest = max(map(len, values), default=0)
    if largest > MOST:
        raise EncodeError(f"a value takes {largest} bytes, but a Variant can hold at most {MOST}")
    metadata = pa.repeat(pa.scalar(metadata_of(names), pa.binary()), len(values))
    mask = structs.is_null() if structs.null_count else None
    columns = [pa.array(values, pa.binary()), metadata]
    return pa.StructArray.from_arrays(columns, fields=list(VARIANT), mask=mask)


def _column(column: pa.Array, names: dict[str, int]) -> list[bytes]:
    if pa.types.is_struct(column.type):
        return _structs(column, names)
    if pa.types.is_list(column.type):
        return _lists(column, names)
    return [WRITERS[type(value)](value) for value in column.to_pylist()]


def _structs(structs: pa.StructArray, names: dict[str, int]) -> list[bytes]:
    fields = in_order([field.name for field in structs.type])
    numbers = [names.setdefault(name, len(names)) for name in fields]
    columns = [_column(structs.field(name), names) for name in fields]
    objects = _objects(numbers, zip(*columns, strict=True))
    for row in np.flatnonzero(np.asarray(structs.is_null())).tolist():
        objects[row] = NULL
    return objects


def _lists(lists: pa.ListArray, names: dict[str, int]) -> list[bytes]:
    values = _column(lists.flatten(), names)
    counts = np.asarray(pc.list_value_length(lists).fill_null(0))
    ends = np.cumsum(counts).tolist()
    arrays = []
    for count, end in zip(counts.tolist(), ends, strict=True):
        items = values[end - count : end]
        width = width_of(sum(map(len, items)))
        arrays.append(array_head(count, width) + joined(items, width))
    for row in np.flatnonzero(np.asarray(lists.is_null())).tolist():
        arrays[row] = NULL
    return arrays


def _objects(numbers: list[int], rows: Iterable[Sequence[bytes]]) -> list[bytes]:
    narrow, objects = object_head(numbers, 1), []
    for items in rows:
        data = b"".join(items)
        if len(data) <= _BYTE_OF_COLUMN:
            # This is the most common case.
            objects.append(narrow + bytes(accumulate(map(len, items), initial=0)) + data)
        else:
            width = width_of(len(data))
            objects.append(object_head(numbers, width) + joined(items, width))
    return objects
