"""The rows on which an audit is based, and the selection of clients if there are too many.

Clients choose their own names, and anybody can write a request log, so each line may name a new
client. The evidence about a client takes a hundred times as much memory as is needed to choose
clients. All clients are therefore first counted by hashes, and evidence is kept only for the chosen
clients. Further clients are only counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.logs.request_log.requests import NOWHERE
from flexwire.measures.cluster import CONFIGURING, DESCRIBED_MESSAGE, cluster_rows
from flexwire.measures.counters import hashes_and_texts
from flexwire.measures.evidence import (
    MECHANISMS_MESSAGE,
    OFFERS_MESSAGE,
    PORT,
    REPLICAS_MESSAGE,
    SOFTWARE,
)
from flexwire.measures.groups import CodedColumn, RowGroups, coded, coded_steps
from flexwire.measures.ownership import CONNECTION, RowKind
from flexwire.tables.frames import CLIENT_COLUMNS, ends_of
from flexwire.tables.keys import ANALYSIS
from flexwire.tables.request_logs import LOGGED, LoggedIds
from flexwire.tables.row_filter import FRAMES
from flexwire.tables.schema import CONNECTIONS_TABLE
from flexwire.tables.spec_places import KINDS, entity_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.measures.groups import Numbers


SENT, STATED, KAFKA, OF_LOG = "sent", "stated", "kafka", "of log"
REPLICA, MECHANISM, CONFIGURATION, *_ = WHAT = ("replica", "mechanism", "configuration", *KINDS)
"""The values of the column ``what`` in `STATED`: the kinds of facts that requests state about
clients.

The fact that a client is a replica has no name.
"""
_TEXT = pa.string()
LOGGED_SUMS: Final = {
    "first_us": np.minimum,
    "last_us": np.maximum,
    "requests": np.add,
    "responses": np.add,
    "first_at": np.minimum,
    "last_at": np.maximum,
}
AUDITED: Final = {
    SENT: RowKind(
        pa.schema(
            [
                *((name, _TEXT) for name in (CONNECTION, "client_id", *SOFTWARE)),
                *((name, pa.int32()) for name in ("api_key", "api_version")),
            ]
        ),
        {"requests": np.add, "first_us": np.minimum, "last_us": np.maximum, "answers": np.add},
    ),
    STATED: RowKind(pa.schema([(CONNECTION, _TEXT), ("what", pa.int8()), ("name", _TEXT)])),
    KAFKA: RowKind(
        pa.schema(
            [
                *((name, _TEXT) for name in (CONNECTION, "address", "broker")),
                *((name, pa.bool_()) for name in ("from_start", "is_closed_by_broker")),
                ("principal", _TEXT),
            ]
        )
    ),
    OF_LOG: RowKind(
        pa.schema([field for field in LOGGED if field.name not in LOGGED_SUMS]),
        LOGGED_SUMS,
    ),
}
"""The rows on which an audit is based: requests, the facts in them, and connections.

Request logs describe each connection in several parts, which `logged_connections` joins.
"""

CONNECTIONS: Final = "connections"
"""The path of the table of connections."""
NAMES: Final = "names"
"""Rows that are in no table: a connection, with the ``kind`` and the text of each ``name`` in its
requests."""
LOGGED_EVIDENCE: Final = "a broker's log says so"
"""The ``evidence`` of a connection in a request log."""
_IDS: Final = ("client_id", "client_instance_id")
LOGGED_TEXTS: Final = (
    *("client", "broker", "principal", "listener", "security_protocol", "closed_by"),
    *(name for name in CLIENT_COLUMNS if name not in _IDS),
)
"""The facts about a connection in a request log. For each fact, the greatest text counts."""
COLUMNS: Final = {
    FRAMES: (*AUDITED[SENT].keys.names, "direction", "time", "answered"),
    CONNECTIONS: (
        *(CONNECTION, "client", "broker", "seen_from_start", "closed_by", "is_kafka"),
        "principal",
    ),
}
"""The columns to read from each table. Older tables of connections lack the principal."""
EVIDENT: Final[dict[str, tuple[str, ...]]] = {
    REPLICAS_MESSAGE: ("replica_id", "replica_state"),
    **dict.fromkeys((OFFERS_MESSAGE, MECHANISMS_MESSAGE, DESCRIBED_MESSAGE, *CONFIGURING), ()),
}
"""The messages that contain facts other than names, and the body fields that contain these facts
(empty for all fields).
"""


def by_analysis(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in which connection names are unique, even if several analyses share a table.

    In each analysis, connections are named after their endpoints, so different analyses can use the
    same names.
    """
    if ANALYSIS not in rows.schema.names:
        return rows
    names = pc.binary_join_element_wise(rows[CONNECTION], rows[ANALYSIS].cast(_TEXT), "\n")
    return rows.set_column(rows.schema.get_field_index(CONNECTION), CONNECTION, names)


