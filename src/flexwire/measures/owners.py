"""Which client a connection belongs to, where requests on it name several.

Many clients send SASL's requests with another client id than the rest, or with none. They are one
client on one connection. So requests that only open a connection count for the client that sends
the rest, and each connection counts once: for the client that sends most on it.
`flexwire.spark.answers.evidence` asks the same of tables, with the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.measures.by_connection import CONNECTION, coded_only
from flexwire.measures.evidence import SOFTWARE
from flexwire.measures.groups import Coded, Groups
from flexwire.protocol.audit import OPENING_APIS

if TYPE_CHECKING:
    from flexwire.measures.by_connection import Kind

    Array = np.ndarray[Any, np.dtype[Any]]


def attributed(rows: pa.RecordBatch, kind: Kind) -> pa.RecordBatch:
    """Return what was sent with the client and the software of each row's connection.

    ``rows`` have the columns of ``kind``, those of `AUDITED` for what was sent. A client id with
    nothing but opening requests becomes that of the connection's owner. A row without software
    gets the software that the connection names, if it names one.
    """
    if not len(rows):
        return rows
    ids, software = _Ids(rows), _Software(rows)
    client_ids = np.where(ids.is_opening, ids.owners, ids.codes)
    named = np.where(software.is_named, software.codes, software.named_alone(ids.connections))
    if (client_ids == ids.codes).all() and (named == software.codes).all():
        return rows
    changed = {"client_id": ids.values.take(pa.array(client_ids))}
    changed |= {name: rows[name].take(pa.array(software.first[named])) for name in SOFTWARE}
    columns = [changed.get(name, rows[name]) for name in rows.schema.names]
    return kind.united(pa.RecordBatch.from_arrays(columns, schema=rows.schema))


def owning(rows: pa.RecordBatch) -> Array:
    """Return the place of one row for each connection: one of the client that it counts for.

    That client sends most requests that open no connection, then has a name, then sends most, then
    is first in the alphabet. Of its software it is that of most requests.
    """
    if not len(rows):
        return np.zeros(0, np.int64)
    ids, software = _Ids(rows), _Software(rows)
    groups = Groups(
        Coded(ids.connections, range(len(rows))),
        Coded(ids.codes, range(len(rows))),
        Coded(software.codes, range(len(rows))),
    )
    requests = _sums(groups, rows["requests"].to_numpy())
    is_owner = ids.codes[groups.first] == ids.owners[groups.first]
    first, requests = groups.first[is_owner], requests[is_owner]
    names = (_ranks(rows[name])[first] for name in reversed(SOFTWARE))
    order = np.lexsort((*names, -requests, ids.connections[first]))
    return _first_of_each(first[order], ids.connections)


class _Ids:
    """The client ids of rows as numbers, and of each row which one owns its connection.

    ``is_opening``: the row's client id has only opening requests on its connection.
    """

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.connections = coded_only(rows[CONNECTION]).codes
        client_id = coded_only(rows["client_id"])
        self.codes: Array = client_id.codes
        self.values: pa.Array = client_id.values
        requests = rows["requests"].to_numpy()
        opens = np.isin(rows["api_key"].to_numpy(), [*OPENING_APIS])
        groups = Groups(
            Coded(self.connections, range(len(rows))), Coded(self.codes, range(len(rows)))
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
        self.owners: Array = owners[self.connections]
        self.is_opening: Array = (further == 0)[groups.of]


class _Software:
    """The software of rows as numbers; ``first`` has a row of each."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        groups = Groups(*(coded_only(rows[name]) for name in SOFTWARE))
        self.codes: Array = groups.of
        self.first: Array = groups.first
        self.is_named: Array = np.asarray(rows[SOFTWARE[0]].is_valid())

    def named_alone(self, connections: Array) -> Array:
        """Return of each row the one software that its connection names, else its own."""
        told = np.unique(np.stack([connections, self.codes])[:, self.is_named], axis=1)
        where, count = np.unique(told[0], return_counts=True)
        alone = np.full(int(connections.max()) + 1, -1)
        alone[where[count == 1]] = told[1][np.isin(told[0], where[count == 1])]
        found = alone[connections]
        return np.where(found < 0, self.codes, found)


def _sums(groups: Groups, numbers: Array) -> Array:
    found = np.zeros(len(groups.first), np.int64)
    np.add.at(found, groups.of, numbers)
    return found


def _ranks(texts: pa.Array) -> Array:
    """Return the place of each text in the alphabet, by its bytes; null comes last."""
    told = coded_only(texts)
    ranks = np.empty(len(told.values), np.int64)
    ranks[pc.array_sort_indices(told.values).to_numpy()] = np.arange(len(told.values))
    return ranks[told.codes]


def _first_of_each(ordered: Array, connections: Array) -> Array:
    """Return the first row of each connection, of rows in the order of their connections."""
    _, first = np.unique(connections[ordered], return_index=True)
    return ordered[first]
