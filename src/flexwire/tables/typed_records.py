"""Decode records of internal topics in columns: their types, and the messages in them.

A key or value begins with an int16, or with three varints if it is in a frame. These numbers are
read for all rows together. Then the kernels decode all rows of a message, each row in its own
version. `flexwire.protocol.internal_topics` reads the remaining rows one by one: rows that the
kernels refuse, rows in layouts of older releases, and unknown or damaged rows. That module also
writes all error messages.
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
"""The names of records, or a mapping from each name to the wanted fields. If no fields are named,
all fields are wanted.
"""

HEAD_COLUMNS: Final = {
    "type": pa.int32(),
    "message": pa.string(),
    "version": pa.int32(),
    "release": pa.string(),
    "is_tombstone": pa.bool_(),
    "error": pa.string(),
}
"""The columns that every record has, before those of its messages."""

_INT16_SIZE: Final = 2
_FRAME_SIZE: Final = 3
_FRAME_VERSION: Final = 1
# A varint below this number takes one byte.
_LONGER: Final = 0x80


class _RecordHeads(NamedTuple):
    """The type and version at the beginning of each row, and which rows contain them.

    ``is_odd`` marks the rows whose type only the reference can find.
    """

    types: Words
    versions: Words
    has_type: Words
    has_version: Words
    is_odd: Words


class _RecordLayout(NamedTuple):
    """The meaning of a type and version: a record, and the messages in its key and value."""

    record: str | None = None
    key_version: int = 0
    value: str | None = None


def _is_of(message: str, layout: _RecordLayout) -> bool:
    return layout.value == message


class TypedRecords:
    """Decode the records of one topic, or only determine their types.

    ``records`` contains the names of the records to decode, such as "OffsetCommit" for a record
    that consists of a key and a value, or "TopicRecord" for a record that is one message. If fields
    of a record are given, such as "key.group" or "value.members.client_id", the record has only
    their columns. The whole record is decoded, and the other fields are dropped without copying.
    Raises `ArgumentError` for a record that the topic lacks, or a field that the record lacks.
    """

    def __init__(self, topic: InternalTopic, records: Records) -> None:
        self.topic = topic
        fields = records if isinstance(records, Mapping) else {}
        names = [*records] if isinstance(records, Mapping) else records
        self.records = tuple(to_list(names, "records", "names of records"))
        known_names = record_names(topic)
        for name in self.records:
            if name not in known_names:
                raise refuse("records", f"names of {', '.join(sorted(known_names))}", name)
        if len({*self.records}) < len(self.records):
            raise refuse("records", "each name once", records)
        self._values = {name: known_names[name] for name in self.records}
        self._kinds = {name: self._kind(name) for name in self.records}
        chosen_fields = {
            name: to_list(names, "fields", "names of fields") for name, names in fields.items()
        }
        asked = {
            name: pruned_type(kind, chosen_fields.get(name, ()))
            for name, kind in self._kinds.items()
        }
        self.schema = pa.schema([*HEAD_COLUMNS.items(), *asked.items()])
        """The columns that `decode` returns."""

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
        """Return the columns of `schema`. For a control record, the type and content are null."""
        keys, values = (
            column if column.type == pa.binary() else column.cast(pa.binary())
            for column in (keys, values)
        )
        columns = _BatchDecoder(self, keys, values, is_control).columns()
        return [
            pruned(column, asked.type) for column, asked in zip(columns, self.schema, strict=True)
        ]

    def may_have(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> Words:
        """Return whether each row may be one of ``records``, judged by its beginning.

        False is certain, but True is not.
        """
        if not self.topic.has_keys:
            heads = _frames(values)
            return heads.is_odd | np.isin(heads.types, self._types)
        types, has_type = _int16(keys)
        return has_type & np.isin(types, self._types)

    @cached_property
    def _types(self) -> list[int]:
        """The types of ``records``."""
        module = self.topic.module
        if self.topic.has_keys:
            keys = record_keys(module).items()
            return [number for number, (key, _) in keys if record_name(key) in self.records]
        framed = framed_messages(module).items()
        return [number for number, names in framed if not {*names}.isdisjoint(self.records)]

    def layout_of(self, record_type: int, version: int) -> _RecordLayout:
        """Return the meaning of a type and version.

        A version below 0 means that there is no value.
        """
        module = self.topic.module
        if self.topic.has_keys:
            entry = record_keys(module).get(record_type)
            if entry is None:
                return _RecordLayout()
            key, key_version = entry
            value = with_version(record_values(module)[record_type], version)
            return _RecordLayout(record_name(key), key_version, value)
        names = framed_messages(module).get(record_type)
        if names is None:
            return _RecordLayout()
        value = with_version(names, version)
        return _RecordLayout(value, 0, value)


def record_names(topic: InternalTopic) -> dict[str, tuple[str, ...]]:
    """Return the names of a topic's records, each with the messages that its value may contain.

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
    """Return which of the given fields each record has, as `TypedRecords` expects them.

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
        name: [field for field in fields if has(kind, field.split("."))]
        for name, kind in kinds.items()
    }


def _key_of(record: str) -> str:
    return f"{record}Key"


class _BatchDecoder:
    """Decode the rows of one batch."""

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
        # The number of each row's layout in the list ``there``.
        pairs = np.stack([self.heads.types, self.heads.versions], 1).view(np.int64)[:, 0]
        coded = pa.array(pairs).dictionary_encode()
        self.which = np.asarray(coded.indices)
        each = np.asarray(coded.dictionary).view(np.int32).reshape(-1, 2)
        self.there = [typed.layout_of(number, version) for number, version in each.tolist()]
        self.has_type = self.heads.has_type & ~self.control
        is_typed = self._where(lambda layout: layout.record is not None)
        self.by_reference = (self.heads.is_odd | ~is_typed | ~self.heads.has_type) & ~self.control

    def _each(self, number_of: Callable[[_RecordLayout], int]) -> Words:
        """Return a number for each row, computed from its layout."""
        rows: Words = np.array([number_of(layout) for layout in self.there], np.int64)[self.which]
        return rows

    def _where(self, holds: Callable[[_RecordLayout], bool]) -> Words:
        """Return the rows whose layout meets a condition."""
        rows: Words = np.array([holds(layout) for layout in self.there], bool)[self.which]
        return rows

    def _heads(self) -> _RecordHeads:
        if not self.typed.topic.has_keys:
            return _frames(self.values)
        types, has_type = _int16(self.keys)
        versions, has_version = _int16(self.values)
        there = np.asarray(self.values.is_valid())
        return _RecordHeads(types, versions, has_type, has_version, there & ~has_version)

    def columns(self) -> list[pa.Array]:
        names = pa.array([layout.record for layout in self.there], pa.string())
        names = names.take(pa.array(self.which, mask=~self.has_type))
        columns_by_record = {record: self._record(record) for record in self.typed.records}
        reference = _ReferenceRows(self.typed)
        for row in np.flatnonzero(self.by_reference).tolist():
            reference.read(row, self.keys[row].as_py(), self.values[row].as_py())
        has_version = self.heads.has_version & self.has_type
        is_tombstone = self.values.is_null() if self.typed.topic.has_keys else None
        heads = {
            "type": pa.array(self.heads.types, pa.int32(), mask=~self.has_type),
            "message": names,
            "version": pa.array(self.heads.versions, pa.int32(), mask=~has_version),
            "release": _sparse(reference.releases, self.rows),
            "is_tombstone": pa.repeat(False, self.rows) if is_tombstone is None else is_tombstone,
            "error": _sparse(reference.errors, self.rows),
        }
        if reference.types:
            # The rows of frames whose varints have several bytes.
            heads["type"] = _patched(heads["type"], reference.types)
            heads["message"] = _patched(heads["message"], reference.names)
            heads["version"] = _patched(heads["version"], reference.versions)
        records = [reference.patch(name, column) for name, column in columns_by_record.items()]
        return [*heads.values(), *records]

    def _record(self, name: str) -> pa.StructArray:
        """Decode the rows of a record. The reference handles rows that fail."""
        kind = self.typed._kinds[name]  # noqa: SLF001 - the attribute is defined in this file
        mine = self._where(lambda layout: layout.record == name)
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
        kind = self.typed._value_kind(name)  # noqa: SLF001 - the attribute is defined in this file
        mine = mine & np.asarray(self.values.is_valid())
        columns: list[pa.StructArray] = []
        of_row = np.zeros(self.rows, np.int64)
        for message in self.typed._values[name]:  # noqa: SLF001 - the attribute is defined in this file
            rows = mine & self._where(partial(_is_of, message))
            if rows.any() or not columns:
                of_row[rows] = len(columns)
                bodies = self._bodies(of_keys=False)
                decoded = self._decoded(message, bodies, rows, self.heads.versions)
                columns.append(_conformed(decoded, kind))
        if len(columns) == 1:
            return columns[0]
        return pa.concat_arrays(columns).take(pa.array(of_row * self.rows + np.arange(self.rows)))

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
        version = int(some[0]) if (some == some[0]).all() else pa.array(versions.astype(np.int64))
        values, errors = decode_messages(message, _only(bodies, rows), version, mode="PERMISSIVE")
        if errors.null_count < len(errors):
            self.by_reference |= np.asarray(errors.is_valid())
        return values


class _ReferenceRows:
    """The reference decoder's results for rows, by row number."""

    def __init__(self, typed: TypedRecords) -> None:
        self.typed = typed
        self.errors: dict[int, str] = {}
        self.releases: dict[int, str] = {}
        self.types: dict[int, int | None] = {}
        self.names: dict[int, str | None] = {}
        self.versions: dict[int, int | None] = {}
        self._typed: dict[str, dict[int, tuple[TypedMessage | None, TypedMessage | None]]] = {}

    def read(self, row: int, key: bytes | None, value: bytes | None) -> None:
        """Read one row with the reference decoder."""
        topic = self.typed.topic
        if not topic.has_keys:
            self._head(row, value)
        try:
            typed_key = decode_key(topic, key)
            typed_value = decode_value(topic, typed_key, value)
        except (CodecError, UnknownMessageError) as error:
            self.errors[row] = str(error)
            return
        either = [typed.release for typed in (typed_value, typed_key) if typed and typed.release]
        if either:
            self.releases[row] = either[0]
        name = typed_value.name if typed_key is None else record_name(typed_key.name)  # type: ignore[union-attr] # a framed value is never null
        self._typed.setdefault(name, {})[row] = (typed_key, typed_value)

    def _head(self, row: int, value: bytes | None) -> None:
        """Read the varints of a frame, of any length."""
        self.types[row] = self.names[row] = self.versions[row] = None
        try:
            frame, position = read_unsigned_varint(value or b"", 0, len(value or b""))
            if value is None or frame != _FRAME_VERSION:
                return
            self.types[row], position = read_unsigned_varint(value, position, len(value))
            self.versions[row], _ = read_unsigned_varint(value, position, len(value))
        except CodecError:
            return
        self.names[row] = self.typed.layout_of(self.types[row] or 0, self.versions[row] or 0).record

    def patch(self, name: str, column: pa.StructArray) -> pa.StructArray:
        """Fill in the rows of a record that the kernels did not decode."""
        messages_by_row = self._typed.get(name)
        if not messages_by_row:
            return column
        messages = messages_by_row.values()
        kind = column.type
        if self.typed.topic.has_keys:
            value_kind = kind.field("value").type
            key = _of_messages([key for key, _ in messages], kind.field("key").type)
            value = _of_messages([value for _, value in messages], value_kind)
            patch = pa.StructArray.from_arrays([key, value], fields=list(kind))
        else:
            patch = _of_messages([value for _, value in messages], kind)
        return _put(column, list(messages_by_row), patch)


