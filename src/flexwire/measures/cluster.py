"""The facts about a cluster in messages: its features, and configurations that releases removed.

`cluster_rows` builds rows from a message's table. Tasks add these rows up, and queries over
finished tables use the same rows, so both results agree. `ClusterSums` adds rows up in limited
memory: it keeps `SHOWN` names for each configuration that any release has removed
(`configurations.removed_configurations`), and the features of a limited number of brokers.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.measures.counters import DistinctCounter, hash_of
from flexwire.measures.evidence import OFFERS_MESSAGE, SHOWN, ClusterEvidence
from flexwire.protocol.audit import NameSample
from flexwire.protocol.configurations import (
    CONFIGURED_KINDS,
    RESOURCE_TYPES,
    removed_configurations,
)
from flexwire.schema.catalog import catalog
from flexwire.tables.frames import ends_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexwire.protocol.configurations import ConfiguredKind

CREATING: Final = "CreateTopicsRequest"
ALTERING: Final = ("AlterConfigsRequest", "IncrementalAlterConfigsRequest")
CONFIGURING: Final = (CREATING, *ALTERING)
"""The requests that set configurations."""
DESCRIBED_MESSAGE: Final = "DescribeConfigsResponse"
CLUSTER_MESSAGES: Final = (DESCRIBED_MESSAGE, OFFERS_MESSAGE)
"""The responses that describe a cluster."""

FEATURE, CONFIGURED, DESCRIBED, SETS = "feature", "configured", "described", "sets"
"""The kinds of rows: see `CLUSTER_ROWS`."""
_TEXT: Final = pa.string()
CLUSTER_ROWS: Final = pa.schema(
    [
        ("what", _TEXT),
        # For `SETS`, the connection on which the request was sent.
        ("connection", _TEXT),
        ("kind", _TEXT),
        # The configuration or feature. For `SETS`, the name is in the form that
        # `evidence.configured_of` reads. The name is null if a broker has no feature.
        ("name", _TEXT),
        # The topic or broker to which the row belongs.
        ("resource", _TEXT),
        ("epoch", pa.int64()),
        ("level", pa.int64()),
    ]
)
"""Rows in which each fact occurs once."""
# The enumerations come from Kafka's Java code; no spec contains them. Deleting a removed
# configuration solves the problem, so a deletion does not count.
_DELETE: Final = 1
# The source of a value. A topic's value comes from the topic itself. A broker's value comes from
# the broker, from all brokers, or from its file.
_OWN_SOURCES: Final[dict[ConfiguredKind, tuple[int, ...]]] = {"topic": (1,), "broker": (2, 3, 4)}
_NUMBERS: Final = {kind: number for number, kind in RESOURCE_TYPES.items()}
_MOST_BROKERS: Final = 10_000
_MOST_COUNTED: Final = 10_000


def cluster_rows(message: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the facts about a cluster in the rows of a message's table, each only once."""
    if message == OFFERS_MESSAGE:
        tables = _features(rows)
    elif message == DESCRIBED_MESSAGE:
        tables = [table for kind in CONFIGURED_KINDS for table in _described(rows, kind)]
    elif message in CONFIGURING:
        tables = _sets(message, rows)
    else:
        tables = []
    return _united(tables)


def _rows(count: int, what: str, **columns: Any) -> pa.Table:
    arrays = [
        pa.repeat(pa.scalar(what, _TEXT), count)
        if field.name == "what"
        else columns.get(field.name, pa.nulls(count, field.type))
        for field in CLUSTER_ROWS
    ]
    cast = [array.cast(field.type) for array, field in zip(arrays, CLUSTER_ROWS, strict=True)]
    return pa.Table.from_arrays(cast, schema=CLUSTER_ROWS)


def _united(tables: list[pa.Table]) -> pa.RecordBatch:
    if not any(map(len, tables)):
        return pa.RecordBatch.from_pylist([], CLUSTER_ROWS)
    every = pa.concat_tables(tables).group_by(CLUSTER_ROWS.names).aggregate([]).combine_chunks()
    (batch,) = every.select(CLUSTER_ROWS.names).cast(CLUSTER_ROWS).to_batches()
    return batch


