"""Decode the bodies of request logs in columns, or as objects if columns cannot hold them.

A broker writes a body in the form of Kafka's JSON converters, with the field names of its release.
The broker replaces records with their size and leaves some fields out. A field that was left out
becomes null or an empty array, and is counted. A body that does not match its spec is dropped, and
the reason is kept.

Arrow's JSON reader is given the fields of one version. It refuses unknown names, invalid types,
numbers out of range, and missing fields. In these cases, all bodies that were read together are
read again as objects. The second reading also produces the error messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from flexwire.codec import message
from flexwire.columnar.objects import message_column
from flexwire.columnar.types import RAW_TAGGED_FIELDS, in_column
from flexwire.errors import CodecError, UnknownMessageError
from flexwire.protocol import carries_credentials, withhold
from flexwire.schema.catalog import per_catalog
from flexwire.tables.message_schema import body_type, conform
from flexwire.tables.schema import (
    OUTCOMES,
    type_without_record_bytes,
    with_sizes,
    without_record_bytes,
)
from flexwire.tables.schema import SIZE_SUFFIX as SIZED
from flexwire.tables.tagged_fields import tagged_field_uses
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, NullableStruct, Presence, Schema
from flexwire.wire.types import (
    COMPACT_NULLABLE_RECORDS,
    COMPACT_RECORDS,
    NULLABLE_RECORDS,
    RECORDS,
    ArrayType,
    Bytes,
    Float64,
    String,
    Uuid,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from flexwire.codec import Message
    from flexwire.wire.schema import Field
    from flexwire.wire.types import Type

    Names = Mapping[str, Mapping[str, str]]


SIZE_SUFFIX: Final = "SizeInBytes"
"""A broker appends this suffix to the name of a records field, and writes only the size."""

_RECORDS: Final = {RECORDS, NULLABLE_RECORDS, COMPACT_RECORDS, COMPACT_NULLABLE_RECORDS}

MOST_STRUCTURES: Final = 1 << 17
"""The maximum number of structures in a body: one for each 128 bytes of the longest line."""
MOST_VALUES: Final = 3 << 19
"""The maximum number of values in a body. 100,000 partitions contain fewer values, and a line can
hardly contain more partitions.
"""
# Bodies with at most this many structures become objects in one step. A structure takes about 1 kB.
_AT_ONCE: Final = 1 << 15

_TOO_MANY: Final = (
    f"the body is not read, because it contains more than {MOST_STRUCTURES:,} structures or "
    f"{MOST_VALUES:,} values"
)
_UNFIT: Final = "the body does not match its spec and may contain credentials"
_NOT_JSON: Final = "the body is not JSON"


@dataclass(slots=True)
class LoggedBody:
    """A body, or the reason why it could not be read.

    ``sizes`` contains the size of the records in each of the body's partitions, in order. A size is
    None if the records are null, or if the broker writes no size. ``left_out`` is the number of
    mandatory fields of this version that the broker left out.
    """

    message: Message | None = None
    sizes: list[int | None] = field(default_factory=list)
    left_out: int = 0
    withheld: int = 0
    error: str | None = None


def read_body(
    text: bytes, message_class: type[Message], version: int, *, show_credentials: bool
) -> LoggedBody:
    """Read the body that a line contains."""
    if is_too_large(text):
        return LoggedBody(error=_TOO_MANY)
    body = LoggedBody()
    try:
        _read(body, msgspec.json.decode(text), message_class, version)
    except (CodecError, UnknownMessageError) as error:
        # An error message may quote the body.
        is_quiet = carries_credentials(message_class.entry.name) and not show_credentials
        return LoggedBody(error=_UNFIT if is_quiet else str(error))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return LoggedBody(error=_NOT_JSON)
    if body.message is not None and not show_credentials:
        body.withheld = withhold(body.message)
    return body


def is_too_large(text: bytes) -> bool:
    """Return whether a body may exceed the limits. An empty structure takes three bytes of text.

    >>> is_too_large(b"[" + b"{}," * 100_000 + b"]"), is_too_large(b"[" + b"{}," * 200_000 + b"]")
    (False, True)
    """
    return structures(text) > MOST_STRUCTURES or text.count(b",") > MOST_VALUES


def structures(text: bytes) -> int:
    """Return an upper bound for a body's number of structures. Braces in strings also count."""
    return text.count(b"{")


