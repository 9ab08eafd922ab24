"""Bodies of request logs through objects: the reference, and the way of what columns refuse.

A broker writes a body in the form of Kafka's JSON converters, with the names of its release, how
many bytes records are in their place, and without what it leaves out. What is left out is null, or
an empty array, and counted; what does not fit the spec has no body, and the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from flexwire.capture.columns.withheld import WITHHELD_BYTES
from flexwire.codec import message
from flexwire.columnar.objects import TaggedFieldUses, message_column
from flexwire.errors import CodecError, UnknownMessageError
from flexwire.protocol import carries_credentials, withhold
from flexwire.tables.layouts import body_type
from flexwire.tables.record_sizes import with_sizes, without_record_bytes
from flexwire.tables.schema import OUTCOMES
from flexwire.wire.schema import NullableStruct, Presence, Schema
from flexwire.wire.types import (
    COMPACT_NULLABLE_RECORDS,
    COMPACT_RECORDS,
    NULLABLE_RECORDS,
    RECORDS,
    Array,
    Bytes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flexwire.codec import Message

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
class Body:
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


def read_body(text: bytes, made: type[Message], version: int, *, show_credentials: bool) -> Body:
    """Read the body of a line."""
    if is_too_large(text):
        return Body(error=_TOO_MANY)
    body = Body()
    try:
        _read(body, msgspec.json.decode(text), made, version)
    except (CodecError, UnknownMessageError) as error:
        # An error quotes what it got.
        is_quiet = carries_credentials(made.entry.name) and not show_credentials
        return Body(error=_UNFIT if is_quiet else str(error))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return Body(error=_NOT_JSON)
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


def _read(body: Body, obj: Any, made: type[Message], version: int) -> None:
    schema = made.definition.schema(version)
    for names in ({}, made.definition.served.former_names(version)):
        body.sizes, body.left_out = [], 0
        filled = _filled(obj, schema, names, body)
        if names or body.left_out == 0:
            break
    body.message = made.from_json(filled, version)


def _filled(obj: Any, schema: Schema, names: Any, body: Body) -> Any:
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
                is_list = isinstance(kind, Array) and not one.nullable
                filled[name] = [] if is_list else None
        elif isinstance(kind, Array) and isinstance(kind.element, Schema):
            found = filled[name]
            if isinstance(found, list):
                filled[name] = [_filled(item, kind.element, names, body) for item in found]
        elif isinstance(kind, Schema | NullableStruct):
            inner = kind if isinstance(kind, Schema) else kind.schema
            filled[name] = _filled(filled[name], inner, names, body)
    return filled


def _takes_size(filled: dict[Any, Any], name: str, kind: Bytes, body: Body) -> bool:
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
class BodyRows:
    """What rows of a message's table have from bodies, and how many fields brokers left out."""

    columns: dict[str, pa.Array]
    left_out: int = 0


OF_BODY: Final = ("body_version", "withheld_credentials", "tagged_fields", "error", "body")


def rows_by_objects(
    name: str, version: int, texts: Sequence[bytes | None], *, show_credentials: bool = False
) -> BodyRows:
    """Give the columns of `OF_BODY` for bodies of one version; None: a body that is not there."""
    parts = [
        _rows(name, version, part, show_credentials=show_credentials) for part in _parts(texts)
    ]
    if len(parts) == 1:
        return parts[0]
    columns = {
        one: pa.concat_arrays([part.columns[one] for part in parts]) for one in parts[0].columns
    }
    return BodyRows(columns, sum(one.left_out for one in parts))


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
) -> BodyRows:
    made = message(name)
    bodies = [
        Body() if one is None else read_body(one, made, version, show_credentials=show_credentials)
        for one in texts
    ]
    uses = TaggedFieldUses(WITHHELD_BYTES)
    column = _column(name, version, bodies, uses)
    told: dict[str, list[Any]] = {
        "body_version": [None if one.message is None else version for one in bodies],
        "withheld_credentials": [one.withheld for one in bodies],
        "tagged_fields": [uses.of(row) for row in range(len(bodies))],
        "error": [one.error for one in bodies],
    }
    columns = {one: pa.array(told[one], OUTCOMES.field(one).type) for one in told}
    return BodyRows({**columns, "body": column}, sum(one.left_out for one in bodies))


def _column(
    name: str, version: int, bodies: Sequence[Body], uses: TaggedFieldUses
) -> pa.StructArray:
    try:
        return _sized_column(name, version, bodies, uses)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
        # A number beyond its field; alone it is found which body has it.
        for one in bodies:
            try:
                _sized_column(name, version, [one], TaggedFieldUses(WITHHELD_BYTES))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError):
                one.message, one.sizes = None, []
                one.error = "a value of the body is beyond its field"
        return _sized_column(name, version, bodies, uses)


def _sized_column(
    name: str, version: int, bodies: Sequence[Body], uses: TaggedFieldUses
) -> pa.StructArray:
    kind = body_type(name, None)
    if all(one.message is None for one in bodies):
        column: pa.StructArray = pa.nulls(len(bodies), kind)
    else:
        schema = message(name).definition.schema(version)
        column = message_column(schema, kind, [one.message for one in bodies], uses)
    rows = pa.RecordBatch.from_arrays([column], ["body"])
    sizes = [size for one in bodies for size in one.sizes if one.message is not None]
    found = with_sizes(rows, sizes) if sizes else without_record_bytes(rows)
    return found.column(0)