def _is(values: pa.Array, number: int) -> pa.Array:
    return pc.fill_null(pc.equal(values, number), fill_value=False)


def _features(rows: pa.RecordBatch) -> list[pa.Table]:
    body = rows["body"]
    epochs = pc.struct_field(body, "finalized_features_epoch")
    # A broker that does not know its cluster yet sends a negative epoch.
    is_known = pc.fill_null(pc.greater_equal(epochs, 0), fill_value=False)
    is_answered = pc.and_(_is(pc.struct_field(body, "error_code"), 0), is_known)
    body, epochs = body.filter(is_answered), epochs.filter(is_answered)
    connections = rows["connection"].filter(is_answered).dictionary_encode()
    ends = [ends_of(connection)[1] for connection in connections.dictionary.to_pylist()]
    brokers = pa.array(ends, _TEXT).take(connections.indices)
    each = pc.struct_field(body, "finalized_features")
    levels, of = pc.list_flatten(each), pc.list_parent_indices(each)
    columns = {
        "name": pc.struct_field(levels, "name"),
        "level": pc.struct_field(levels, "max_version_level"),
        "resource": brokers.take(of),
        "epoch": epochs.take(of),
    }
    none = _rows(len(body), FEATURE, resource=brokers, epoch=epochs)
    return [none, _rows(len(levels), FEATURE, **columns)]


def _described(rows: pa.RecordBatch, kind: ConfiguredKind) -> Iterator[pa.Table]:
    # The first version does not show who set a configuration.
    is_answered = pc.fill_null(pc.greater_equal(rows["body_version"], 1), fill_value=False)
    results = pc.list_flatten(pc.struct_field(rows["body"].filter(is_answered), "results"))
    is_whole = _is(pc.struct_field(results, "error_code"), 0)
    is_kind = _is(pc.struct_field(results, "resource_type"), _NUMBERS[kind])
    results = results.filter(pc.and_(is_whole, is_kind))
    resources = pc.struct_field(results, "resource_name")
    kinds = pa.repeat(pa.scalar(kind, _TEXT), len(results))
    yield _rows(len(results), DESCRIBED, kind=kinds, resource=resources)
    each = pc.struct_field(results, "configs")
    configs, of = pc.list_flatten(each), pc.list_parent_indices(each)
    names = pc.struct_field(configs, "name")
    sources = pc.struct_field(configs, "config_source")
    is_own = pc.is_in(sources, value_set=pa.array(_OWN_SOURCES[kind], sources.type))
    is_gone = pc.and_(is_own, pc.is_in(names, value_set=_gone_names(kind)))
    names, owners = names.filter(is_gone), resources.take(of.filter(is_gone))
    kinds = pa.repeat(pa.scalar(kind, _TEXT), len(names))
    yield _rows(len(names), CONFIGURED, kind=kinds, name=names, resource=owners)


def _sets(message: str, rows: pa.RecordBatch) -> list[pa.Table]:
    body = rows["body"]
    each = pc.struct_field(body, "topics" if message == CREATING else "resources")
    owners, of_row = pc.list_flatten(each), pc.list_parent_indices(each)
    lists = pc.struct_field(owners, "configs")
    configs, of_owner = pc.list_flatten(lists), pc.list_parent_indices(lists)
    if not len(configs):
        return []
    names = pc.struct_field(configs, "name")
    connections = rows["connection"].take(of_row.take(of_owner))
    is_set = pa.repeat(pa.scalar(value=True), len(configs))
    if configs.type.get_field_index("config_operation") >= 0:
        is_set = pc.invert(_is(pc.struct_field(configs, "config_operation"), _DELETE))
    api_key = catalog().entry(message).api_key
    tables = []
    for kind in CONFIGURED_KINDS:
        is_gone = pc.and_(is_set, pc.is_in(names, value_set=_gone_names(kind)))
        if message == CREATING:
            is_kind = pa.repeat(pa.scalar(kind == "topic"), len(configs))
        else:
            is_kind = _is(pc.struct_field(owners, "resource_type").take(of_owner), _NUMBERS[kind])
        is_gone = pc.and_(is_gone, is_kind)
        set_names = names.filter(is_gone)
        prefix = pa.repeat(pa.scalar(f"{kind}:{api_key}:", _TEXT), len(set_names))
        tables.append(
            _rows(
                len(set_names),
                SETS,
                connection=connections.filter(is_gone),
                kind=pa.repeat(pa.scalar(kind, _TEXT), len(set_names)),
                name=pc.binary_join_element_wise(prefix, set_names, ""),
            )
        )
    return tables


