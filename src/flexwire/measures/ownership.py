"""Rows about connections, of which those that are alike are one; and whose connection it is.

Some facts belong to a connection as a whole, and any range of a capture may tell one. So rows are
kept with the name of their connection until all ranges have told theirs. What a task holds is
bounded by what is different in its range. What the driver holds is `HELD_BYTES` and the sums that
it is about to merge: beyond that, rows go to a file without a name, in `BUCKETS` parts by their
connection, and in the end are read part by part: a hundred gigabytes of them in two of memory.

Many clients send SASL's requests with another client id than the rest, or with none. They are one
client on one connection. So requests that only open a connection count for the client that sends
the rest, and each connection counts once: for the client that sends most on it.
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
"""So many bytes of different rows the driver holds in memory."""
BUCKETS: Final = 64
# So many bytes are held before rows that are alike are looked for.
_UNITED_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class RowKind:
    """Rows of one kind: the columns by which they are alike, and how the others are united."""

    keys: pa.Schema
    sums: Mapping[str, np.ufunc] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """All columns; those that are united are numbers."""
        return pa.schema([*self.keys, *((name, pa.int64()) for name in self.sums)])

    def united(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Make one of rows that are alike."""
        if len(rows) < 2:  # noqa: PLR2004 - one row is like no other
            return rows
        groups = RowGroups(*(coded_only(rows[name]) for name in self.keys.names))
        some = rows.take(pa.array(groups.first))
        columns = [some[name] for name in self.keys.names]
        for name, unite in self.sums.items():
            numbers = rows[name].to_numpy()
            # A number may be taken in twice by `minimum`, and not by `add`.
            found = numbers[groups.first] if unite.identity is None else np.zeros(len(some), int)
            unite.at(found, groups.of, numbers)
            columns.append(pa.array(found))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def coded_only(column: pa.Array) -> CodedColumn:
    """Give a column as numbers, whose values stay in Arrow; null is a value like others."""
    return CodedColumn(*numbered(column))


class _HeldRows:
    """Rows of one kind in memory."""

    def __init__(self, kind: RowKind) -> None:
        self._kind = kind
        self._batches: list[pa.RecordBatch] = []
        self.bytes = 0
        self._next = _UNITED_BYTES

    def add(self, rows: pa.RecordBatch) -> None:
        """Take in rows."""
        if len(rows):
            self._batches.append(rows)
            self.bytes += rows.nbytes
            if self.bytes > self._next:
                self._put(self.united())
                self._next = max(_UNITED_BYTES, 2 * self.bytes)

    @property
    def count(self) -> int:
        """How many rows are held."""
        return sum(map(len, self._batches))

    def united(self) -> pa.RecordBatch:
        """Give all rows, those that are alike as one."""
        if not self._batches:
            return pa.RecordBatch.from_pylist([], self._kind.schema)
        return self._kind.united(pa.concat_batches(self._batches))

    def _put(self, rows: pa.RecordBatch) -> None:
        self._batches, self.bytes = [rows], rows.nbytes


class ConnectionRows:
    """Rows of some kinds; each has the column `CONNECTION`.

    ``spills``: what is too much for memory goes to disk, and then it cannot be pickled any more.
    """

    def __init__(self, kinds: Mapping[str, RowKind], *, spills: bool = False) -> None:
        self._kinds = kinds
        self._rows = {name: _HeldRows(kind) for name, kind in kinds.items()}
        self._spilled = _SpillFile() if spills else None

    def add(self, name: str, rows: pa.RecordBatch) -> None:
        """Take in rows of a kind."""
        self._rows[name].add(rows)
        if self._spilled is not None and sum(one.bytes for one in self._rows.values()) > HELD_BYTES:
            self._spill(self._spilled)

    def count(self, name: str) -> int:
        """How many rows of a kind there are at most: those that are alike may still be several."""
        spilled = 0 if self._spilled is None else self._spilled.counts[name]
        return spilled + self._rows[name].count

    def merge(self, other: ConnectionRows) -> None:
        """Take in what was told elsewhere, and is in memory there."""
        for name, rows in other._rows.items():
            self.add(name, rows.united())

    def parts(self) -> Iterator[dict[str, pa.RecordBatch]]:
        """Give all rows by their kind, those of one connection together in one part."""
        if self._spilled is None or not self._spilled.is_used:
            yield {name: rows.united() for name, rows in self._rows.items()}
            return
        self._spill(self._spilled)
        for bucket in range(BUCKETS):
            rows = {name: _HeldRows(kind) for name, kind in self._kinds.items()}
            for name, batch in self._spilled.read(bucket):
                rows[name].add(batch)
            yield {name: one.united() for name, one in rows.items()}

    def _spill(self, to: _SpillFile) -> None:
        for name, rows in self._rows.items():
            to.write(name, rows.united())
            self._rows[name] = _HeldRows(self._kinds[name])


class _SpillFile:
    """Rows in a file that nobody else can open, and that is gone with the process."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        # By bucket: of which kind they are, and where.
        self._places: list[list[tuple[str, int, int]]] = [[] for _ in range(BUCKETS)]
        self.counts = Counter[str]()
        """How many rows of each kind."""

    @property
    def is_used(self) -> bool:
        """Whether there is anything in it."""
        return self._file is not None

    def write(self, name: str, rows: pa.RecordBatch) -> None:
        """Write rows behind the others."""
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
        """Give the rows of a bucket."""
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
    """Return what was sent with the client and the software of each row's connection.

    ``rows`` have the columns of ``kind``, those of `AUDITED` for what was sent. A client id with
    nothing but opening requests becomes that of the connection's owner. A row without software
    gets the software that the connection names, if it names one.
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
    """Return the place of one row for each connection: one of the client that it counts for.

    That client sends most requests that open no connection, then has a name, then sends most, then
    is first in the alphabet. Of its software it is that of most requests.
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
    """The client ids of rows as numbers, and of each row which one owns its connection.

    ``is_opening``: the row's client id has only opening requests on its connection.
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
    """The software of rows as numbers; ``first`` has a row of each."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        groups = RowGroups(*(coded_only(rows[name]) for name in SOFTWARE))
        self.codes: Numbers = groups.of
        self.first: Numbers = groups.first
        self.is_named: Numbers = np.asarray(rows[SOFTWARE[0]].is_valid())

    def named_alone(self, connections: Numbers) -> Numbers:
        """Return of each row the one software that its connection names, else its own."""
        told = np.unique(np.stack([connections, self.codes])[:, self.is_named], axis=1)
        where, count = np.unique(told[0], return_counts=True)
        alone = np.full(int(connections.max()) + 1, -1)
        alone[where[count == 1]] = told[1][np.isin(told[0], where[count == 1])]
        found = alone[connections]
        return np.where(found < 0, self.codes, found)


def _sums(groups: RowGroups, numbers: Numbers) -> Numbers:
    found = np.zeros(len(groups.first), np.int64)
    np.add.at(found, groups.of, numbers)
    return found


def _ranks(texts: pa.Array) -> Numbers:
    """Return the place of each text in the alphabet, by its bytes; null comes last."""
    told = coded_only(texts)
    ranks = np.empty(len(told.values), np.int64)
    ranks[pc.array_sort_indices(told.values).to_numpy()] = np.arange(len(told.values))
    return ranks[told.codes]


def _first_of_each(ordered: Numbers, connections: Numbers) -> Numbers:
    """Return the first row of each connection, of rows in the order of their connections."""
    _, first = np.unique(connections[ordered], return_index=True)
    return ordered[first]