def _read(body: LoggedBody, obj: Any, message_class: type[Message], version: int) -> None:
    schema = message_class.definition.schema(version)
    for names in ({}, message_class.definition.served.former_names(version)):
        body.sizes, body.left_out = [], 0
        filled = _filled(obj, schema, names, body)
        if names or body.left_out == 0:
            break
    body.message = message_class.from_json(filled, version)


def _filled(obj: Any, schema: Schema, names: Any, body: LoggedBody) -> Any:
    """Return the JSON form of a structure, with its missing fields filled in."""
    if not isinstance(obj, dict):
        return obj
    old = names.get(schema.name, {})
    suffixed = {f"{name}{SIZE_SUFFIX}": f"{new}{SIZE_SUFFIX}" for name, new in old.items()}
    filled = {old.get(name) or suffixed.get(name, name): value for name, value in obj.items()}
    for wire_field in schema.fields:
        if wire_field.presence is Presence.ABSENT:
            continue
        name, kind = wire_field.json_name, wire_field.type
        if isinstance(kind, Bytes) and _takes_size(filled, name, kind, body):
            continue
        if filled.get(name) is None:
            if wire_field.presence is Presence.INLINE:
                body.left_out += name not in filled or not wire_field.nullable
                is_list = isinstance(kind, ArrayType) and not wire_field.nullable
                filled[name] = [] if is_list else None
        elif isinstance(kind, ArrayType) and isinstance(kind.element, Schema):
            items = filled[name]
            if isinstance(items, list):
                filled[name] = [_filled(item, kind.element, names, body) for item in items]
        elif isinstance(kind, Schema | NullableStruct):
            inner = kind if isinstance(kind, Schema) else kind.schema
            filled[name] = _filled(filled[name], inner, names, body)
    return filled


def _takes_size(filled: dict[Any, Any], name: str, kind: Bytes, body: LoggedBody) -> bool:
    """Remove the size of a field's records from a structure. Return False if there is no size."""
    sized = f"{name}{SIZE_SUFFIX}"
    if sized in filled:
        size = filled.pop(sized)
        body.sizes.append(size if type(size) is int and 0 <= size < 1 << 63 else None)
        filled.setdefault(name, None)
        return True
    if kind in _RECORDS and not filled.get(name):
        # A broker never writes the bytes of records. For some messages (ShareFetch), it writes an
        # empty string instead, without a size. In that case, no records and many records look the
        # same.
        body.sizes.append(None)
    return False


@dataclass(frozen=True, slots=True)
class LoggedBodyRows:
    """The columns that bodies supply to a message's table, and the number of omitted fields."""

    columns: dict[str, pa.Array]
    left_out: int = 0


OF_BODY: Final = ("body_version", "withheld_credentials", "tagged_fields", "error", "body")


def rows_by_objects(
    name: str, version: int, texts: Sequence[bytes | None], *, show_credentials: bool = False
) -> LoggedBodyRows:
    """Return the columns of `OF_BODY` for bodies of one version. None is a missing body."""
    parts = [
        _rows(name, version, part, show_credentials=show_credentials) for part in _parts(texts)
    ]
    if len(parts) == 1:
        return parts[0]
    columns = {
        name: pa.concat_arrays([part.columns[name] for part in parts]) for name in parts[0].columns
    }
    return LoggedBodyRows(columns, sum(part.left_out for part in parts))


def _parts(texts: Sequence[bytes | None]) -> Iterator[Sequence[bytes | None]]:
    """Divide bodies into parts, each of which becomes objects in one step."""
    start = weights = 0
    for at, text in enumerate(texts):
        weight = 0 if text is None else structures(text)
        if weights and weights + weight > _AT_ONCE:
            yield texts[start:at]
            start, weights = at, 0
        weights += weight
    yield texts[start:]