def _of_messages(messages: Sequence[TypedMessage | None], kind: pa.StructType) -> pa.StructArray:
    """Return messages in any layouts as a column of type ``kind``, in which None becomes null."""
    groups: dict[tuple[str, int, str | None], list[int]] = {}
    for row, pair in enumerate(messages):
        if pair is not None:
            groups.setdefault((pair.name, pair.version, pair.release), []).append(row)
    column = pa.nulls(len(messages), kind)
    for (name, version, release), rows in groups.items():
        schema = schemas_of(name, release).schema(version, Encoding.KAFKA)
        given_messages = [
            None if typed is None else typed.message for typed in map(messages.__getitem__, rows)
        ]
        of_layout = message_column(schema, message_type(name), given_messages)
        column = _put(column, rows, _conformed(of_layout, kind))
    return column


def _conformed(column: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    """Return structures as a type that contains all of their fields, and possibly more."""
    if column.type == kind:
        return column
    columns = [
        column.field(field.name).cast(field.type)
        if column.type.get_field_index(field.name) >= 0
        else pa.nulls(len(column), field.type)
        for field in kind
    ]
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=column.is_null())


def _put(column: pa.Array, rows: Sequence[int], patch: pa.Array) -> pa.Array:
    """Return a column with other values in some rows."""
    indices = np.arange(len(column))
    indices[list(rows)] = len(column) + np.arange(len(rows))
    return pa.concat_arrays([column, patch]).take(pa.array(indices))