@cache
def _gone_names(kind: ConfiguredKind) -> pa.Array:
    return pa.array(sorted(name for of, name in removed_configurations() if of == kind), _TEXT)


class _Names:
    """The first names in alphabetical order, and the number of names, estimated above 10,000."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._every = DistinctCounter()

    def add(self, names: Iterable[str]) -> None:
        some = {*names}
        self._first = sorted({*self._first, *some})[:SHOWN]
        codes = np.array([hash_of(name.encode()) for name in some], np.uint64)
        self._every.add(codes, _MOST_COUNTED)

    def merge(self, other: _Names) -> None:
        self._first = sorted({*self._first, *other._first})[:SHOWN]
        self._every.merge(other._every, _MOST_COUNTED)

    @property
    def named(self) -> NameSample:
        return NameSample(tuple(self._first), self._every.count)


class ClusterSums:
    """Partial sums of `CLUSTER_ROWS`. Adding a row twice has no effect."""

    def __init__(self) -> None:
        # For each broker: the highest epoch that it sent, and its levels at that epoch.
        self._features: dict[str, tuple[int, dict[str, int]]] = {}
        self._configured: dict[tuple[ConfiguredKind, str], _Names] = {}
        self._described: dict[ConfiguredKind, _Names] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows. Rows of `SETS` are about clients and are ignored here."""
        every = pa.Table.from_batches([rows])
        for row in every.filter(pc.equal(rows["what"], FEATURE)).to_pylist():
            levels = {} if row["name"] is None else {row["name"]: row["level"]}
            self._feature(row["resource"], row["epoch"], levels)
        self._prune(2 * _MOST_BROKERS)
        for kind in CONFIGURED_KINDS:
            own = every.filter(pc.equal(rows["kind"], kind))
            named = own.filter(pc.equal(own["what"], DESCRIBED))["resource"]
            if len(named):
                self._described.setdefault(kind, _Names()).add(_texts(named))
            gone = own.filter(pc.equal(own["what"], CONFIGURED)).group_by(["name"])
            for row in gone.aggregate([("resource", "distinct")]).to_pylist():
                names = self._configured.setdefault((kind, row["name"]), _Names())
                names.add(name or "" for name in row["resource_distinct"])

    def _feature(self, broker: str, epoch: int, levels: Mapping[str, int]) -> None:
        epoch_seen, having = self._features.get(broker, (epoch, {}))
        if epoch >= epoch_seen:
            self._features[broker] = epoch, {**(having if epoch == epoch_seen else {}), **levels}

    def _prune(self, most: int) -> None:
        """Keep only the first ``most`` brokers in alphabetical order."""
        if len(self._features) > most:
            for broker in sorted(self._features)[_MOST_BROKERS:]:
                del self._features[broker]

    def merge(self, other: ClusterSums) -> None:
        """Add the sums of another task."""
        for broker, (epoch, levels) in other._features.items():
            self._feature(broker, epoch, levels)
        self._prune(2 * _MOST_BROKERS)
        for key, names in other._configured.items():
            self._configured.setdefault(key, _Names()).merge(names)
        for kind, names in other._described.items():
            self._described.setdefault(kind, _Names()).merge(names)

    def evidence(self) -> ClusterEvidence:
        """Return the facts. Their order does not depend on the order of the rows."""
        self._prune(_MOST_BROKERS)
        return ClusterEvidence(
            {
                broker: dict(sorted(levels.items()))
                for broker, (_, levels) in sorted(self._features.items())
            },
            {key: names.named for key, names in sorted(self._configured.items())},
            {kind: names.named.count for kind, names in sorted(self._described.items())},
        )


def _texts(names: pa.ChunkedArray) -> Iterator[str]:
    return (name or "" for name in names.unique().to_pylist())
