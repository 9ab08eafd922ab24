"""The bodies of request logs, in columns, or as objects where columns refuse them.

A broker writes a body in the form of Kafka's JSON converters, with the names of its release, how
many bytes records are in their place, and without what it leaves out. What is left out is null, or
an empty array, and counted; what does not fit the spec has no body, and the reason.

It is told the fields of one version, so an unknown name, a wrong type and a number beyond its field
are refused, and so is a field that the broker left out: all bodies that were read together then go
through `flexwire.tables.request_log_bodies`, which words what is wrong.
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
"""What a broker puts after the name of a field of records, and its size in the field's place."""

_RECORDS: Final = {RECORDS, NULLABLE_RECORDS, COMPACT_RECORDS, COMPACT_NULLABLE_RECORDS}

MOST_STRUCTURES: Final = 1 << 17
"""So many structures a body may have: a line has 128 bytes for each, at the most that it has."""
MOST_VALUES: Final = 3 << 19
"""So many values: those of 100,000 partitions are fewer, and more have hardly room in a line."""
# Bodies with so many structures become objects at once; one takes about 1 kB.
_AT_ONCE: Final = 1 << 15

_TOO_MANY: Final = (
    f"the body has more than {MOST_STRUCTURES:,} structures or {MOST_VALUES:,} values, which are "
    "not read"
)
_UNFIT: Final = "the body is not what its spec says; what it holds may be credentials"
_NOT_JSON: Final = "the body is not JSON"


@dataclass(slots=True)
class LoggedBody:
    """A body, or the reason why there is none.

    ``sizes`` are those of the records of its partitions, in order. One is None where the records
    are null, and where the broker writes no size of them. ``left_out`` is how many fields that are
    mandatory in this version the broker left out.
    """

    message: Message | None = None
    sizes: list[int | None] = field(default_factory=list)
    left_out: int = 0
    withheld: int = 0
    error: str | None = None


def read_body(
    text: bytes, made: type[Message], version: int, *, show_credentials: bool
) -> LoggedBody:
    """Read the body of a line."""
    if is_too_large(text):
        return LoggedBody(error=_TOO_MANY)
    body = LoggedBody()
    try:
        _read(body, msgspec.json.decode(text), made, version)
    except (CodecError, UnknownMessageError) as error:
        # An error quotes what it got.
        is_quiet = carries_credentials(made.entry.name) and not show_credentials
        return LoggedBody(error=_UNFIT if is_quiet else str(error))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return LoggedBody(error=_NOT_JSON)
    if body.message is not None and not show_credentials:
        body.withheld = withhold(body.message)
    return body


def is_too_large(text: bytes) -> bool:
    """Whether a body may have more than is read: an empty structure is three bytes, and a row.

    >>> is_too_large(b"[" + b"{}," * 100_000 + b"]"), is_too_large(b"[" + b"{}," * 200_000 + b"]")
    (False, True)
    """
    return structures(text) > MOST_STRUCTURES or text.count(b",") > MOST_VALUES


def structures(text: bytes) -> int:
    """How many structures a body may have; those in strings count too."""
    return text.count(b"{")


def _read(body: LoggedBody, obj: Any, made: type[Message], version: int) -> None:
    schema = made.definition.schema(version)
    for names in ({}, made.definition.served.former_names(version)):
        body.sizes, body.left_out = [], 0
        filled = _filled(obj, schema, names, body)
        if names or body.left_out == 0:
            break
    body.message = made.from_json(filled, version)


def _filled(obj: Any, schema: Schema, names: Any, body: LoggedBody) -> Any:
    """Give a structure's JSON form with what the broker left out."""
    if not isinstance(obj, dict):
        return obj
    old = names.get(schema.name, {})
    suffixed = {f"{name}{SIZE_SUFFIX}": f"{new}{SIZE_SUFFIX}" for name, new in old.items()}
    filled = {old.get(name) or suffixed.get(name, name): value for name, value in obj.items()}
    for one in schema.fields:
        if one.presence is Presence.ABSENT:
            continue
        name, kind = one.json_name, one.type
        if isinstance(kind, Bytes) and _takes_size(filled, name, kind, body):
            continue
        if filled.get(name) is None:
            if one.presence is Presence.INLINE:
                body.left_out += name not in filled or not one.nullable
                is_list = isinstance(kind, ArrayType) and not one.nullable
                filled[name] = [] if is_list else None
        elif isinstance(kind, ArrayType) and isinstance(kind.element, Schema):
            found = filled[name]
            if isinstance(found, list):
                filled[name] = [_filled(item, kind.element, names, body) for item in found]
        elif isinstance(kind, Schema | NullableStruct):
            inner = kind if isinstance(kind, Schema) else kind.schema
            filled[name] = _filled(filled[name], inner, names, body)
    return filled