def _patched(column: pa.Array, values: dict[int, Any]) -> pa.Array:
    return _put(column, list(values), pa.array(values.values(), column.type))


def _sparse(values: dict[int, str], rows: int) -> pa.StringArray:
    column = pa.nulls(rows, pa.string())
    return _patched(column, values) if values else column


def _only(data: pa.BinaryArray, rows: Words) -> pa.BinaryArray:
    """Return a column in which all rows except these are null. These rows must not be null."""
    if rows.all():
        return data
    buffers = [pa.py_buffer(bits(rows)), *data.buffers()[1:]]
    if data.offset:
        raise AssertionError("bodies must begin at the first byte of their column")
    return pa.Array.from_buffers(data.type, len(data), buffers)


def _without(data: pa.BinaryArray, size: int) -> pa.BinaryArray:
    """Return rows without their first ``size`` bytes."""
    # Without a given end, Arrow 26 computes a negative size for shorter rows and nulls.
    return pc.binary_slice(data, size, INT32_MAX)


def int16_in_front(data: pa.BinaryArray) -> tuple[pa.Array, pa.BinaryArray]:
    """Split off the int16 at the beginning of each row. It is null in rows that are too short."""
    numbers, has = _int16(data)
    bodies = _only(_without(data, _INT16_SIZE), has)
    return pa.array(numbers, pa.int32(), mask=~has), bodies