def _rows(
    name: str, version: int, texts: Sequence[bytes | None], *, show_credentials: bool
) -> LoggedBodyRows:
    message_class = message(name)
    bodies = [
        LoggedBody()
        if text is None
        else read_body(text, message_class, version, show_credentials=show_credentials)
        for text in texts
    ]
    column = _column(name, version, bodies)
    versions = np.full(len(bodies), version)
    outcomes: dict[str, list[Any]] = {
        "body_version": [None if body.message is None else version for body in bodies],
        "withheld_credentials": [body.withheld for body in bodies],
        "error": [body.error for body in bodies],
    }
    columns = {name: pa.array(outcomes[name], OUTCOMES.field(name).type) for name in outcomes}
    columns["tagged_fields"] = tagged_field_uses(column, versions, {version: message_class})
    return LoggedBodyRows({**columns, "body": column}, sum(body.left_out for body in bodies))


def _column(name: str, version: int, bodies: Sequence[LoggedBody]) -> pa.StructArray:
    try:
        return _sized_column(name, version, bodies)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
        # A number is out of range. Reading each body separately shows which body contains it.
        for body in bodies:
            try:
                _sized_column(name, version, [body])
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
                body.message, body.sizes = None, []
                body.error = "a value in the body does not fit its field"
        return _sized_column(name, version, bodies)


def _sized_column(name: str, version: int, bodies: Sequence[LoggedBody]) -> pa.StructArray:
    kind = body_type(name, None)
    if all(body.message is None for body in bodies):
        column: pa.StructArray = pa.nulls(len(bodies), kind)
    else:
        schema = message(name).definition.schema(version)
        column = message_column(schema, kind, [body.message for body in bodies])
    rows = pa.RecordBatch.from_arrays([column], ["body"])
    sizes = [size for body in bodies for size in body.sizes if body.message is not None]
    columns = with_sizes(rows, sizes) if sizes else without_record_bytes(rows)
    return columns.column(0)


# For fewer bodies than this, columns take longer than objects.
_FEWEST: Final = 4
# The form of a uuid in base64url, without padding.
_UUID: Final = "^[A-Za-z0-9_-]{22}$"


def body_rows(
    name: str, version: int, texts: Sequence[bytes | None], *, show_credentials: bool = False
) -> LoggedBodyRows:
    """Return the columns of `OF_BODY` for bodies of one version. None is a missing body."""
    there = [text for text in texts if text is not None]
    is_plain = show_credentials or not carries_credentials(name)
    is_plain = is_plain and not any(map(is_too_large, there))
    if is_plain and len(there) == len(texts) >= _FEWEST:
        for plan in _plans(name, version):
            columns = _in_columns(plan, there)
            if columns is not None:
                return LoggedBodyRows(columns)
    try:
        return rows_by_objects(name, version, texts, show_credentials=show_credentials)
    except UnknownMessageError as error:
        return _unread(name, texts, str(error))


def _unread(name: str, texts: Sequence[bytes | None], error: str) -> LoggedBodyRows:
    """Return the columns for bodies in a version that exists in no release."""
    count = len(texts)
    outcomes: dict[str, list[Any]] = {
        "body_version": [None] * count,
        "withheld_credentials": [0] * count,
        "tagged_fields": [[]] * count,
        "error": [None if text is None else error for text in texts],
    }
    columns = {name: pa.array(outcomes[name], OUTCOMES.field(name).type) for name in outcomes}
    return LoggedBodyRows({**columns, "body": pa.nulls(count, _table_type(name))})


@dataclass(frozen=True, slots=True)
class _BodyPlan:
    """The JSON schema of the bodies of a version, with the names of a release."""

    name: str
    version: int
    schema: Schema
    json: pa.Schema
    names: Mapping[str, Mapping[str, str]]


