"""Measure frames in every encoding, from the columns of a message table.

`CostMeter` measures message by message and field by field. This module measures millions of
complete frames, or a sample of them. It writes no bytes and creates no objects, because
`message_sizes` returns the size that the reference would write. Record batches are not in the
table. Their bytes are the same in every encoding, so placeholders of the same size replace the
batches.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.columnar import message_sizes, message_type
from flexwire.errors import FlexwireError
from flexwire.protocol.client_instances import client_instance_field
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.schema.header_versions import HEADER_NAMES, header_version
from flexwire.schema.message_schemas import schemas_of
from flexwire.schema.spec import MessageType
from flexwire.specs.cost.meter import HEADER_ENCODINGS
from flexwire.specs.cost.sides import ErrorTaggedSpecs, bundled_specs
from flexwire.specs.cost.tagging import newly_tagged
from flexwire.tables.parquet import ValueRanges
from flexwire.tables.schema import SIZE_SUFFIX
from flexwire.wire.encoding import Encoding
from flexwire.wire.types import Integer
from flexwire.wire.varint import uuid_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.schema.message_schemas import MessageLike
    from flexwire.schema.spec import MessageSpec

    Words = np.ndarray[Any, Any]


ERROR_TAGS: Final = "error_tags"
"""The column for Kafka's encoding with errors as tagged fields, KIP-636."""
WITHOUT_ERROR_TAGS: Final = "without_error_tags"
"""The column to compare with KIP-636, which makes a message flexible if necessary.

The bytes that a flexible version saves are due to KIP-482. This column therefore contains the size
according to KIP-482, or the size as sent if KIP-636 does not change the message.
"""
FRAME_SIZES: Final = pa.schema(
    [
        *((encoding.value.replace("-", "_"), pa.int64()) for encoding in Encoding),
        (ERROR_TAGS, pa.int64()),
        (WITHOUT_ERROR_TAGS, pa.int64()),
        ("has_error", pa.bool_()),
    ]
)
"""The size of each frame in each encoding, and whether an error code in the frame is not 0."""
NEEDED: Final = (
    "api_key",
    "body_version",
    "client_id",
    "header_unknown_tagged_fields",
    "size",
    "body",
)
"""The columns of a message table that `frame_sizes` reads."""

_LENGTH = 4
_NO_ID, _SOME_ID = uuid_text(UUID(int=0)), uuid_text(UUID(int=1))
# The placeholders for record batches are memory that is reserved but never written.
_MOST_BYTES = 64 * 1024 * 1024


class _ErrorTaggedVersion(NamedTuple):
    """A version with tagged errors: its spec, its number, and the places of its error codes."""

    spec: MessageSpec
    version: int
    codes: tuple[tuple[str, ...], ...]


