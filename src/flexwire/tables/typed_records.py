"""Records of internal topics in columns: what each is, and the messages that they hold.

The int16 in front of a key or value, or the three varints of a frame, are read for all rows at
once; then all rows of a message are decoded by the kernels, with the version of each. What those
refuse, the layouts of older releases, and what is unknown or damaged is read by
`flexwire.protocol.internal_topics` row by row, which words all errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.arguments import refuse, to_list
from flexwire.columnar import decode_messages, message_type
from flexwire.columnar.decoding import pruned, pruned_type
from flexwire.columnar.objects import message_column
from flexwire.columnar.program import bits
from flexwire.columnar.types import merge
from flexwire.errors import CodecError, UnknownMessageError
from flexwire.protocol.internal_topics import InternalTopic, TypedMessage, decode_key, decode_value
from flexwire.protocol.record_types import (
    framed_messages,
    record_keys,
    record_name,
    record_values,
    with_version,
)
from flexwire.schema.message_schemas import schemas_of
from flexwire.wire.encoding import Encoding
from flexwire.wire.limits import INT32_MAX
from flexwire.wire.varint import read_unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Callable

    Words = np.ndarray[Any, Any]

Records: TypeAlias = Sequence[str] | Mapping[str, Sequence[str]]
"""Names of records, or for each the fields that are wanted of it; all where none is named."""

HEAD_COLUMNS: Final = {
    "type": pa.int32(),
    "message": pa.string(),
    "version": pa.int32(),
    "release": pa.string(),
    "is_tombstone": pa.bool_(),
    "error": pa.string(),
}
"""What is told of every record, in front of the columns of its messages."""

_INT16_SIZE: Final = 2
_FRAME_SIZE: Final = 3
_FRAME_VERSION: Final = 1
# A varint of one byte is less.
_LONGER: Final = 0x80


class _RecordHeads(NamedTuple):
    """The type and version of each row as they stand in front, and which rows have them.

    ``is_odd`` are rows for the reference, which says what they are.
    """

    types: Words
    versions: Words
    has_type: Words
    has_version: Words
    is_odd: Words


class _RecordLayout(NamedTuple):
    """What a type and version are: a record, and the messages of its key and value."""

    record: str | None = None
    key_version: int = 0
    value: str | None = None


def _is_of(message: str, known: _RecordLayout) -> bool:
    return known.value == message


class TypedRecords:
    """Decodes the records of one topic; of some only what they are.

    ``records`` names those that are decoded: "OffsetCommit" where a record is a key and a value,
    "TopicRecord" where it is one message. With the fields that are wanted of each, as "key.group"
    or "value.members.client_id", the columns have no others: a record is decoded whole, and what
    nobody asked for is left out without copying. `ArgumentError` for a record that the topic does
    not have, or a field that the record does not have.
    """

    def __init__(self, topic: InternalTopic, records: Records) -> None:
        self.topic = topic
        fields = records if isinstance(records, Mapping) else {}
        names = [*records] if isinstance(records, Mapping) else records
        self.records = tuple(to_list(names, "records", "names of records"))
        known = record_names(topic)
        for name in self.records:
            if name not in known:
                raise refuse("records", f"names of {', '.join(sorted(known))}", name)
        if len({*self.records}) < len(self.records):
            raise refuse("records", "each name once", records)
        self._values = {name: known[name] for name in self.records}
        self._kinds = {name: self._kind(name) for name in self.records}
        wanted = {name: to_list(one, "fields", "names of fields") for name, one in fields.items()}
        asked = {name: pruned_type(one, wanted.get(name, ())) for name, one in self._kinds.items()}
        self.schema = pa.schema([*HEAD_COLUMNS.items(), *asked.items()])
        """What `decode` gives."""

    def _kind(self, name: str) -> pa.StructType:
        value = self._value_kind(name)
        if not self.topic.has_keys:
            return value
        return pa.struct([("key", message_type(_key_of(name))), ("value", value)])

    def _value_kind(self, name: str) -> pa.StructType:
        return merge(name, [message_type(value) for value in self._values[name]])

    def decode(
        self, keys: pa.BinaryArray, values: pa.BinaryArray, is_control: pa.BooleanArray | None
    ) -> list[pa.Array]:
        """Give the columns of `schema`; a control record has no type, and nothing is in it."""
        keys, values = (
            one if one.type == pa.binary() else one.cast(pa.binary()) for one in (keys, values)
        )
        made = _BatchDecoder(self, keys, values, is_control).columns()
        return [pruned(one, asked.type) for one, asked in zip(made, self.schema, strict=True)]

    def may_have(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> Words:
        """Say which rows may be of ``records``, by what stands in front; no other is of them."""
        if not self.topic.has_keys:
            heads = _frames(values)
            return heads.is_odd | np.isin(heads.types, self._types)
        types, has_type = _int16(keys)
        return has_type & np.isin(types, self._types)

    @cached_property
    def _types(self) -> list[int]:
        """The types that ``records`` have."""
        module = self.topic.module
        if self.topic.has_keys:
            keys = record_keys(module).items()
            return [number for number, (key, _) in keys if record_name(key) in self.records]
        framed = framed_messages(module).items()
        return [number for number, names in framed if not {*names}.isdisjoint(self.records)]

    def known(self, record_type: int, version: int) -> _RecordLayout:
        """Say what a type and version are; a version of -1 or less is that of no value."""
        module = self.topic.module
        if self.topic.has_keys:
            found = record_keys(module).get(record_type)
            if found is None:
                return _RecordLayout()
            key, key_version = found
            value = with_version(record_values(module)[record_type], version)
            return _RecordLayout(record_name(key), key_version, value)
        names = framed_messages(module).get(record_type)
        if names is None:
            return _RecordLayout()
        value = with_version(names, version)
        return _RecordLayout(value, 0, value)


def record_names(topic: InternalTopic) -> dict[str, tuple[str, ...]]:
    """Give the names of a topic's records, each with the messages that its value may be.

    >>> record_names(InternalTopic.SHARE_STATE)["ShareUpdate"]
    ('ShareUpdateValue',)
    """
    if not topic.has_keys:
        framed = framed_messages(topic.module).values()
        return {name: (name,) for names in framed for name in names}
    keys, values = record_keys(topic.module), record_values(topic.module)
    return {record_name(key): values[number] for number, (key, _) in keys.items()}


def fields_there(
    topic: InternalTopic, records: Sequence[str], fields: Sequence[str]
) -> dict[str, list[str]]:
    """Give for each record those of the fields that it has, as `TypedRecords` takes them.

    >>> fields_there(InternalTopic.SHARE_STATE, ["ShareUpdate"], ["key.group_id", "value.epoch"])
    {'ShareUpdate': ['key.group_id']}
    """
    schema = TypedRecords(topic, records).schema

    def has(kind: pa.DataType, path: list[str]) -> bool:
        if not path:
            return True
        inner = kind.value_type if pa.types.is_list(kind) else kind
        is_there = pa.types.is_struct(inner) and inner.get_field_index(path[0]) >= 0
        return is_there and has(inner.field(path[0]).type, path[1:])

    kinds = {name: schema.field(name).type for name in records}
    return {
        name: [one for one in fields if has(kind, one.split("."))] for name, kind in kinds.items()
    }


def _key_of(record: str) -> str:
    return f"{record}Key"


class _BatchDecoder:
    """The rows of one batch."""

    def __init__(
        self,
        typed: TypedRecords,
        keys: pa.BinaryArray,
        values: pa.BinaryArray,
        is_control: pa.BooleanArray | None,
    ) -> None:
        self.typed, self.keys, self.values = typed, keys, values
        self.rows = len(values)
        self.control = np.zeros(self.rows, bool)
        if is_control is not None:
            self.control = np.asarray(pc.fill_null(is_control, fill_value=False))
        self.heads = self._heads()
        # What each row is, by number in what there is.
        pairs = np.stack([self.heads.types, self.heads.versions], 1).view(np.int64)[:, 0]
        coded = pa.array(pairs).dictionary_encode()
        self.which = np.asarray(coded.indices)
        each = np.asarray(coded.dictionary).view(np.int32).reshape(-1, 2)
        self.there = [typed.known(number, version) for number, version in each.tolist()]
        self.has_type = self.heads.has_type & ~self.control
        known = self._where(lambda one: one.record is not None)
        self.by_reference = (self.heads.is_odd | ~known | ~self.heads.has_type) & ~self.control

    def _each(self, told: Callable[[_RecordLayout], int]) -> Words:
        """Give a number of what each row is."""
        rows: Words = np.array([told(one) for one in self.there], np.int64)[self.which]
        return rows

    def _where(self, told: Callable[[_RecordLayout], bool]) -> Words:
        """Give the rows that something is true of."""
        rows: Words = np.array([told(one) for one in self.there], bool)[self.which]
        return rows

    def _heads(self) -> _RecordHeads:
        if not self.typed.topic.has_keys:
            return _frames(self.values)
        types, has_type = _int16(self.keys)
        versions, has_version = _int16(self.values)
        there = np.asarray(self.values.is_valid())
        return _RecordHeads(types, versions, has_type, has_version, there & ~has_version)

    def columns(self) -> list[pa.Array]:
        names = pa.array([one.record for one in self.there], pa.string())
        names = names.take(pa.array(self.which, mask=~self.has_type))
        made = {one: self._record(one) for one in self.typed.records}
        found = _ReferenceRows(self.typed)
        for row in np.flatnonzero(self.by_reference).tolist():
            found.read(row, self.keys[row].as_py(), self.values[row].as_py())
        has_version = self.heads.has_version & self.has_type
        is_tombstone = self.values.is_null() if self.typed.topic.has_keys else None
        heads = {
            "type": pa.array(self.heads.types, pa.int32(), mask=~self.has_type),
            "message": names,
            "version": pa.array(self.heads.versions, pa.int32(), mask=~has_version),
            "release": _sparse(found.releases, self.rows),
            "is_tombstone": pa.repeat(False, self.rows) if is_tombstone is None else is_tombstone,
            "error": _sparse(found.errors, self.rows),
        }
        if found.types:
            # What a frame of longer varints says.
            heads["type"] = _patched(heads["type"], found.types)
            heads["message"] = _patched(heads["message"], found.names)
            heads["version"] = _patched(heads["version"], found.versions)
        records = [found.patch(name, column) for name, column in made.items()]
        return [*heads.values(), *records]

    def _record(self, name: str) -> pa.StructArray:
        """Decode the rows of a record; leaves those that refuse to the reference."""
        kind = self.typed._kinds[name]  # noqa: SLF001 - of this file
        mine = self._where(lambda one: one.record == name)
        mine &= ~self.by_reference & ~self.control
        if not mine.any():
            return pa.nulls(self.rows, kind)
        value = self._values(name, mine)
        if not self.typed.topic.has_keys:
            return value
        versions = self._each(attrgetter("key_version"))
        key = self._decoded(_key_of(name), self._bodies(of_keys=True), mine, versions)
        rows = mine & ~self.by_reference
        return pa.StructArray.from_arrays([key, value], fields=list(kind), mask=pa.array(~rows))

    def _values(self, name: str, mine: Words) -> pa.StructArray:
        kind = self.typed._value_kind(name)  # noqa: SLF001 - of this file
        mine = mine & np.asarray(self.values.is_valid())
        made: list[pa.StructArray] = []
        of_row = np.zeros(self.rows, np.int64)
        for message in self.typed._values[name]:  # noqa: SLF001 - of this file
            rows = mine & self._where(partial(_is_of, message))
            if rows.any() or not made:
                of_row[rows] = len(made)
                bodies = self._bodies(of_keys=False)
                decoded = self._decoded(message, bodies, rows, self.heads.versions)
                made.append(_conformed(decoded, kind))
        if len(made) == 1:
            return made[0]
        return pa.concat_arrays(made).take(pa.array(of_row * self.rows + np.arange(self.rows)))

    def _bodies(self, *, of_keys: bool) -> pa.BinaryArray:
        return self._key_bodies if of_keys else self._value_bodies

    @cached_property
    def _key_bodies(self) -> pa.BinaryArray:
        return _without(self.keys, _INT16_SIZE)

    @cached_property
    def _value_bodies(self) -> pa.BinaryArray:
        size = _INT16_SIZE if self.typed.topic.has_keys else _FRAME_SIZE
        return _without(self.values, size)

    def _decoded(
        self, message: str, bodies: pa.BinaryArray, rows: Words, versions: Words
    ) -> pa.StructArray:
        if not rows.any():
            return pa.nulls(self.rows, message_type(message))
        some = versions[rows]
        given = int(some[0]) if (some == some[0]).all() else pa.array(versions.astype(np.int64))
        values, errors = decode_messages(message, _only(bodies, rows), given, mode="PERMISSIVE")
        if errors.null_count < len(errors):
            self.by_reference |= np.asarray(errors.is_valid())
        return values


class _ReferenceRows:
    """What the reference says of rows, each by its number."""

    def __init__(self, typed: TypedRecords) -> None:
        self.typed = typed
        self.errors: dict[int, str] = {}
        self.releases: dict[int, str] = {}
        self.types: dict[int, int | None] = {}
        self.names: dict[int, str | None] = {}
        self.versions: dict[int, int | None] = {}
        self._made: dict[str, dict[int, tuple[TypedMessage | None, TypedMessage | None]]] = {}

    def read(self, row: int, key: bytes | None, value: bytes | None) -> None:
        """Read one row."""
        topic = self.typed.topic
        if not topic.has_keys:
            self._head(row, value)
        try:
            typed_key = decode_key(topic, key)
            typed_value = decode_value(topic, typed_key, value)
        except (CodecError, UnknownMessageError) as error:
            self.errors[row] = str(error)
            return
        either = [one.release for one in (typed_value, typed_key) if one and one.release]
        if either:
            self.releases[row] = either[0]
        name = typed_value.name if typed_key is None else record_name(typed_key.name)  # type: ignore[union-attr] # a framed value is never null
        self._made.setdefault(name, {})[row] = (typed_key, typed_value)

    def _head(self, row: int, value: bytes | None) -> None:
        """Read the varints of a frame, of whatever length they are."""
        self.types[row] = self.names[row] = self.versions[row] = None
        try:
            frame, position = read_unsigned_varint(value or b"", 0, len(value or b""))
            if value is None or frame != _FRAME_VERSION:
                return
            self.types[row], position = read_unsigned_varint(value, position, len(value))
            self.versions[row], _ = read_unsigned_varint(value, position, len(value))
        except CodecError:
            return
        self.names[row] = self.typed.known(self.types[row] or 0, self.versions[row] or 0).record

    def patch(self, name: str, column: pa.StructArray) -> pa.StructArray:
        """Put the rows of a record where the kernels gave none."""
        made = self._made.get(name)
        if not made:
            return column
        messages = made.values()
        kind = column.type
        if self.typed.topic.has_keys:
            value_kind = kind.field("value").type
            key = _of_messages([key for key, _ in messages], kind.field("key").type)
            value = _of_messages([value for _, value in messages], value_kind)
            patch = pa.StructArray.from_arrays([key, value], fields=list(kind))
        else:
            patch = _of_messages([value for _, value in messages], kind)
        return _put(column, list(made), patch)


def _of_messages(messages: Sequence[TypedMessage | None], kind: pa.StructType) -> pa.StructArray:
    """Give messages of any layouts in a column of ``kind``; None is null."""
    groups: dict[tuple[str, int, str | None], list[int]] = {}
    for row, one in enumerate(messages):
        if one is not None:
            groups.setdefault((one.name, one.version, one.release), []).append(row)
    column = pa.nulls(len(messages), kind)
    for (name, version, release), rows in groups.items():
        schema = schemas_of(name, release).schema(version, Encoding.KAFKA)
        given = [None if one is None else one.message for one in map(messages.__getitem__, rows)]
        made = message_column(schema, message_type(name), given)
        column = _put(column, rows, _conformed(made, kind))
    return column


def _conformed(made: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    """Give structures as ones of a type that has their fields, and maybe more."""
    if made.type == kind:
        return made
    columns = [
        made.field(one.name).cast(one.type)
        if made.type.get_field_index(one.name) >= 0
        else pa.nulls(len(made), one.type)
        for one in kind
    ]
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=made.is_null())


def _put(column: pa.Array, rows: Sequence[int], patch: pa.Array) -> pa.Array:
    """Give a column with other values in some rows."""
    indices = np.arange(len(column))
    indices[list(rows)] = len(column) + np.arange(len(rows))
    return pa.concat_arrays([column, patch]).take(pa.array(indices))


def _patched(column: pa.Array, told: dict[int, Any]) -> pa.Array:
    return _put(column, list(told), pa.array(told.values(), column.type))


def _sparse(told: dict[int, str], rows: int) -> pa.StringArray:
    column = pa.nulls(rows, pa.string())
    return _patched(column, told) if told else column


def _only(data: pa.BinaryArray, rows: Words) -> pa.BinaryArray:
    """Give a column of which only these rows are not null; none of them is."""
    if rows.all():
        return data
    buffers = [pa.py_buffer(bits(rows)), *data.buffers()[1:]]
    if data.offset:
        raise AssertionError("bodies begin at the first byte of their column")
    return pa.Array.from_buffers(data.type, len(data), buffers)


def _without(data: pa.BinaryArray, size: int) -> pa.BinaryArray:
    """Give rows without so many bytes in front."""
    # Where no end is given, Arrow 26 computes the size of shorter rows and nulls as negative.
    return pc.binary_slice(data, size, INT32_MAX)


def int16_in_front(data: pa.BinaryArray) -> tuple[pa.Array, pa.BinaryArray]:
    """Take apart the int16 that each row begins with, null where there is none, and the rest."""
    numbers, has = _int16(data)
    bodies = _only(_without(data, _INT16_SIZE), has)
    return pa.array(numbers, pa.int32(), mask=~has), bodies


def _int16(data: pa.BinaryArray) -> tuple[Words, Words]:
    """Give the int16 that each row begins with, and which rows have one."""
    (high, low), has = _first_bytes(data, _INT16_SIZE)
    return ((high << 8) | low).astype(np.int16).astype(np.int32), has


def _frames(values: pa.BinaryArray) -> _RecordHeads:
    (frame, types, versions), has = _first_bytes(values, _FRAME_SIZE)
    has &= (frame == _FRAME_VERSION) & (types < _LONGER) & (versions < _LONGER)
    return _RecordHeads(types, versions, has, has, ~has)


def _first_bytes(data: pa.BinaryArray, count: int) -> tuple[Words, Words]:
    """Give the first bytes of each row as numbers, and which rows have as many."""
    _, raw, content = data.buffers()
    rows = len(data)
    if not rows or content is None or not content.size:
        return np.zeros((count, rows), np.int32), np.zeros(rows, bool)
    offsets = np.frombuffer(raw, np.int32, rows + 1, data.offset * 4)
    has = np.diff(offsets) >= count
    if data.null_count:
        has &= np.asarray(data.is_valid())
    held = np.frombuffer(content, np.uint8)
    made = np.zeros((count, rows), np.int32)
    first = offsets[:-1] if has.all() else offsets[:-1][has]
    for at in range(count):
        made[at][has] = held[first + at]
    return made, has