def sent_rows(frames: pa.RecordBatch) -> pa.RecordBatch:
    """Return the requests in rows of the table of frames."""
    kind = AUDITED[SENT]
    is_said = pc.and_(pc.equal(frames["direction"], "request"), frames["api_key"].is_valid())
    said = frames.select([*kind.keys.names, "time", "answered"]).filter(is_said)
    time = said["time"].cast(pa.int64())
    computed = {
        "requests": pa.array(np.ones(len(said), np.int64)),
        "first_us": time,
        "last_us": time,
        "answers": pc.fill_null(said["answered"], fill_value=False).cast(pa.int64()),
    }
    columns = [computed[name] if name in computed else said[name] for name in kind.schema.names]
    return kind.united(pa.RecordBatch.from_arrays(columns, schema=kind.schema))


def kafka_rows(connections: pa.RecordBatch) -> pa.RecordBatch:
    """Return the Kafka connections in rows of the table of connections."""
    kafka = connections.filter(connections["is_kafka"])
    is_closed = pc.fill_null(pc.equal(kafka["closed_by"], "broker"), fill_value=False)
    columns = [
        kafka[CONNECTION],
        pc.replace_substring_regex(kafka["client"], PORT, ""),
        kafka["broker"],
        kafka["seen_from_start"],
        is_closed,
        kafka["principal"],
    ]
    return pa.RecordBatch.from_arrays(columns, schema=AUDITED[KAFKA].schema)


def logged_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the facts about connections in request logs, combining equal rows."""
    kind = AUDITED[OF_LOG]
    return kind.united(rows.select(kind.schema.names))


def logged_connections(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of the table of connections, built from the partial facts in request logs.

    A connection is assigned the first client id and the first client instance id in its lines, and
    the greatest of every other text. If a broker has closed a connection, the server.log does not
    contain the principal, but the request log does. Lines that were cut off before the connection's
    name share a row, which has no instance.
    """
    how = {"first_us": "min", "last_us": "max", "requests": "sum", "responses": "sum"}
    asked = [*((name, "max") for name in LOGGED_TEXTS), *((name, "first") for name in _IDS)]
    grouped = _by_connection(rows).aggregate([*asked, *how.items()])
    grouped = grouped.combine_chunks().sort_by(CONNECTION)
    count = len(grouped)
    whole = grouped.to_batches()[0] if count else pa.RecordBatch.from_pylist([], grouped.schema)
    columns_by_name = {name: whole[f"{name}_{way}"] for name, way in asked}
    is_nowhere = pc.equal(whole[CONNECTION], NOWHERE.name)
    instances = columns_by_name["client_instance_id"]
    no, yes = (pa.repeat(pa.scalar(flag), count) for flag in (False, True))
    moment = CONNECTIONS_TABLE.field("first_time").type
    columns_by_name |= {
        CONNECTION: whole[CONNECTION],
        "client_instance_id": pc.if_else(is_nowhere, pa.scalar(None, _TEXT), instances),
        "first_time": whole["first_us_min"].cast(moment),
        "last_time": whole["last_us_max"].cast(moment),
        "seen_from_start": no,
        "reset": no,
        "request_frames": whole["requests_sum"],
        "response_frames": whole["responses_sum"],
        "is_kafka": yes,
        "reads_as_kafka": yes,
        "evidence": pa.repeat(LOGGED_EVIDENCE, count),
    }
    columns = [
        columns_by_name[field.name]
        if field.name in columns_by_name
        else pa.nulls(count, field.type)
        for field in CONNECTIONS_TABLE
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CONNECTIONS_TABLE)


def _by_connection(rows: pa.RecordBatch) -> pa.TableGroupBy:
    """Return facts from request logs by connection, starting with those from the first lines."""
    ordered = pa.Table.from_batches([rows]).sort_by("first_at")
    has_id, never = ordered["client_id"].is_valid(), pa.scalar(None, pa.int64())
    client_at = pc.if_else(has_id, ordered["first_at"], never)
    lacking_at = pc.if_else(has_id, never, ordered["last_at"])
    ordered = ordered.append_column("client_at", client_at).append_column("lacking_at", lacking_at)
    return ordered.group_by(CONNECTION, use_threads=False)