def _takes_size(filled: dict[Any, Any], name: str, kind: Bytes, body: LoggedBody) -> bool:
    """Take the size of a field's records from a structure's JSON form; False if it has none."""
    sized = f"{name}{SIZE_SUFFIX}"
    if sized in filled:
        size = filled.pop(sized)
        body.sizes.append(size if type(size) is int and 0 <= size < 1 << 63 else None)
        filled.setdefault(name, None)
        return True
    if kind in _RECORDS and not filled.get(name):
        # A broker never writes the bytes of records. For some messages (ShareFetch) it writes no
        # size either, and an empty text instead: no records and many records look alike.
        body.sizes.append(None)
    return False


@dataclass(frozen=True, slots=True)
class LoggedBodyRows:
    """What rows of a message's table have from bodies, and how many fields brokers left out."""

    columns: dict[str, pa.Array]
    left_out: int = 0


OF_BODY: Final = ("body_version", "withheld_credentials", "tagged_fields", "error", "body")


def rows_by_objects(
    name: str, version: int, texts: Sequence[bytes | None], *, show_credentials: bool = False
) -> LoggedBodyRows:
    """Give the columns of `OF_BODY` for bodies of one version; None: a body that is not there."""
    parts = [
        _rows(name, version, part, show_credentials=show_credentials) for part in _parts(texts)
    ]
    if len(parts) == 1:
        return parts[0]
    columns = {
        one: pa.concat_arrays([part.columns[one] for part in parts]) for one in parts[0].columns
    }
    return LoggedBodyRows(columns, sum(one.left_out for one in parts))


def _parts(texts: Sequence[bytes | None]) -> Iterator[Sequence[bytes | None]]:
    """Cut bodies into as many as become objects at once."""
    start = held = 0
    for at, text in enumerate(texts):
        weight = 0 if text is None else structures(text)
        if held and held + weight > _AT_ONCE:
            yield texts[start:at]
            start, held = at, 0
        held += weight
    yield texts[start:]


def _rows(
    name: str, version: int, texts: Sequence[bytes | None], *, show_credentials: bool
) -> LoggedBodyRows:
    made = message(name)
    bodies = [
        LoggedBody()
        if one is None
        else read_body(one, made, version, show_credentials=show_credentials)
        for one in texts
    ]
    column = _column(name, version, bodies)
    versions = np.full(len(bodies), version)
    told: dict[str, list[Any]] = {
        "body_version": [None if one.message is None else version for one in bodies],
        "withheld_credentials": [one.withheld for one in bodies],
        "error": [one.error for one in bodies],
    }
    columns = {one: pa.array(told[one], OUTCOMES.field(one).type) for one in told}
    columns["tagged_fields"] = tagged_field_uses(column, versions, {version: made})
    return LoggedBodyRows({**columns, "body": column}, sum(one.left_out for one in bodies))


def _column(name: str, version: int, bodies: Sequence[LoggedBody]) -> pa.StructArray:
    try:
        return _sized_column(name, version, bodies)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
        # A number beyond its field; alone it is found which body has it.
        for one in bodies:
            try:
                _sized_column(name, version, [one])
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
                one.message, one.sizes = None, []
                one.error = "a value of the body is beyond its field"
        return _sized_column(name, version, bodies)


def _sized_column(name: str, version: int, bodies: Sequence[LoggedBody]) -> pa.StructArray:
    kind = body_type(name, None)
    if all(one.message is None for one in bodies):
        column: pa.StructArray = pa.nulls(len(bodies), kind)
    else:
        schema = message(name).definition.schema(version)
        column = message_column(schema, kind, [one.message for one in bodies])
    rows = pa.RecordBatch.from_arrays([column], ["body"])
    sizes = [size for one in bodies for size in one.sizes if one.message is not None]
    found = with_sizes(rows, sizes) if sizes else without_record_bytes(rows)
    return found.column(0)


# Fewer take longer in columns than as objects.
_FEWEST: Final = 4
# Each byte of base64url that a uuid is made of, without padding.
_UUID: Final = "^[A-Za-z0-9_-]{22}$"


def body_rows(
    name: str, version: int, texts: Sequence[bytes | None], *, show_credentials: bool = False
) -> LoggedBodyRows:
    """Give the columns of `OF_BODY` for bodies of one version; None: a body that is not there."""
    there = [one for one in texts if one is not None]
    is_plain = show_credentials or not carries_credentials(name)
    is_plain = is_plain and not any(map(is_too_large, there))
    if is_plain and len(there) == len(texts) >= _FEWEST:
        for plan in _plans(name, version):
            found = _in_columns(plan, there)
            if found is not None:
                return LoggedBodyRows(found)
    try:
        return rows_by_objects(name, version, texts, show_credentials=show_credentials)
    except UnknownMessageError as error:
        return _unread(name, texts, str(error))


def _unread(name: str, texts: Sequence[bytes | None], error: str) -> LoggedBodyRows:
    """What is said of bodies of a version that no release has."""
    count = len(texts)
    told: dict[str, list[Any]] = {
        "body_version": [None] * count,
        "withheld_credentials": [0] * count,
        "tagged_fields": [[]] * count,
        "error": [None if one is None else error for one in texts],
    }
    columns = {one: pa.array(told[one], OUTCOMES.field(one).type) for one in told}
    return LoggedBodyRows({**columns, "body": pa.nulls(count, _table_type(name))})


