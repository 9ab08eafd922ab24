"""Build the rows of the table of records from rows of messages.

All partitions in a batch of messages are read together. The kernels return groups of record batches
with their records, the batch number of each record, and the partition number of each batch. These
numbers are used to copy facts about partitions and batches to records. Only batches that the
kernels refuse become Python objects. The rows of these objects are inserted at the right places
among the other rows.

A row represents a record with the facts about its batch. Two other kinds of rows have no offset.
One represents a batch without records (compaction leaves such batches behind), with its facts. The
other contains bytes that are not a record batch, with the reason in ``error``. If a Fetch response
reaches its size limit within its last batch, the beginning of that batch is also a row of this last
kind.

The records of a batch share the same values in two dozen columns. Copying these values into every
row takes longer than decoding the records, and a reader of the rows would have to search for runs
of equal rows. The rows are therefore kept in runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.pairing.state import WITHHELD_BYTES
from flexwire.columnar.record_columns import OF_BATCH, OF_RECORD, batch_fact
from flexwire.columnar.record_pieces import PieceReader
from flexwire.columnar.records import RecordSelection
from flexwire.errors import RecordError
from flexwire.records import RecordBatch, decode_batches
from flexwire.records.inflation import INFLATION, Inflation, records_within
from flexwire.schema.resolve import ZERO_UUID
from flexwire.tables.schema import RECORDS
from flexwire.tables.spec_places import KNOWN_TOPICS
from flexwire.wire.varint import uuid_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from flexwire.columnar.record_columns import SizeHints
    from flexwire.columnar.record_pieces import PieceGroup, RefusedPiece
    from flexwire.tables.spec_places import RecordsField

    Row = tuple[Any, ...]
    Words = np.ndarray[Any, Any]


@dataclass(frozen=True)
class RunRows:
    """Rows of a table with the columns of ``schema``, in runs.

    ``own`` contains the columns that differ from row to row. ``facts`` contains the other columns,
    once for each run, and ``counts`` contains the number of rows in each run, which is at least 1.
    """

    schema: pa.Schema
    own: pa.RecordBatch
    facts: pa.RecordBatch
    counts: Words

    def __len__(self) -> int:
        return len(self.own)

    @cached_property
    def nbytes(self) -> int:
        """The approximate number of bytes that the rows take in memory."""
        return int(self.own.nbytes) + int(self.facts.nbytes)

    def batch(self) -> pa.RecordBatch:
        """Return the rows with the facts copied into each of them."""
        runs = pa.array(np.repeat(np.arange(len(self.counts)), self.counts))
        facts = self.facts.take(runs)
        columns = [
            self.own[name] if name in self.own.schema.names else facts[name]
            for name in self.schema.names
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as objects."""
        rows: list[dict[str, Any]] = self.batch().to_pylist()
        return rows

    def slice(self, start: int, length: int | None = None) -> RunRows:
        """Return some of the rows without copying."""
        stop = len(self) if length is None else min(len(self), start + length)
        ends = np.cumsum(self.counts)
        first, last = np.searchsorted(ends, [start, stop - 1], side="right")
        part = slice(int(first), int(last) + 1)
        counts = np.minimum(ends[part], stop) - np.maximum(ends[part] - self.counts[part], start)
        facts = self.facts.slice(part.start, part.stop - part.start)
        return RunRows(self.schema, self.own.slice(start, stop - start), facts, counts)

    @classmethod
    def joined(cls, rows: Sequence[RunRows]) -> RunRows:
        """Return the rows of several objects as one. All objects must have the same columns."""
        return cls(
            rows[0].schema,
            pa.concat_batches([row.own for row in rows]),
            pa.concat_batches([row.facts for row in rows]),
            np.concatenate([row.counts for row in rows]),
        )


Rows: TypeAlias = pa.RecordBatch | RunRows
"""Rows of a table, as a batch or in runs."""