def ids_of_lines_without(rows: pa.RecordBatch) -> dict[str, LoggedIds]:
    """Return, by connection, the client's ids that some of the connection's lines lack.

    ``rows`` contains partial facts. The ids are in the table of connections. A line before the
    first client id of its connection is assigned no client id. A line that was cut off before the
    connection's name belongs to no connection.
    """
    only_null = pc.CountOptions(mode="only_null")
    grouped = _by_connection(rows).aggregate(
        [
            *((name, "first") for name in _IDS),
            ("client_at", "min"),
            ("lacking_at", "max"),
            ("client_instance_id", "count", only_null),
        ]
    )
    is_lacked = pc.or_(
        pc.fill_null(pc.greater(grouped["lacking_at_max"], grouped["client_at_min"]), False),
        pc.and_(
            grouped["client_instance_id_first"].is_valid(),
            pc.greater(grouped["client_instance_id_count"], 0),
        ),
    )
    lacking = grouped.filter(pc.and_(pc.not_equal(grouped[CONNECTION], NOWHERE.name), is_lacked))
    texts = [lacking[f"{name}_first"].to_pylist() for name in _IDS]
    first = pc.fill_null(lacking["client_at_min"], -1).to_pylist()
    return dict(zip(lacking[CONNECTION].to_pylist(), map(LoggedIds, *texts, first), strict=True))


