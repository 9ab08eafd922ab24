"""Combine equal rows about connections, and find the client that owns each connection.

Some facts concern a connection as a whole and may be found in any range of a capture. Rows
therefore keep their connection's name until all ranges are merged. A task holds the distinct rows
of its range. The driver holds `HELD_BYTES` of rows, and the sums that it will merge next. Beyond
that, rows are written to an unnamed file in `BUCKETS` parts, divided by connection, and are read
part by part at the end. In this way, a hundred gigabytes of rows require two gigabytes of memory.

Many clients send SASL requests with a different client id from other requests, or with no client
id. On one connection, both kinds of requests belong to the same client. Requests that only open a
connection therefore count for the client that sends the other requests. Each connection counts
once, for the client that sends the most requests on it.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Final
from weakref import finalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.measures.counters import hashes_and_texts
from flexwire.measures.evidence import SOFTWARE
from flexwire.measures.groups import CodedColumn, RowGroups, numbered
from flexwire.protocol.audit import OPENING_APIS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from flexwire.measures.groups import Numbers


CONNECTION: Final = "connection"
HELD_BYTES: Final = 128 << 20
"""The maximum number of bytes of distinct rows that the driver keeps in memory."""
BUCKETS: Final = 64
# The number of bytes after which equal rows are combined.
_UNITED_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class RowKind:
    """A kind of row: the columns that make rows equal, and how to combine the other columns."""

    keys: pa.Schema
    sums: Mapping[str, np.ufunc] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """All columns. The combined columns are numbers."""
        return pa.schema([*self.keys, *((name, pa.int64()) for name in self.sums)])

    def united(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows after combining equal rows."""
        if len(rows) < 2:  # noqa: PLR2004 - a single row has no equal
            return rows
        groups = RowGroups(*(coded_only(rows[name]) for name in self.keys.names))
        some = rows.take(pa.array(groups.first))
        columns = [some[name] for name in self.keys.names]
        for name, unite in self.sums.items():
            numbers = rows[name].to_numpy()
            # `minimum` may process a number twice; `add` must not.
            sums = numbers[groups.first] if unite.identity is None else np.zeros(len(some), int)
            unite.at(sums, groups.of, numbers)
            columns.append(pa.array(sums))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def coded_only(column: pa.Array) -> CodedColumn:
    """Return a column as codes, with its values still in Arrow form. Null counts as a value."""
    return CodedColumn(*numbered(column))


class _HeldRows:
    """Rows of one kind in memory."""

    def __init__(self, kind: RowKind) -> None:
        self._kind = kind
        self._batches: list[pa.RecordBatch] = []
        self.bytes = 0
        self._next = _UNITED_BYTES

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows."""
        if len(rows):
            self._batches.append(rows)
            self.bytes += rows.nbytes
            if self.bytes > self._next:
                self._put(self.united())
                self._next = max(_UNITED_BYTES, 2 * self.bytes)

    @property
    def count(self) -> int:
        """The number of rows in memory."""
        return sum(map(len, self._batches))

    def united(self) -> pa.RecordBatch:
        """Return all rows after combining equal rows."""
        if not self._batches:
            return pa.RecordBatch.from_pylist([], self._kind.schema)
        return self._kind.united(pa.concat_batches(self._batches))

    def _put(self, rows: pa.RecordBatch) -> None:
        self._batches, self.bytes = [rows], rows.nbytes


class ConnectionRows:
    """Rows of several kinds, each with the column `CONNECTION`.

    With ``spills``, rows that do not fit into memory are written to disk, and the object can no
    longer be pickled.
    """

    def __init__(self, kinds: Mapping[str, RowKind], *, spills: bool = False) -> None:
        self._kinds = kinds
        self._rows = {name: _HeldRows(kind) for name, kind in kinds.items()}
        self._spilled = _SpillFile() if spills else None

    def add(self, name: str, rows: pa.RecordBatch) -> None:
        """Add rows of a kind."""
        self._rows[name].add(rows)
        if (
            self._spilled is not None
            and sum(held.bytes for held in self._rows.values()) > HELD_BYTES
        ):
            self._spill(self._spilled)

    def count(self, name: str) -> int:
        """Return an upper limit on a kind's number of rows. Equal rows may not be combined yet."""
        spilled = 0 if self._spilled is None else self._spilled.counts[name]
        return spilled + self._rows[name].count

    def merge(self, other: ConnectionRows) -> None:
        """Add the rows of another task. These rows must be in memory."""
        for name, rows in other._rows.items():
            self.add(name, rows.united())

    def parts(self) -> Iterator[dict[str, pa.RecordBatch]]:
        """Yield all rows by kind. All rows of a connection are in the same part."""
        if self._spilled is None or not self._spilled.is_used:
            yield {name: rows.united() for name, rows in self._rows.items()}
            return
        self._spill(self._spilled)
        for bucket in range(BUCKETS):
            rows = {name: _HeldRows(kind) for name, kind in self._kinds.items()}
            for name, batch in self._spilled.read(bucket):
                rows[name].add(batch)
            yield {name: held.united() for name, held in rows.items()}

    def _spill(self, to: _SpillFile) -> None:
        for name, rows in self._rows.items():
            to.write(name, rows.united())
            self._rows[name] = _HeldRows(self._kinds[name])