@per_catalog
@lru_cache(maxsize=4096)
def _table_type(name: str) -> pa.StructType:
    return type_without_record_bytes(body_type(name, None))


@per_catalog
@lru_cache(maxsize=4096)
def _plans(name: str, version: int) -> tuple[_BodyPlan, ...]:
    """Return the ways to read a version: with the newest names, or with a release's names."""
    message_class = message(name)
    try:
        schema = message_class.definition.schema(version)
    except UnknownMessageError:
        return ()
    plans = []
    former = message_class.definition.served.former_names(version)
    for names in ({}, former) if former else ({},):
        # A mapping from current names to the names in that release.
        turned = {
            struct: {new: old for old, new in pairs.items()} for struct, pairs in names.items()
        }
        kind = _json_struct(schema, _table_type(name), turned)
        if kind is not None and kind.num_fields:
            plans.append(_BodyPlan(name, version, schema, pa.schema(list(kind)), turned))
    return tuple(plans)


def _json_struct(schema: Schema, kind: pa.StructType, names: Names) -> pa.StructType | None:
    """Return the Arrow type for a structure in JSON, or None if no type can represent it."""
    fields = []
    for wire_field in schema.fields:
        if wire_field.presence is Presence.ABSENT:
            continue
        name = names.get(schema.name, {}).get(wire_field.json_name, wire_field.json_name)
        at = kind.get_field_index(wire_field.attribute + SIZED)
        if isinstance(wire_field.type, Bytes) and at >= 0:
            fields.append(pa.field(name + SIZE_SUFFIX, pa.int64()))
            continue
        if (
            wire_field.presence is Presence.TAGGED
            and wire_field.nullable
            and wire_field.default is not None
        ):
            # A field that is null and a field that is missing would look the same.
            return None
        inner = _json_type(wire_field.type, kind.field(wire_field.attribute).type, names)
        if inner is None:
            return None
        fields.append(pa.field(name, inner))
    return pa.struct(fields)


def _json_type(wire: Type, kind: pa.DataType, names: Names) -> pa.DataType | None:
    if isinstance(wire, ArrayType):
        inner = _json_type(wire.element, kind.value_type, names)
        return None if inner is None else pa.list_(inner)
    if isinstance(wire, NullableStruct):
        wire = wire.schema
    if isinstance(wire, Schema):
        return _json_struct(wire, kind, names)
    return None if isinstance(wire, Bytes | Float64) else kind


class _RefusedError(Exception):
    """Columns cannot hold one of the bodies. The error does not show which body."""


def _in_columns(plan: _BodyPlan, texts: Sequence[bytes]) -> dict[str, pa.Array] | None:
    """Return the columns, or None if columns cannot hold a body."""
    data = b"\n".join(texts)
    if data.count(b"\n") != len(texts) - 1:
        return None
    try:
        table = arrow_json.read_json(
            pa.BufferReader(data),
            arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            arrow_json.ParseOptions(explicit_schema=plan.json, unexpected_field_behavior="error"),
        )
        if len(table) != len(texts):
            return None
        columns = [column.combine_chunks() for column in table.select(plan.json.names).columns]
        body = _struct(plan.schema, columns, _table_type(plan.name), len(texts), None)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, _RefusedError):
        return None
    versions = np.full(len(texts), plan.version, np.int32)
    return {
        "body_version": pa.array(versions, pa.int32()),
        "withheld_credentials": pa.array(np.zeros(len(texts), np.int32)),
        "tagged_fields": tagged_field_uses(body, versions, {plan.version: message(plan.name)}),
        "error": pa.nulls(len(texts), pa.string()),
        "body": body,
    }