@dataclass(frozen=True, slots=True)
class _BodyPlan:
    """How bodies of a version are read: what they are in JSON, by the names of a release."""

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
    """The ways to read a version: by the newest names, and by those of other releases."""
    made = message(name)
    try:
        schema = made.definition.schema(version)
    except UnknownMessageError:
        return ()
    found = []
    former = made.definition.served.former_names(version)
    for names in ({}, former) if former else ({},):
        # The names there by those here.
        turned = {
            struct: {new: old for old, new in pairs.items()} for struct, pairs in names.items()
        }
        kind = _json_struct(schema, _table_type(name), turned)
        if kind is not None and kind.num_fields:
            found.append(_BodyPlan(name, version, schema, pa.schema(list(kind)), turned))
    return tuple(found)


def _json_struct(schema: Schema, kind: pa.StructType, names: Names) -> pa.StructType | None:
    """The type of a structure in JSON; None where it has what columns do not read."""
    fields = []
    for one in schema.fields:
        if one.presence is Presence.ABSENT:
            continue
        told = names.get(schema.name, {}).get(one.json_name, one.json_name)
        at = kind.get_field_index(one.attribute + SIZED)
        if isinstance(one.type, Bytes) and at >= 0:
            fields.append(pa.field(told + SIZE_SUFFIX, pa.int64()))
            continue
        if one.presence is Presence.TAGGED and one.nullable and one.default is not None:
            # That it is null and that it is not there would look alike.
            return None
        inner = _json_type(one.type, kind.field(one.attribute).type, names)
        if inner is None:
            return None
        fields.append(pa.field(told, inner))
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
    """What is not plain was found: its row is not known."""


def _in_columns(plan: _BodyPlan, texts: Sequence[bytes]) -> dict[str, pa.Array] | None:
    """Give the columns; None where anything is not plain."""
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
        columns = [one.combine_chunks() for one in table.select(plan.json.names).columns]
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
    """Give a structure's column as the table has it, of the columns that JSON has.

    ``nulls`` says which are null: of those nothing is missing.
    """
    made: dict[str, pa.Array] = {}
    present = [one for one in schema.fields if one.presence is not Presence.ABSENT]
    for one, column in zip(present, columns, strict=True):
        is_size = kind.get_field_index(one.attribute) < 0
        name = one.attribute + SIZED if is_size else one.attribute
        if one.presence is Presence.TAGGED:
            made[name] = _tagged(one, column, kind.field(name).type, nulls)
            continue
        missing = column.is_null() if column.null_count else None
        if missing is not None and not (one.nullable or is_size):
            left_out = missing if nulls is None else pc.and_not(missing, nulls)
            if left_out.true_count:
                raise _RefusedError
        made[name] = column if is_size else _value(one.type, column, kind.field(name).type)
    made[UNKNOWN_TAGGED_FIELDS] = _nothing(RAW_TAGGED_FIELDS, count)
    fields = [made[one.name] if one.name in made else pa.nulls(count, one.type) for one in kind]
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=nulls)


def _value(wire: Type, column: pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(wire, ArrayType):
        inner = _value(wire.element, column.values, kind.value_type)
        if isinstance(wire.element, Schema) and column.values.null_count:
            raise _RefusedError
        buffers = column.buffers()[:2]
        found = column.null_count, column.offset, [inner]
        return pa.Array.from_buffers(pa.list_(inner.type), len(column), buffers, *found)
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


def _tagged(one: Field, column: pa.Array, kind: pa.DataType, nulls: Any) -> pa.Array:
    """Give a tagged field, which is not in JSON where it has its default."""
    if not column.null_count or one.default is None:
        return _value(one.type, column, kind)
    wire = one.type.schema if isinstance(one.type, NullableStruct) else one.type
    if isinstance(wire, Schema):
        missing = column.is_null()
        columns = [
            _defaulted(each, column.field(at), missing)
            for at, each in enumerate(
                each for each in wire.fields if each.presence is not Presence.ABSENT
            )
        ]
        return _struct(wire, columns, kind, len(column), nulls)
    filled = _defaulted(one, column, column.is_null())
    return _value(one.type, filled, kind)


def _defaulted(one: Field, column: pa.Array, missing: pa.BooleanArray) -> pa.Array:
    """Give a column with the field's default where it is missing."""
    if isinstance(one.type, Schema | NullableStruct):
        raise _RefusedError
    if not isinstance(one.type, ArrayType):
        default = pa.scalar(in_column(one.default), column.type)
        return pc.if_else(missing, default, column)
    if one.default is None:
        return column
    if column.null_count > missing.true_count:
        raise _RefusedError
    # An array that is not there takes no value, so its offsets are those of an empty one.
    found = 0, column.offset, [column.values]
    return pa.Array.from_buffers(column.type, len(column), [None, column.buffers()[1]], *found)


def _nothing(kind: pa.ListType, count: int) -> pa.ListArray:
    offsets = pa.py_buffer(np.zeros(count + 1, np.int32))
    inner = pa.nulls(0, kind.value_type)
    return pa.Array.from_buffers(kind, count, [None, offsets], 0, 0, [inner])