def frame_sizes(message: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Measure the frames of one message and return a row for each: `FRAME_SIZES`.

    ``rows`` contains the columns `NEEDED`. A size is null if the encoding cannot express a value
    (such as tagged fields in an encoding without them) or if the body is null. ``has_error`` is
    null if KIP-636 does not change the message or the message has no error code. Sizes include the
    four bytes of a frame's length.
    """
    parts = [_measure_rows(message, part).columns for part in _parts(rows)]
    columns = [pa.concat_arrays(each) for each in zip(*parts, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=FRAME_SIZES)


def _parts(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Divide rows into parts whose record batches fit into one column."""
    which = np.cumsum(rows["size"].fill_null(0).to_numpy(zero_copy_only=False)) // _MOST_BYTES
    ends = [*(np.flatnonzero(np.diff(which)) + 1).tolist(), rows.num_rows]
    begin = 0
    for end in ends:
        yield rows.slice(begin, end - begin)
        begin = end


def _measure_rows(message: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    versions = rows["body_version"]
    body = fitted(rows["body"], message_type(message))
    rows = _with_sent_client(message, rows, body)
    different_versions = versions.unique().to_pylist()
    sizes_by_encoding: dict[Encoding, pa.Int64Array] = {}
    alike: dict[tuple[int | None, ...], pa.Int64Array] = {}
    for encoding in Encoding:
        # If two encodings have the same layout in all versions, their sizes are equal.
        key = tuple(_layout(message, version, encoding) for version in different_versions)
        if key not in alike:
            headers = _header_versions(message, versions, encoding)
            header_sizes = _header_sizes(message, rows, headers, encoding)
            alike[key] = pc.add(_body_sizes(message, body, versions, encoding), header_sizes)
        sizes_by_encoding[encoding] = alike[key]
    sizes = [sizes_by_encoding[each_encoding] for each_encoding in Encoding]
    tagged = _with_error_tags(message, rows, body, sizes_by_encoding)
    return pa.RecordBatch.from_arrays([*sizes, *tagged], schema=FRAME_SIZES)


def _layout(message: str, version: int | None, encoding: Encoding) -> int | None:
    """Return a key that is equal for all encodings in which a version has the same layout."""
    try:
        return None if version is None else id(schemas_of(message).schema(version, encoding))
    except FlexwireError:
        return None


def _body_sizes(
    message: MessageLike, body: pa.StructArray, versions: Any, encoding: Encoding
) -> pa.Int64Array:
    return message_sizes(message, body, versions, encoding=encoding, mode="PERMISSIVE").values


# The code below measures headers.


def _header_sizes(
    message: str, rows: pa.RecordBatch, versions: pa.Array, encoding: Encoding
) -> pa.Int64Array:
    """Return the sizes of the headers, including the four bytes of the frame's length."""
    kind = catalog().entry(message).type
    header = message_type(HEADER_NAMES[kind])
    fields = [_header_field(field, rows) for field in header]
    structs = pa.StructArray.from_arrays(fields, fields=list(header))
    encoding = encoding if encoding in HEADER_ENCODINGS else Encoding.KAFKA
    return pc.add(_body_sizes(HEADER_NAMES[kind], structs, versions, encoding), _LENGTH)


def _header_field(field: pa.Field, rows: pa.RecordBatch) -> pa.Array:
    if pa.types.is_list(field.type):
        return fitted(rows["header_unknown_tagged_fields"], field.type)
    if field.name in rows.schema.names:
        return rows[field.name].cast(field.type)
    # All numbers have the same size, and the zero UUID is not written.
    nothing = _NO_ID if pa.types.is_string(field.type) else 0
    return pa.repeat(pa.scalar(nothing, field.type), rows.num_rows)


def _with_sent_client(message: str, rows: pa.RecordBatch, body: pa.StructArray) -> pa.RecordBatch:
    """Return the rows with the client id that the request headers contain.

    A client may send its id only once on a connection (KIP-1313). ``client_id`` in ``rows`` is the
    id of the connection, and no column contains the client instance id of the header. Each of these
    ids takes bytes, so the size of the frame shows which ids the header contains.
    """
    if catalog().entry(message).type is not MessageType.REQUEST:
        return rows
    versions, encoding = rows["body_version"], Encoding.KAFKA
    headers = _header_versions(message, versions, encoding)
    sent = pc.subtract(rows["size"], _body_sizes(message, body, versions, encoding))

    def fits(some: pa.RecordBatch) -> pa.BooleanArray:
        is_equal = pc.equal(_header_sizes(message, some, headers, encoding), sent)
        return is_equal.fill_null(fill_value=False)

    is_known = fits(rows)
    if is_known.true_count == len(rows):
        return rows
    choices = [{"client_id": pa.nulls(len(rows), pa.string())}]
    name = client_instance_field(HEADER_NAMES[MessageType.REQUEST])
    if name is not None:
        none, some = (pa.repeat(each, len(rows)) for each in (_NO_ID, _SOME_ID))
        rows = rows.append_column(name, none)
        choices += [{name: some}, {**choices[0], name: some}]
    found = rows
    for choice in choices:
        is_chosen = pc.and_not(fits(_replaced(rows, choice)), is_known)
        found = _replaced(
            found,
            {each: pc.if_else(is_chosen, choice[each], found[each]) for each in choice},
        )
        is_known = pc.or_(is_known, is_chosen)
    return found


def _replaced(rows: pa.RecordBatch, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    for name, column in columns.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows


def _header_versions(message: str, versions: pa.Array, encoding: Encoding) -> pa.Array:
    return _by_version(versions, lambda version: _header_version(message, version, encoding))


@per_catalog
@lru_cache(maxsize=4096)
def _header_version(message: str, version: int, encoding: Encoding) -> int | None:
    try:
        flexible = schemas_of(message).schema(version, encoding).flexible
    except FlexwireError:
        return None
    return _header_of(message, version, flexible=flexible)


def _header_of(message: str, version: int, *, flexible: bool) -> int:
    entry = catalog().entry(message)
    header = entry.header_versions.of(version)
    return header_version(entry.type, entry.api_key, header, flexible=flexible)


def _by_version(versions: pa.Array, value_of: Any) -> pa.Array:
    encoded = versions.dictionary_encode("encode")
    values = [
        None if value is None else value_of(value) for value in encoded.dictionary.to_pylist()
    ]
    return pa.array(values, pa.int64()).take(encoded.indices)


# The code below handles errors as tagged fields.


def _with_error_tags(
    message: str,
    rows: pa.RecordBatch,
    body: pa.StructArray,
    sizes_by_encoding: dict[Encoding, pa.Int64Array],
) -> tuple[pa.Int64Array, pa.Int64Array, pa.BooleanArray]:
    """Return the sizes with and without tagged errors, and whether a code is set."""
    versions, kafka = rows["body_version"], sizes_by_encoding[Encoding.KAFKA]
    sizes = [kafka.filter(versions.is_null())]
    without = [*sizes]
    has_error = [pa.nulls(len(sizes[0]), pa.bool_())]
    order = [np.flatnonzero(np.asarray(versions.is_null()))]
    for version in versions.unique().drop_null().to_pylist():
        these = pc.equal(versions, version).fill_null(fill_value=False)
        order.append(np.flatnonzero(np.asarray(these)))
        is_all = len(order[-1]) == len(rows)
        part, bodies = (rows, body) if is_all else (rows.filter(these), body.filter(these))
        tagged = _find_error_tagged(message, version)
        before = kafka if tagged is None else sizes_by_encoding[Encoding.FLEXIBLE]
        without.append(before if is_all else before.filter(these))
        if tagged is None:
            sizes.append(without[-1])
            has_error.append(pa.nulls(len(part), pa.bool_()))
        else:
            sizes.append(_tagged_sizes(message, part, bodies, tagged))
            has_error.append(_any_set(bodies, tagged.codes))
    back = pa.array(np.argsort(np.concatenate(order)))
    return (
        pa.concat_arrays(sizes).take(back),
        pa.concat_arrays(without).take(back),
        pa.concat_arrays(has_error).take(back),
    )


@per_catalog
@lru_cache(maxsize=4096)
def _find_error_tagged(message: str, version: int) -> _ErrorTaggedVersion | None:
    """Return a version with tagged errors, or None if the version has no errors."""
    old = bundled_specs()
    named = (message, None, None)
    edition = old.find(named)
    if edition is None or version not in edition.spec.valid_versions:
        return None
    tagged, at = ErrorTaggedSpecs(old).target(named, edition, version, newest=False)
    if tagged is edition:
        return None
    schemas = old.schema(edition, version, Encoding.KAFKA), old.schema(tagged, at, Encoding.KAFKA)
    errors = newly_tagged(*schemas, {})
    if not errors and schemas[0].flexible == schemas[1].flexible:
        # Only the API's other message (the request or response) contains errors.
        return None
    codes = tuple(
        (*error.at.steps, error.at.old.attribute)
        for error in errors
        if isinstance(error.at.old.type, Integer)
    )
    return _ErrorTaggedVersion(tagged.at(at), at, codes)


def _tagged_sizes(
    message: str, rows: pa.RecordBatch, body: pa.StructArray, tagged: _ErrorTaggedVersion
) -> pa.Int64Array:
    flexible = schemas_of(tagged.spec).schema(tagged.version).flexible
    header = _header_of(message, tagged.version, flexible=flexible)
    headers = _header_sizes(message, rows, pa.repeat(header, rows.num_rows), Encoding.KAFKA)
    same = fitted(body, message_type(tagged.spec))
    return pc.add(_body_sizes(tagged.spec, same, tagged.version, Encoding.KAFKA), headers)


def _any_set(body: pa.StructArray, codes: tuple[tuple[str, ...], ...]) -> pa.BooleanArray:
    """Return, for each row, whether any of the codes is not 0. A row without a code is null."""
    seen, is_set = np.zeros(len(body), bool), np.zeros(len(body), bool)
    for steps in codes:
        values, rows = body, np.arange(len(body))
        for step in steps:
            values = pc.struct_field(values, step)
            if pa.types.is_list(values.type):
                rows = rows[np.asarray(pc.list_parent_indices(values))]
                values = values.flatten()
        seen[rows[np.asarray(values.is_valid())]] = True
        is_set[rows[np.asarray(pc.not_equal(values, 0).fill_null(fill_value=False))]] = True
    return pa.array(is_set, mask=~seen)


# The code below converts columns of a table to columns of a message.


def fitted(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column with the fields of ``kind``, and placeholders of equal size for records.

    Fields that only ``kind`` has are left out. No other bytes are copied.
    """
    if pa.types.is_list(kind):
        values = fitted(array.values, kind.value_type)
        list_type = pa.list_(values.type)
        buffers = array.buffers()[:2]
        return pa.Array.from_buffers(
            list_type, len(array), buffers, array.null_count, array.offset, [values]
        )
    if not pa.types.is_struct(kind):
        return array
    fields = {}
    for field in kind:
        at = array.type.get_field_index(field.name)
        size = array.type.get_field_index(field.name + SIZE_SUFFIX)
        if at >= 0:
            fields[field.name] = fitted(array.field(at), field.type)
        elif size >= 0 and pa.types.is_binary(field.type):
            fields[field.name] = _stand_ins(array.field(size))
    nulls = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays([*fields.values()], [*fields], mask=nulls)


def _stand_ins(sizes: pa.Int64Array) -> pa.BinaryArray:
    """Return values of these sizes, with null for a null size. Their zeros are never accessed."""
    ends = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes.fill_null(0).to_numpy(zero_copy_only=False), out=ends[1:])
    valid = None
    if sizes.null_count:
        valid = pa.array(np.asarray(sizes.is_valid())).buffers()[1]
    buffers = [valid, pa.py_buffer(ends), pa.py_buffer(np.zeros(int(ends[-1]), np.uint8))]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)


AS_SENT: Final = "kafka"
"""The column of `SAMPLE` for frames as they were sent."""
# After these frames, one in 32 of each octave (such as 256 to 511) is measured, in two blocks: one
# at the start of the octave and one in its middle. Only parts of the files are therefore read, and
# each connection is sampled from its start to its end.
_WHOLE_UNTIL: Final = 256
_ONE_OF: Final = 32
_LONGEST: Final = 2**31
READ: Final = (*NEEDED, "frame_index", "error", "withheld_credentials")
"""The columns of a message table that are read."""
SAMPLE: Final = pa.schema(
    [
        ("message", pa.string()),
        ("body_version", pa.int32()),
        ("client_id", pa.string()),
        ("weight", pa.float64()),
        *FRAME_SIZES,
    ]
)
"""A measured frame. If an encoding cannot express a value, its size is the size as sent."""


def _blocks() -> ValueRanges:
    blocks = [(0, _WHOLE_UNTIL - 1)]
    octave = _WHOLE_UNTIL
    while octave < _LONGEST:
        half = octave // 2
        blocks += [(at, at + half // _ONE_OF - 1) for at in (octave, octave + half)]
        octave *= 2
    return ValueRanges("frame_index", tuple(blocks))


BLOCKS: Final = _blocks()
"""The frames that are measured."""


def measure(
    message: str, batches: Iterable[pa.RecordBatch], *, whole: bool
) -> Iterator[pa.RecordBatch]:
    """Measure the frames of one message that are in `BLOCKS`, or all frames.

    Reads batches of `READ` and returns batches of `SAMPLE`.
    """
    for batch in batches:
        is_one = pc.and_(batch["error"].is_null(), batch["body"].is_valid())
        is_one = pc.and_(is_one, pc.equal(batch["withheld_credentials"], 0))
        if not whole:
            is_one = pc.and_(is_one, BLOCKS.has(batch["frame_index"]))
        rows = batch.filter(is_one)
        if rows.num_rows:
            measured = _measured_sample(message, rows, whole=whole)
            yield measured.filter(measured[AS_SENT].is_valid())


def _measured_sample(message: str, rows: pa.RecordBatch, *, whole: bool) -> pa.RecordBatch:
    sizes = frame_sizes(message, rows)
    columns: dict[str, Any] = {column: rows[column] for column in ("body_version", "client_id")}
    is_long = pc.greater_equal(rows["frame_index"], _WHOLE_UNTIL)
    columns["weight"] = pc.if_else(is_long, 1.0 if whole else float(_ONE_OF), 1.0)
    columns["message"] = pa.repeat(message, rows.num_rows)
    for field in FRAME_SIZES:
        is_size = pa.types.is_integer(field.type)
        sent = sizes[AS_SENT]
        columns[field.name] = pc.coalesce(sizes[field.name], sent) if is_size else sizes[field.name]
    return pa.RecordBatch.from_arrays([columns[name] for name in SAMPLE.names], schema=SAMPLE)