def cut_rows(row_batches: Iterable[Rows], most_rows: int, most_bytes: int) -> Iterator[Rows]:
    """Yield rows in non-empty batches of at most ``most_rows`` and about ``most_bytes``."""
    for rows in row_batches:
        if not len(rows):
            continue
        each = max(1, rows.nbytes // len(rows))
        step = max(1, min(most_rows, most_bytes // each))
        for start in range(0, len(rows), step):
            yield rows.slice(start, step)


def with_columns(rows: Rows, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as a batch with a schema that contains some of their columns, in any order."""
    if isinstance(rows, RunRows):
        chosen = pa.schema([rows.schema.field(name) for name in schema.names])
        rows = replace(rows, schema=chosen).batch()
    return pa.RecordBatch.from_arrays([rows[name] for name in schema.names], schema=schema)


OF_PARTITION = RECORDS.names[RECORDS.names.index("offset") :]
"""The columns of the records table that depend only on the bytes of a partition, in order."""
PARTIAL_BATCH = "partial batch"
WITHHELD_RECORDS = "the records are withheld, because the cluster's metadata contains credentials"
# The weight of a row without its key, value and record headers.
_ROW_BYTES = 100


def object_rows(
    data: bytes, begin: int = 0, inflation: Inflation = INFLATION
) -> Iterator[tuple[Row, int]]:
    """Yield the rows of all batches in ``data``, as tuples of `OF_PARTITION`, with their sizes.

    ``data`` contains a partition's bytes, starting at ``begin``, where a batch begins.
    ``inflation`` limits the inflated size of each batch.
    """
    if data == WITHHELD_BYTES and not begin:
        yield _row({"error": WITHHELD_RECORDS}), _ROW_BYTES
        return
    batches = decode_batches(data, max_inflated=inflation.max_inflated)
    while True:
        start = batches.position
        try:
            batch = next(batches, None)
        except RecordError as error:
            yield _failure(_located(error, begin), data[start : batches.position])
            continue
        if batch is None:
            break
        batch.position += begin
        yield from _batch_rows(batch, inflation.ratio)
    if batches.partial is not None:
        whole = batches.partial.declared_size or "an unknown number"
        reason = f"{PARTIAL_BATCH}: {batches.partial.size} of {whole} bytes"
        yield _failure(reason, data[batches.partial.position :])


def _located(error: RecordError, begin: int) -> str:
    return str(RecordError(error.reason, offset=begin + error.offset))


def _batch_rows(batch: RecordBatch, ratio: int | None) -> Iterator[tuple[Row, int]]:
    facts = _batch_facts(batch)
    try:
        records = records_within(batch, ratio)
    except RecordError as error:
        yield _failure(str(error), batch.data, facts)
        return
    if not records:
        yield _row(facts), _ROW_BYTES
    for record in records:
        own = {name: of(record) for name, of in OF_RECORD.items()}
        size = len(record.key or b"") + len(record.value or b"")
        size += sum(len(key) + len(value or b"") for key, value in record.headers)
        yield _row(facts | own), _ROW_BYTES + size


def _batch_facts(batch: RecordBatch) -> dict[str, Any]:
    facts = {name: of(batch) for name, of in OF_BATCH.items()}
    return facts | {"batch_records": batch.record_count}


def _failure(reason: str, data: bytes, facts: dict[str, Any] | None = None) -> tuple[Row, int]:
    return _row({**(facts or {}), "error": reason, "bytes": data}), _ROW_BYTES + len(data)


def _row(values: dict[str, Any]) -> Row:
    return tuple(values.get(name) for name in OF_PARTITION)


_OF_FRAME = ("connection", "direction", "frame_index", "time", "client_id")
_OF_RECORD = tuple(OF_RECORD)
_FACTS = [name for name in OF_PARTITION if name not in _OF_RECORD]
_OWN = pa.schema([RECORDS.field(name) for name in _OF_RECORD])
_SHARED = pa.schema([column for column in RECORDS if column.name not in _OF_RECORD])
# The maximum number of rows that are returned together, and the maximum number of bytes in their
# shared columns: a topic name may take 32 KiB.
_ROWS, _SHARED_BYTES = 1 << 16, 1 << 25
# The maximum number of rows, and of bytes in these rows, that are held as objects.
_OBJECTS, _OBJECT_BYTES = 10_000, 1 << 24
_NO_TEXT = pa.array(["", uuid_text(ZERO_UUID)])


def record_rows(
    messages: pa.RecordBatch,
    where: RecordsField,
    names: Mapping[str, str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the records table as `record_runs` does, with all facts in each row."""
    for rows in record_runs(messages, where, names):
        yield rows.batch()


def record_runs(
    messages: pa.RecordBatch,
    where: RecordsField,
    names: Mapping[str, str] | None = None,
    hints: SizeHints | None = None,
    inflation: Inflation = INFLATION,
) -> Iterator[RunRows]:
    """Yield the rows of the records table for the records in rows of messages, in order.

    ``names`` contains the names of topics by id, for versions that contain only ids. ``hints`` come
    from earlier calls and save memory. The cuts between batches of rows may depend on ``hints``. A
    batch contains about as many bytes as a cache holds, or the bytes of a single record batch.
    ``inflation`` limits the inflated size of each record batch.
    """
    topics, frame = _elements(pc.struct_field(messages["body"], where.topics))
    partitions, topic = _elements(pc.struct_field(topics, where.partitions))
    records = pc.struct_field(partitions, where.records)
    starts, ends = _extents(records)
    (filled,) = np.nonzero(ends > starts)
    frame, topic = frame[topic[filled]], topic[filled]
    carriers = [
        _Carrier(pa.repeat(pa.scalar(where.source), len(messages)), frame),
        *(_Carrier(messages[name], frame) for name in _OF_FRAME),
        *(_Carrier(column, topic) for column in _names(topics, where, names or {})),
        _Carrier(pc.struct_field(partitions, where.partition), filled),
    ]
    data = np.frombuffer(records.buffers()[2] or b"", np.uint8)
    pieces = _Pieces(data, starts[filled], ends[filled], carriers, inflation)
    request = RecordSelection(
        columns=_OF_RECORD, max_inflated=inflation.max_inflated, max_ratio=inflation.ratio
    )
    for group in PieceReader(data, pieces.starts, pieces.ends, request, hints):
        yield from _group_rows(pieces, group)


def _names(
    topics: pa.StructArray, where: RecordsField, names: Mapping[str, str]
) -> tuple[pa.StringArray, pa.StringArray]:
    """Return the names and the ids of topics."""
    name, identity = (
        _text(topics, column_name) for column_name in (where.topic_name, where.topic_id)
    )
    names = {**names, **KNOWN_TOPICS}
    places = pc.index_in(identity, pa.array(names, pa.string()))
    name = pc.coalesce(name, pa.array(names.values(), pa.string()).take(places))
    return name, identity


def _elements(lists: pa.ListArray) -> tuple[pa.StructArray, Words]:
    """Return the elements of lists, and the row of each."""
    return pc.list_flatten(lists), pc.list_parent_indices(lists).to_numpy()


def _text(topics: pa.StructArray, field_name: str | None) -> pa.StringArray:
    # A version contains either the name or the id. The other field is "" or the zero uuid.
    if field_name is None:
        return pa.nulls(len(topics), pa.string())
    text = pc.struct_field(topics, field_name)
    return pc.if_else(pc.is_in(text, _NO_TEXT), pa.scalar(None, pa.string()), text)


def _extents(records: pa.BinaryArray) -> tuple[Words, Words]:
    """Return where the bytes of each row begin and end. Null counts as empty."""
    rows = len(records)
    if not rows:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    offsets = np.frombuffer(records.buffers()[1], np.int32)[records.offset :][: rows + 1]
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    if records.null_count:
        nulls = records.is_null().to_numpy(zero_copy_only=False)
        ends[nulls] = starts[nulls]
    return starts, ends


class _Carrier(NamedTuple):
    """A column of the messages or partitions from which the pieces come, and each piece's row."""

    column: pa.Array
    rows: Words


@dataclass(frozen=True)
class _Pieces:
    """The record bytes of partitions, with the columns of the surrounding messages."""

    data: Words
    starts: Words
    ends: Words
    carriers: list[_Carrier]
    inflation: Inflation

    @cached_property
    def most_rows(self) -> int:
        """The maximum number of rows that are returned together."""
        texts = [
            carrier.column for carrier in self.carriers if pa.types.is_string(carrier.column.type)
        ]
        longest = sum(pc.max(pc.binary_length(text)).as_py() or 0 for text in texts)
        return min(_ROWS, max(1, _SHARED_BYTES // max(1, longest)))

    def carrier_columns(self, pieces: Words) -> list[pa.Array]:
        """Return the carrier columns of some pieces."""
        return [carrier.column.take(pa.array(carrier.rows[pieces])) for carrier in self.carriers]


@dataclass(slots=True)
class _Objects:
    """Rows that were read as objects, each with the number of its batch in the group."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    weight: int = 0

    def has_room(self, size: int) -> bool:
        fits = self.weight + size <= _OBJECT_BYTES and len(self.rows) < _OBJECTS
        return fits or not self.rows

    def add(self, batch: int, row: tuple[Any, ...], size: int) -> None:
        self.rows.append(row)
        self.batches.append(batch)
        self.weight += size

    def column(self, name: str) -> pa.Array:
        at = OF_PARTITION.index(name)
        return pa.array([row[at] for row in self.rows], RECORDS.field(name).type)


def _group_rows(pieces: _Pieces, group: PieceGroup) -> Iterator[RunRows]:
    """Yield the rows of a group in parts of limited size. Refused batches are read as objects."""
    first, objects = 0, _Objects()
    for refused in group.refused():
        batch = refused.batch
        for row, size in _refused_rows(pieces, refused):
            if not objects.has_room(size):
                yield from _merged(pieces, group, slice(first, batch + 1), objects)
                first, objects = batch, _Objects()
            objects.add(batch, row, size)
    yield from _merged(pieces, group, slice(first, len(group.batches)), objects)


def _refused_rows(pieces: _Pieces, refused: RefusedPiece) -> Iterator[tuple[tuple[Any, ...], int]]:
    data = pieces.data[refused.start : refused.stop].tobytes()
    try:
        begin = refused.start - int(pieces.starts[refused.piece])
        yield from object_rows(data, begin, pieces.inflation)
    except Exception as error:
        carried = pieces.carrier_columns(np.array([refused.piece]))
        _, connection, frame, *_ = (column[0] for column in carried)
        error.add_note(f"while decoding the records in frame {frame} of {connection}")
        raise


def _merged(
    pieces: _Pieces, group: PieceGroup, part: slice, objects: _Objects
) -> Iterator[RunRows]:
    """Yield the rows of a part of the group's batches, in order."""
    counts = group.batches["rows"]
    begin = int(counts[: part.start].sum())
    records = group.records.slice(begin, int(counts[part].sum()))
    batches = group.batches[part]
    # The facts of the part's batches come first, followed by the facts of the rows that were read
    # as objects.
    fact = np.repeat(np.arange(len(batches)), counts[part])
    columns = {name: records[name] for name in _OF_RECORD}
    facts = {name: _facts(pieces, batches, name) for name in _FACTS}
    of_piece = batches["piece"]
    if objects.rows:
        places = np.array(objects.batches) - part.start
        order = np.argsort(np.concatenate([fact, places]), kind="stable")
        object_facts = np.arange(len(places)) + len(batches)
        fact = np.concatenate([fact, object_facts])[order]
        of_piece = np.concatenate([of_piece, of_piece[places]])
        columns = {
            name: pa.concat_arrays([column, objects.column(name)]).take(pa.array(order))
            for name, column in columns.items()
        }
        facts = {
            name: pa.concat_arrays([column, objects.column(name)]) for name, column in facts.items()
        }
    yield from _spread(pieces, columns, facts, fact, of_piece)


def changes(numbers: Words) -> Words:
    """Return the first place, and each place where a number differs from the one before it."""
    is_first = np.ones(len(numbers), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)


def _facts(pieces: _Pieces, batches: Words, name: str) -> pa.Array:
    """Return a column's value for each batch."""
    kind = RECORDS.field(name).type
    if name in {"error", "bytes"}:
        return pa.nulls(len(batches), kind)
    if name == "batch_records":
        return pa.array(batches["count"], kind)
    if name == "batch_position":
        begins = pieces.starts[batches["piece"]]
        return pa.array(batches["position"] - begins, kind)
    return batch_fact(name, batches)


def _spread(
    pieces: _Pieces,
    columns: dict[str, pa.Array],
    facts: dict[str, pa.Array],
    fact: Words,
    of_piece: Words,
) -> Iterator[RunRows]:
    """Yield the rows in several steps. ``fact`` is the number of each row's shared facts."""
    own = pa.RecordBatch.from_arrays([columns[name] for name in _OF_RECORD], schema=_OWN)
    for start in range(0, len(fact), pieces.most_rows):
        of_rows = fact[start : start + pieces.most_rows]
        begins = changes(of_rows)
        runs = of_rows[begins]
        shared = [column.take(pa.array(runs)) for column in facts.values()]
        shared_rows = pa.RecordBatch.from_arrays(
            [*pieces.carrier_columns(of_piece[runs]), *shared], schema=_SHARED
        )
        counts = np.diff(begins, append=len(of_rows))
        yield RunRows(RECORDS, own.slice(start, len(of_rows)), shared_rows, counts)
