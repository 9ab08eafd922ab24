"""Read typed record headers in a column, using only Arrow, in Spark's tasks.

The columns come from Spark's own Kafka source (``includeHeaders``), whose keys are text, or from
`kafka_records`, whose keys are bytes. A convention of `flexwire.records.conventions` defines the
meaning of the bytes. flexwire never guesses.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.arguments import refuse
from flexwire.columnar import ERROR
from flexwire.columnar.types import validate
from flexwire.errors import FlexwireError, RecordHeaderError, short
from flexwire.records.conventions import CONVENTIONS, Convention, FixedWidth
from flexwire.records.typed import Typed, ValueType
from flexwire.spark.functions.messages import with_error
from flexwire.spark.functions.variant import VARIANT, to_variant

if TYPE_CHECKING:
    from flexwire.records.conventions.convention import RawHeader
    from flexwire.spark.functions.messages import FunctionSettings

    Words = np.ndarray[Any, Any]

_FLOATS = {"float": struct.Struct("f"), "double": struct.Struct("d")}
_INT_BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}
HEADER_TYPES: dict[str, pa.DataType] = {
    ValueType.BOOLEAN.value: pa.bool_(),
    ValueType.BYTE.value: pa.int8(),
    ValueType.CHAR.value: pa.string(),
    ValueType.SHORT.value: pa.int16(),
    ValueType.INT.value: pa.int32(),
    ValueType.LONG.value: pa.int64(),
    ValueType.FLOAT.value: pa.float32(),
    ValueType.DOUBLE.value: pa.float64(),
    ValueType.STRING.value: pa.string(),
    ValueType.BYTES.value: pa.binary(),
    "binary": pa.binary(),
}
"""The value types, by their names in KIP-82, with their Arrow types. All but two of these names are
also type names in Spark.
"""


class _HeaderItems(NamedTuple):
    """The record headers of rows: keys and values in two arrays, and the row of each header."""

    keys: pa.Array
    values: pa.Array
    of_row: Words

    def pairs(self, rows: int) -> list[list[RawHeader]]:
        """Return the record headers of each row."""
        rows_of_pairs: list[list[RawHeader]] = [[] for _ in range(rows)]
        keys, values = self.keys.to_pylist(), self.values.to_pylist()
        for row, key, value in zip(self.of_row.tolist(), keys, values, strict=True):
            rows_of_pairs[row].append((key, value))
        return rows_of_pairs


def find_convention(convention: object) -> Convention:
    """Return the convention with this name, or the caller's own convention."""
    if isinstance(convention, Convention):
        return convention
    if not isinstance(convention, str) or convention not in CONVENTIONS:
        raise refuse("convention", f"one of {', '.join(CONVENTIONS)}, or a Convention", convention)
    return CONVENTIONS[convention]


def convention_of(name_given: str, key: str, type_name: str) -> Convention:
    """Return a convention that reads a key as a type. A convention without types gets that type."""
    convention = find_convention(name_given)
    return FixedWidth({key: type_name}) if isinstance(convention, FixedWidth) else convention


def list_type(options: FunctionSettings) -> pa.ListType:
    """Return the type of a column of typed headers, with an error field if requested."""
    kind = pa.struct([("key", pa.string()), ("value", VARIANT)])
    return pa.list_(with_error(kind, options, ERROR) if options.is_permissive else kind)


def header_lists(
    convention: Convention, options: FunctionSettings, headers: pa.Array
) -> pa.ListArray:
    """Read a column of record headers into a column of `list_type`. Null remains null.

    In PERMISSIVE mode, a value that does not fit becomes null, and its error explains why. In
    FAILFAST mode it raises `RecordHeaderError`.
    """
    lists = _take_apart(headers)
    headers_read = [_read(convention, pairs, options) for pairs in lists.pairs(len(headers))]
    counts = np.array([len(row_headers) for row_headers in headers_read], np.int64)
    items = [item for row_headers in headers_read for item in row_headers]
    keys, values, errors = zip(*items, strict=True) if items else ((), (), ())
    kind = list_type(options)
    columns = [pa.array(keys, pa.string()), _variants(values)]
    if options.is_permissive:
        columns.append(pa.array(errors, ERROR))
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    structs = pa.StructArray.from_arrays(columns, fields=list(kind.value_type))
    mask = headers.is_null() if headers.null_count else None
    return pa.ListArray.from_arrays(offsets, structs, type=kind, mask=mask)


def _variants(values: Any) -> pa.StructArray:
    """Return a column of finished Variants. None becomes null."""
    mask = pa.array([variant is None for variant in values], pa.bool_())
    columns = [
        pa.array([b"" if variant is None else variant[at] for variant in values]) for at in (0, 1)
    ]
    cast = [column.cast(pa.binary()) for column in columns]
    return pa.StructArray.from_arrays(cast, fields=list(VARIANT), mask=mask)