class _SpillFile:
    """Rows in a file that no other process can open and that disappears when this process ends."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        # For each bucket: the kind of each piece, and its place.
        self._places: list[list[tuple[str, int, int]]] = [[] for _ in range(BUCKETS)]
        self.counts = Counter[str]()
        """The number of rows of each kind."""

    @property
    def is_used(self) -> bool:
        """True if the file contains any rows."""
        return self._file is not None

    def write(self, name: str, rows: pa.RecordBatch) -> None:
        """Append rows."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="flexwire-")  # noqa: SIM115 - see the next line
            finalize(self, self._file.close)
        self.counts[name] += len(rows)
        for bucket, some in enumerate(_by_bucket(rows)):
            if len(some):
                start = self._file.seek(0, 2)
                with pa.ipc.new_stream(self._file, some.schema) as stream:
                    stream.write_batch(some)
                self._places[bucket].append((name, start, self._file.tell() - start))

    def read(self, bucket: int) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows of a bucket."""
        if self._file is None:
            return
        for name, start, size in self._places[bucket]:
            self._file.seek(start)
            yield name, pa.ipc.open_stream(self._file.read(size)).read_next_batch()


def _by_bucket(rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
    hashes, _ = hashes_and_texts(rows[CONNECTION].cast(pa.binary()))
    buckets = (hashes % np.uint64(BUCKETS)).astype(np.int64)
    order = np.argsort(buckets, kind="stable")
    ends = np.cumsum(np.bincount(buckets, minlength=BUCKETS))
    ordered = rows.take(pa.array(order))
    starts: Sequence[int] = [0, *ends[:-1].tolist()]
    return (
        ordered.slice(start, end - start) for start, end in zip(starts, ends.tolist(), strict=True)
    )


def attributed(rows: pa.RecordBatch, kind: RowKind) -> pa.RecordBatch:
    """Return requests with the client and the software to which their connection belongs.

    ``rows`` has the columns of ``kind``, which for requests are those of `AUDITED`. If a client id
    sends only opening requests, it is replaced with the connection's owner. A row without software
    is assigned the software named on the connection, if there is exactly one.
    """
    if not len(rows):
        return rows
    ids, software = _ClientIds(rows), _RowSoftware(rows)
    client_ids = np.where(ids.is_opening, ids.owners, ids.codes)
    named = np.where(software.is_named, software.codes, software.named_alone(ids.connections))
    if (client_ids == ids.codes).all() and (named == software.codes).all():
        return rows
    changed = {"client_id": ids.values.take(pa.array(client_ids))}
    changed |= {name: rows[name].take(pa.array(software.first[named])) for name in SOFTWARE}
    columns = [changed.get(name, rows[name]) for name in rows.schema.names]
    return kind.united(pa.RecordBatch.from_arrays(columns, schema=rows.schema))


def owning(rows: pa.RecordBatch) -> Numbers:
    """Return the index of one row per connection, sent by the client that owns the connection.

    The owner sent the most requests that do not open the connection. In a tie, a client with a
    client id comes first. After that, the total number of requests decides, and then alphabetical
    order. If the owner has several software names, the name with the most requests is used.
    """
    if not len(rows):
        return np.zeros(0, np.int64)
    ids, software = _ClientIds(rows), _RowSoftware(rows)
    groups = RowGroups(
        CodedColumn(ids.connections, range(len(rows))),
        CodedColumn(ids.codes, range(len(rows))),
        CodedColumn(software.codes, range(len(rows))),
    )
    requests = _sums(groups, rows["requests"].to_numpy())
    is_owner = ids.codes[groups.first] == ids.owners[groups.first]
    first, requests = groups.first[is_owner], requests[is_owner]
    names = (_ranks(rows[name])[first] for name in reversed(SOFTWARE))
    order = np.lexsort((*names, -requests, ids.connections[first]))
    return _first_of_each(first[order], ids.connections)


class _ClientIds:
    """The client ids of rows as codes, and the owner of each row's connection.

    ``is_opening`` is true if the row's client id sends only opening requests on its connection.
    """

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.connections = coded_only(rows[CONNECTION]).codes
        client_id = coded_only(rows["client_id"])
        self.codes: Numbers = client_id.codes
        self.values: pa.Array = client_id.values
        requests = rows["requests"].to_numpy()
        opens = np.isin(rows["api_key"].to_numpy(), [*OPENING_APIS])
        groups = RowGroups(
            CodedColumn(self.connections, range(len(rows))),
            CodedColumn(self.codes, range(len(rows))),
        )
        further = _sums(groups, np.where(opens, 0, requests))
        every, first = _sums(groups, requests), groups.first
        is_named = pc.fill_null(pc.greater(pc.utf8_length(self.values), 0), fill_value=False)
        has_name = np.asarray(is_named)[self.codes[first]]
        names = _ranks(rows["client_id"])[first]
        order = np.lexsort((names, -every, ~has_name, -further, self.connections[first]))
        chosen = _first_of_each(first[order], self.connections)
        owners = np.zeros(int(self.connections.max()) + 1, np.int64)
        owners[self.connections[chosen]] = self.codes[chosen]
        self.owners: Numbers = owners[self.connections]
        self.is_opening: Numbers = (further == 0)[groups.of]


class _RowSoftware:
    """The software of rows as codes. ``first`` contains one row for each code."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        groups = RowGroups(*(coded_only(rows[name]) for name in SOFTWARE))
        self.codes: Numbers = groups.of
        self.first: Numbers = groups.first
        self.is_named: Numbers = np.asarray(rows[SOFTWARE[0]].is_valid())

    def named_alone(self, connections: Numbers) -> Numbers:
        """Return the only software of each row's connection, or else the row's own software."""
        pairs = np.unique(np.stack([connections, self.codes])[:, self.is_named], axis=1)
        where, count = np.unique(pairs[0], return_counts=True)
        alone = np.full(int(connections.max()) + 1, -1)
        alone[where[count == 1]] = pairs[1][np.isin(pairs[0], where[count == 1])]
        software = alone[connections]
        return np.where(software < 0, self.codes, software)


def _sums(groups: RowGroups, numbers: Numbers) -> Numbers:
    sums = np.zeros(len(groups.first), np.int64)
    np.add.at(sums, groups.of, numbers)
    return sums


def _ranks(texts: pa.Array) -> Numbers:
    """Return the rank of each string in alphabetical order (by bytes). Null is last."""
    coded_texts = coded_only(texts)
    ranks = np.empty(len(coded_texts.values), np.int64)
    ranks[pc.array_sort_indices(coded_texts.values).to_numpy()] = np.arange(len(coded_texts.values))
    return ranks[coded_texts.codes]


def _first_of_each(ordered: Numbers, connections: Numbers) -> Numbers:
    """Return the first row of each connection, given rows sorted by connection."""
    _, first = np.unique(connections[ordered], return_index=True)
    return ordered[first]