def stated_rows(message: str, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the facts about clients in requests, from rows of a message's table."""
    body = rows["body"]
    if message == MECHANISMS_MESSAGE:
        yield from _stated(rows, MECHANISM, pc.struct_field(body, "mechanism"))
    elif message == REPLICAS_MESSAGE:
        replicas = replica_rows(rows)
        yield from _stated(replicas, REPLICA, pa.nulls(len(replicas), _TEXT))
    if message in CONFIGURING:
        sets = cluster_rows(message, rows)
        yield from _stated(sets, CONFIGURATION, sets["name"])
    for path, kind in entity_paths(message):
        values = _at(body, path)
        if values is not None:
            names, of = values
            yield from _stated(
                rows if of is None else rows.select([CONNECTION]).take(of), kind, names
            )


def named_rows(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the names in requests, from rows of `NAMES`."""
    for kind in KINDS:
        some = rows.filter(pc.equal(rows["kind"], kind))
        yield from _stated(some, kind, some["name"])


def replica_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the replica fetches, from rows of the table of `REPLICAS_MESSAGE`."""
    older, newer = (pc.struct_field(rows["body"], path) for path in _REPLICAS)
    is_replica = pc.fill_null(pc.greater_equal(pc.max_element_wise(older, newer), 0), False)
    return rows.filter(is_replica)


_REPLICAS = ("replica_id", ["replica_state", "replica_id"])


def _at(column: pa.Array, path: tuple[str, ...]) -> tuple[pa.Array, pa.Array | None] | None:
    """Return the values at a path, and the row of each value (None if each has its own row).

    The result is None if there is no such column, because some versions of the message use another
    name.
    """
    of = None
    for name in path:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            return None
        column = pc.struct_field(column, name)
        if pa.types.is_list(column.type):
            parents = pc.list_parent_indices(column)
            of = parents if of is None else of.take(parents)
            column = pc.list_flatten(column)
    return column, of


def _stated(rows: pa.RecordBatch, what: str, names: pa.Array) -> Iterator[pa.RecordBatch]:
    if what != REPLICA and names.null_count:
        is_named = names.is_valid()
        rows, names = rows.filter(is_named), names.filter(is_named)
    if len(names):
        kind = AUDITED[STATED]
        whats = pa.array(np.full(len(names), WHAT.index(what), np.int8))
        columns = [rows[CONNECTION], whats, names]
        yield kind.united(pa.RecordBatch.from_arrays(columns, schema=kind.schema))


def offered(rows: pa.RecordBatch) -> Iterator[tuple[str, int, int, int]]:
    """Yield the versions that brokers offer in ApiVersions: broker, API, lowest, highest."""
    # If a broker cannot read the requested version, its response lists only ApiVersions (KIP-511).
    is_answered = pc.fill_null(pc.equal(pc.struct_field(rows["body"], "error_code"), 0), False)
    responses = rows.filter(is_answered)
    each = pc.struct_field(responses["body"], "api_keys")
    apis = pc.list_flatten(each)
    if not len(apis):
        return
    connections = coded(responses[CONNECTION])
    brokers = [ends_of(connection)[1] for connection in connections.values]
    numbers = {broker: number for number, broker in enumerate(dict.fromkeys(brokers))}
    # Each response offers about sixty APIs, so the broker is looked up before these are counted.
    of_response = np.array([numbers[broker] for broker in brokers])[connections.codes]
    # A value is null if the broker left it out of its request log.
    offers = pa.RecordBatch.from_arrays(
        [
            pc.list_parent_indices(each),
            *(pc.struct_field(apis, name) for name in ("api_key", "min_version", "max_version")),
        ],
        ["row", "api_key", "lowest", "highest"],
    ).drop_null()
    rows_of, keys, each_lowest, each_highest = (column.to_numpy() for column in offers.columns)
    of_api = of_response[rows_of]
    groups = RowGroups(CodedColumn(of_api, [*numbers]), coded_steps(keys.astype(np.int64), 1))
    lowest, highest = each_lowest[groups.first], each_highest[groups.first]
    # Adding the same value twice does not change either sum.
    np.maximum.at(lowest, groups.of, each_lowest)
    np.minimum.at(highest, groups.of, each_highest)
    for (broker, api_key), *versions in zip(
        groups.values(), lowest.tolist(), highest.tolist(), strict=True
    ):
        yield broker, api_key, *versions


MOST_CLIENTS: Final = 50_000
"""The maximum number of clients that are judged."""
MOST_USES: Final = 300_000
"""The maximum total number of version uses with different evidence, over all judged clients.
"""
MOST_USES_OF_ONE: Final = 20_000
"""A client with more uses than this is not judged. An honest client has fewer than a hundredth as
many.
"""

# This number combines the hashes of several columns. Any odd number is suitable.
_FOLD: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)


class ChosenClients(NamedTuple):
    """The hashes of the judged clients in ascending order, and the numbers for omitted clients."""

    clients: Numbers
    left_out: int
    requests: int


def hashes(columns: Iterable[pa.Array], rows: int) -> Numbers:
    """Return a hash of each row's values in these columns. Null counts as a value."""
    codes = np.zeros(rows, np.uint64)
    for column in columns:
        if pa.types.is_string(column.type):
            each, _ = hashes_and_texts(pc.fill_null(column, "").cast(pa.binary()))
        else:
            each = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
            each = each.astype(np.int64).view(np.uint64)
        is_null = np.asarray(column.is_null()).astype(np.uint64)
        codes = (codes ^ each) * _FOLD + is_null
        codes ^= codes >> _SHIFT
    return codes


class Candidates:
    """All clients, with the numbers of their requests and of their different uses."""

    def __init__(self) -> None:
        self._clients = _Counts()
        self._uses = _Counts()

    def add(self, clients: Numbers, uses: Numbers, requests: Numbers) -> None:
        """Add rows: the hash of the client, the hash of its use, and the number of requests."""
        self._clients.add(clients, requests)
        self._uses.add(clients * _FOLD + uses, np.zeros(len(uses), np.int64), clients)

    def chosen(self) -> ChosenClients | None:
        """Return the clients to judge, or None if all are judged."""
        every, requests = self._clients.keys, self._clients.sums
        # Every use belongs to a client that is present.
        place = np.searchsorted(every, self._uses.others)
        uses = np.bincount(place, minlength=len(every))
        fits = uses <= MOST_USES_OF_ONE
        if len(every) <= MOST_CLIENTS and uses.sum() <= MOST_USES and fits.all():
            return None
        order = np.lexsort((every, -requests))
        order = order[fits[order]]
        order = order[: np.searchsorted(np.cumsum(uses[order]), MOST_USES, "right")]
        first_clients = order[:MOST_CLIENTS]
        left_out = int(requests.sum() - requests[first_clients].sum())
        return ChosenClients(
            np.sort(every[first_clients]), len(every) - len(first_clients), left_out
        )


class _Counts:
    """The sum of numbers for each key, and another number for each key."""

    def __init__(self) -> None:
        self.keys = np.zeros(0, np.uint64)
        self.sums = np.zeros(0, np.int64)
        self.others = np.zeros(0, np.uint64)

    def add(self, keys: Numbers, numbers: Numbers, others: Numbers | None = None) -> None:
        """Add rows."""
        every = np.concatenate([self.keys, keys])
        counts = np.concatenate([self.sums, numbers])
        other_keys = np.concatenate([self.others, keys if others is None else others])
        self.keys, first, of = np.unique(every, return_index=True, return_inverse=True)
        self.sums = np.zeros(len(self.keys), np.int64)
        np.add.at(self.sums, of, counts)
        self.others = other_keys[first]