def _read(convention: Convention, pairs: list[RawHeader], options: FunctionSettings) -> list[Any]:
    """Return the key, the value and the error of each record header in one row."""
    if not options.is_permissive:
        return [(key, to_variant(plain(value)), None) for key, value in convention.read(pairs)]
    try:
        bound = convention.for_record(pairs)
    except FlexwireError:
        # The header that contains the types is invalid. The error is reported for that header.
        bound = convention
    items: list[Any] = []
    for key, data in pairs:
        try:
            items += [
                (text, to_variant(plain(value)), None) for text, value in bound.read([(key, data)])
            ]
        except FlexwireError as error:
            items.append((_key_text(key), None, _error(error)))
    return items


def _key_text(key: Any) -> str:
    return key.decode(errors="replace") if isinstance(key, bytes) else str(key)


def _error(error: FlexwireError) -> dict[str, Any]:
    reason = error.reason if isinstance(error, RecordHeaderError) else str(error)
    return {"reason": reason, "path": "", "offset": None}


def plain(value: Any) -> Any:
    """Return a value without the type that its convention may store with it."""
    return value.value if isinstance(value, Typed) else value


def header_values(
    convention: Convention, key: str, name: str, options: FunctionSettings, headers: pa.Array
) -> pa.Array:
    """In each row, read the last record header with a key as a type from `HEADER_TYPES`.

    The result is null if there is no such header, or if the header's value is null. Other headers
    are not read. A value that does not fit the type raises `RecordHeaderError`. In PERMISSIVE mode
    it becomes null.
    """
    lists = _take_apart(headers)
    key_bytes = pa.scalar(key.encode(), pa.binary()).cast(lists.keys.type)
    is_key = np.asarray(pc.equal(lists.keys, key_bytes).fill_null(False))
    (places,) = np.nonzero(is_key)
    rows = lists.of_row[places]
    is_last = np.append(rows[1:] != rows[:-1], True) if len(rows) else rows.astype(bool)
    places, rows = places[is_last], rows[is_last]
    of_row = [convention] * len(headers)
    if type(convention).for_record is not Convention.for_record:
        of_row = [_bind(convention, pairs, options) for pairs in lists.pairs(len(headers))]
    values: list[Any] = [None] * len(headers)
    data = lists.values.take(pa.array(places)).to_pylist()
    for row, header_bytes in zip(rows.tolist(), data, strict=True):
        try:
            ((_, value),) = of_row[row].read([(key, header_bytes)]) or [(key, None)]
            values[row] = _fit(convention, key, name, value)
        except FlexwireError:
            if not options.is_permissive:
                raise
    return pa.array(values, HEADER_TYPES[name])


def _bind(convention: Convention, pairs: list[RawHeader], options: FunctionSettings) -> Convention:
    try:
        return convention.for_record(pairs)
    except FlexwireError:
        if not options.is_permissive:
            raise
        return convention


def _fit(convention: Convention, key: str, name: str, value: Any) -> Any:
    """Return a value as its type if nothing is lost. Otherwise raise `RecordHeaderError`."""
    value = plain(value)
    if value is None or _fits(name, value):
        return float(value) if name in _FLOATS and value is not None else value
    raise convention.misfit(key, f"expected {_article(name)}, got {short(value)}")


def _fits(name: str, value: Any) -> bool:
    if name == "boolean" or isinstance(value, bool):
        return name == "boolean" and isinstance(value, bool)
    if name in _INT_BITS:
        most = 1 << (_INT_BITS[name] - 1)
        return isinstance(value, int) and -most <= value < most
    if name in _FLOATS:
        return _is_exact(name, value)
    if HEADER_TYPES[name] == pa.binary():
        return isinstance(value, bytes)
    is_text = isinstance(value, str) and value.encode(errors="replace") == value.encode(
        errors="ignore"
    )
    return is_text and (name != "char" or len(value) == 1)


def _is_exact(name: str, value: Any) -> bool:
    if not isinstance(value, int | float):
        return False
    try:
        (read_back,) = _FLOATS[name].unpack(_FLOATS[name].pack(value))
    except (struct.error, OverflowError):
        return False
    return bool(read_back == value) or math.isnan(value)


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'aeio' else 'a'} {name}"


def _take_apart(headers: pa.Array) -> _HeaderItems:
    """Split record headers into their parts.

    Raises `ArgumentError` for a column of another type.
    """
    kind = headers.type
    inner = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else None
    names = (
        [field.name for field in inner] if inner is not None and pa.types.is_struct(inner) else []
    )
    if names[:2] != ["key", "value"] or not _is_data(inner):
        expected = "a column of array<struct<key:string,value:binary>>"
        raise refuse("headers", expected, str(kind))
    validate(headers, full=True)
    items = headers.flatten()
    of_row = pc.list_parent_indices(headers).to_numpy()
    keys, values = (pc.struct_field(items, name) for name in names[:2])
    # A record header is never null, and neither is its key.
    return _HeaderItems(keys, values, of_row)


def _is_data(inner: pa.StructType) -> bool:
    keys, values = inner.field("key").type, inner.field("value").type
    # Spark uses large binaries if one of its settings requires it.
    of_keys = {pa.string(), pa.binary(), pa.large_string(), pa.large_binary()}
    return keys in of_keys and values in {pa.binary(), pa.large_binary()}