def _int16(data: pa.BinaryArray) -> tuple[Words, Words]:
    """Return the int16 at the beginning of each row, and which rows have an int16."""
    (high, low), has = _first_bytes(data, _INT16_SIZE)
    return ((high << 8) | low).astype(np.int16).astype(np.int32), has


def _frames(values: pa.BinaryArray) -> _RecordHeads:
    (frame, types, versions), has = _first_bytes(values, _FRAME_SIZE)
    has &= (frame == _FRAME_VERSION) & (types < _LONGER) & (versions < _LONGER)
    return _RecordHeads(types, versions, has, has, ~has)


def _first_bytes(data: pa.BinaryArray, count: int) -> tuple[Words, Words]:
    """Return the first bytes of each row as numbers, and which rows are long enough."""
    _, raw, content = data.buffers()
    rows = len(data)
    if not rows or content is None or not content.size:
        return np.zeros((count, rows), np.int32), np.zeros(rows, bool)
    offsets = np.frombuffer(raw, np.int32, rows + 1, data.offset * 4)
    has = np.diff(offsets) >= count
    if data.null_count:
        has &= np.asarray(data.is_valid())
    raw = np.frombuffer(content, np.uint8)
    bytes_by_row = np.zeros((count, rows), np.int32)
    first = offsets[:-1] if has.all() else offsets[:-1][has]
    for at in range(count):
        bytes_by_row[at][has] = raw[first + at]
    return bytes_by_row, has