def _struct(
    schema: Schema, columns: Sequence[pa.Array], kind: pa.StructType, count: int, nulls: Any
) -> pa.StructArray:
    """Return the column of a structure in the table's form, made from the columns of its JSON.

    ``nulls`` marks null structures. The fields of null structures do not count as missing.
    """
    columns_by_name: dict[str, pa.Array] = {}
    present = [
        wire_field for wire_field in schema.fields if wire_field.presence is not Presence.ABSENT
    ]
    for wire_field, column in zip(present, columns, strict=True):
        is_size = kind.get_field_index(wire_field.attribute) < 0
        name = wire_field.attribute + SIZED if is_size else wire_field.attribute
        if wire_field.presence is Presence.TAGGED:
            columns_by_name[name] = _tagged(wire_field, column, kind.field(name).type, nulls)
            continue
        missing = column.is_null() if column.null_count else None
        if missing is not None and not (wire_field.nullable or is_size):
            left_out = missing if nulls is None else pc.and_not(missing, nulls)
            if left_out.true_count:
                raise _RefusedError
        columns_by_name[name] = (
            column if is_size else _value(wire_field.type, column, kind.field(name).type)
        )
    columns_by_name[UNKNOWN_TAGGED_FIELDS] = _nothing(RAW_TAGGED_FIELDS, count)
    fields = [
        columns_by_name[inner.name]
        if inner.name in columns_by_name
        else pa.nulls(count, inner.type)
        for inner in kind
    ]
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=nulls)


def _value(wire: Type, column: pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(wire, ArrayType):
        inner = _value(wire.element, column.values, kind.value_type)
        if isinstance(wire.element, Schema) and column.values.null_count:
            raise _RefusedError
        buffers = column.buffers()[:2]
        layout = column.null_count, column.offset, [inner]
        return pa.Array.from_buffers(pa.list_(inner.type), len(column), buffers, *layout)
    if isinstance(wire, NullableStruct):
        wire = wire.schema
    if isinstance(wire, Schema):
        nulls = column.is_null() if column.null_count else None
        columns = [column.field(at) for at in range(column.type.num_fields)]
        return _struct(wire, columns, kind, len(column), nulls)
    if isinstance(wire, Uuid) and len(column):
        is_uuid = pc.match_substring_regex(column, _UUID)
        if is_uuid.false_count:
            raise _RefusedError
    if not isinstance(wire, String | Uuid) and column.type != kind:
        return conform(column, kind)
    return column


def _tagged(wire_field: Field, column: pa.Array, kind: pa.DataType, nulls: Any) -> pa.Array:
    """Return a tagged field, which JSON leaves out if its value is the default."""
    if not column.null_count or wire_field.default is None:
        return _value(wire_field.type, column, kind)
    wire = (
        wire_field.type.schema if isinstance(wire_field.type, NullableStruct) else wire_field.type
    )
    if isinstance(wire, Schema):
        missing = column.is_null()
        columns = [
            _defaulted(each, column.field(at), missing)
            for at, each in enumerate(
                each for each in wire.fields if each.presence is not Presence.ABSENT
            )
        ]
        return _struct(wire, columns, kind, len(column), nulls)
    filled = _defaulted(wire_field, column, column.is_null())
    return _value(wire_field.type, filled, kind)


def _defaulted(wire_field: Field, column: pa.Array, missing: pa.BooleanArray) -> pa.Array:
    """Return a column with the field's default in the rows where the field is missing."""
    if isinstance(wire_field.type, Schema | NullableStruct):
        raise _RefusedError
    if not isinstance(wire_field.type, ArrayType):
        default = pa.scalar(in_column(wire_field.default), column.type)
        return pc.if_else(missing, default, column)
    if wire_field.default is None:
        return column
    if column.null_count > missing.true_count:
        raise _RefusedError
    # A missing array has no elements, so it has the offsets of an empty array.
    layout = 0, column.offset, [column.values]
    return pa.Array.from_buffers(column.type, len(column), [None, column.buffers()[1]], *layout)


def _nothing(kind: pa.ListType, count: int) -> pa.ListArray:
    offsets = pa.py_buffer(np.zeros(count + 1, np.int32))
    inner = pa.nulls(0, kind.value_type)
    return pa.Array.from_buffers(kind, count, [None, offsets], 0, 0, [inner])
