"""What rows of tables say of clients and connections, and which clients of very many are judged.

Clients name themselves, and a request log is read from whoever wrote it: each line may be another
client. What an audit holds of one is a hundred times what is needed to choose. So all are counted
first, by hashes, and evidence is gathered of those that were chosen. The others are counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
from flexwire.tables.frames import ends_of
from flexwire.tables.keys import ANALYSIS
from flexwire.tables.request_logs import LOGGED
from flexwire.tables.row_filter import FRAMES
from flexwire.tables.schema import CONNECTIONS_TABLE
from flexwire.tables.spec_places import KINDS, entity_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.measures.groups import Numbers


SENT, TOLD, KAFKA, OF_LOG = "sent", "told", "kafka", "of log"
REPLICA, MECHANISM, CONFIGURATION, *_ = WHAT = ("replica", "mechanism", "configuration", *KINDS)
"""What requests tell of the client that sends on their connection: the column ``what`` of `TOLD`.

A replica has no name.
"""
_TEXT = pa.string()
LOGGED_SUMS: Final = {
    "first_us": np.minimum,
    "last_us": np.maximum,
    "requests": np.add,
    "responses": np.add,
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
    TOLD: RowKind(pa.schema([(CONNECTION, _TEXT), ("what", pa.int8()), ("name", _TEXT)])),
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
        pa.schema([one for one in LOGGED if one.name not in LOGGED_SUMS]),
        LOGGED_SUMS,
    ),
}
"""The rows that an audit is made from: what was sent, what that told, and connections.

Those of request logs are told in parts, of which `logged_connections` makes whole ones.
"""

CONNECTIONS: Final = "connections"
"""The table of connections."""
NAMES: Final = "names"
"""What is no table: rows of a connection, with the ``kind`` and ``name`` of what requests named."""
COLUMNS: Final = {
    FRAMES: (*AUDITED[SENT].keys.names, "direction", "time", "answered"),
    CONNECTIONS: (
        *(CONNECTION, "client", "broker", "seen_from_start", "closed_by", "is_kafka"),
        "principal",
    ),
}
"""The columns that are read of a table; earlier tables of connections lack the principal."""
EVIDENT: Final[dict[str, tuple[str, ...]]] = {
    REPLICAS_MESSAGE: ("replica_id", "replica_state"),
    **dict.fromkeys((OFFERS_MESSAGE, MECHANISMS_MESSAGE, DESCRIBED_MESSAGE, *CONFIGURING), ()),
}
"""The messages that tell more than names, with the fields of the body that do, if not all."""


def by_analysis(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows whose connections are named apart, where a table has those of several analyses.

    Each analysis names connections by their ends, so names repeat from one to the next.
    """
    if ANALYSIS not in rows.schema.names:
        return rows
    names = pc.binary_join_element_wise(rows[CONNECTION], rows[ANALYSIS].cast(_TEXT), "\n")
    return rows.set_column(rows.schema.get_field_index(CONNECTION), CONNECTION, names)


def sent_rows(frames: pa.RecordBatch) -> pa.RecordBatch:
    """Give what was sent, of rows of the table of frames."""
    kind = AUDITED[SENT]
    is_said = pc.and_(pc.equal(frames["direction"], "request"), frames["api_key"].is_valid())
    said = frames.select([*kind.keys.names, "time", "answered"]).filter(is_said)
    time = said["time"].cast(pa.int64())
    told = {
        "requests": pa.array(np.ones(len(said), np.int64)),
        "first_us": time,
        "last_us": time,
        "answers": pc.fill_null(said["answered"], fill_value=False).cast(pa.int64()),
    }
    columns = [told[name] if name in told else said[name] for name in kind.schema.names]
    return kind.united(pa.RecordBatch.from_arrays(columns, schema=kind.schema))


def kafka_rows(connections: pa.RecordBatch) -> pa.RecordBatch:
    """Give the connections that are Kafka, of rows of their table."""
    known = connections.filter(connections["is_kafka"])
    is_closed = pc.fill_null(pc.equal(known["closed_by"], "broker"), fill_value=False)
    columns = [
        known[CONNECTION],
        pc.replace_substring_regex(known["client"], PORT, ""),
        known["broker"],
        known["seen_from_start"],
        is_closed,
        known["principal"],
    ]
    return pa.RecordBatch.from_arrays(columns, schema=AUDITED[KAFKA].schema)


def logged_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Give what lines of request logs say of connections, those that are alike as one."""
    kind = AUDITED[OF_LOG]
    return kind.united(rows.select(kind.schema.names))


def logged_connections(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Give the rows of the table of connections for what request logs said of them, in parts.

    A broker's own log knows no principal of a connection that it closed; its request log does.
    """
    texts = ("client", "broker", "principal", "listener", "security_protocol", "closed_by")
    how = {"first_us": "min", "last_us": "max", "requests": "sum", "responses": "sum"}
    asked = [*((name, "max") for name in texts), *how.items()]
    found = pa.Table.from_batches([rows]).group_by(CONNECTION).aggregate(asked)
    found = found.combine_chunks().sort_by(CONNECTION)
    count = len(found)
    whole = found.to_batches()[0] if count else pa.RecordBatch.from_pylist([], found.schema)
    told = {name: whole[f"{name}_max"] for name in texts}
    no, yes = (pa.repeat(pa.scalar(one), count) for one in (False, True))
    moment = CONNECTIONS_TABLE.field("first_time").type
    told |= {
        CONNECTION: whole[CONNECTION],
        "first_time": whole["first_us_min"].cast(moment),
        "last_time": whole["last_us_max"].cast(moment),
        "seen_from_start": no,
        "reset": no,
        "request_frames": whole["requests_sum"],
        "response_frames": whole["responses_sum"],
        "is_kafka": yes,
        "reads_as_kafka": yes,
        "evidence": pa.repeat("a broker's log says so", count),
    }
    columns = [
        told[one.name] if one.name in told else pa.nulls(count, one.type)
        for one in CONNECTIONS_TABLE
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CONNECTIONS_TABLE)


def told_rows(message: str, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Give what requests tell, of rows of their table."""
    body = rows["body"]
    if message == MECHANISMS_MESSAGE:
        yield from _told(rows, MECHANISM, pc.struct_field(body, "mechanism"))
    elif message == REPLICAS_MESSAGE:
        replicas = replica_rows(rows)
        yield from _told(replicas, REPLICA, pa.nulls(len(replicas), _TEXT))
    if message in CONFIGURING:
        sets = cluster_rows(message, rows)
        yield from _told(sets, CONFIGURATION, sets["name"])
    for path, kind in entity_paths(message):
        found = _at(body, path)
        if found is not None:
            names, of = found
            yield from _told(
                rows if of is None else rows.select([CONNECTION]).take(of), kind, names
            )


def named_rows(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Give what requests named, of rows of `NAMES`."""
    for kind in KINDS:
        some = rows.filter(pc.equal(rows["kind"], kind))
        yield from _told(some, kind, some["name"])


def replica_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Give the requests of replicas that fetch, of rows of the table of `REPLICAS_MESSAGE`."""
    older, newer = (pc.struct_field(rows["body"], path) for path in _REPLICAS)
    is_replica = pc.fill_null(pc.greater_equal(pc.max_element_wise(older, newer), 0), False)
    return rows.filter(is_replica)


_REPLICAS = ("replica_id", ["replica_state", "replica_id"])


def _at(column: pa.Array, path: tuple[str, ...]) -> tuple[pa.Array, pa.Array | None] | None:
    """Give the values at a path, and of each the row that it stands in, unless that is its own.

    None where no such column is: some versions call it otherwise.
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


def _told(rows: pa.RecordBatch, what: str, names: pa.Array) -> Iterator[pa.RecordBatch]:
    if what != REPLICA and names.null_count:
        is_named = names.is_valid()
        rows, names = rows.filter(is_named), names.filter(is_named)
    if len(names):
        kind = AUDITED[TOLD]
        told = pa.array(np.full(len(names), WHAT.index(what), np.int8))
        columns = [rows[CONNECTION], told, names]
        yield kind.united(pa.RecordBatch.from_arrays(columns, schema=kind.schema))


def offered(rows: pa.RecordBatch) -> Iterator[tuple[str, int, int, int]]:
    """Give what brokers offer, of rows of their ApiVersions responses: API, lowest, highest."""
    # An answer to a version that the broker does not know names ApiVersions alone (KIP-511).
    is_told = pc.fill_null(pc.equal(pc.struct_field(rows["body"], "error_code"), 0), False)
    told = rows.filter(is_told)
    each = pc.struct_field(told["body"], "api_keys")
    apis = pc.list_flatten(each)
    if not len(apis):
        return
    connections = coded(told[CONNECTION])
    brokers = [ends_of(one)[1] for one in connections.values]
    numbers = {broker: number for number, broker in enumerate(dict.fromkeys(brokers))}
    # Each response offers some sixty, so its broker is looked up before they are counted.
    of_response = np.array([numbers[one] for one in brokers])[connections.codes]
    # What a broker left out of its request log is null.
    offers = pa.RecordBatch.from_arrays(
        [
            pc.list_parent_indices(each),
            *(pc.struct_field(apis, name) for name in ("api_key", "min_version", "max_version")),
        ],
        ["row", "api_key", "lowest", "highest"],
    ).drop_null()
    rows_of, keys, each_lowest, each_highest = (one.to_numpy() for one in offers.columns)
    of_api = of_response[rows_of]
    groups = RowGroups(CodedColumn(of_api, [*numbers]), coded_steps(keys.astype(np.int64), 1))
    lowest, highest = each_lowest[groups.first], each_highest[groups.first]
    # What is taken in twice changes neither.
    np.maximum.at(lowest, groups.of, each_lowest)
    np.minimum.at(highest, groups.of, each_highest)
    for (broker, api_key), *versions in zip(
        groups.values(), lowest.tolist(), highest.tolist(), strict=True
    ):
        yield broker, api_key, *versions


MOST_CLIENTS: Final = 50_000
"""So many clients are judged."""
MOST_USES: Final = 300_000
"""So many different uses of versions they have, each with another evidence around it."""
MOST_USES_OF_ONE: Final = 20_000
"""One with more is not judged: no client has a hundredth of that."""

# Any odd number: hashes of several columns are one after it.
_FOLD: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)


class ChosenClients(NamedTuple):
    """The hashes of the clients that are judged, ascending, and what is left out."""

    clients: Numbers
    left_out: int
    requests: int


def hashes(columns: Iterable[pa.Array], rows: int) -> Numbers:
    """A hash of what each row has in these columns of texts and whole numbers; null is a value."""
    told = np.zeros(rows, np.uint64)
    for column in columns:
        if pa.types.is_string(column.type):
            each, _ = hashes_and_texts(pc.fill_null(column, "").cast(pa.binary()))
        else:
            each = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
            each = each.astype(np.int64).view(np.uint64)
        is_null = np.asarray(column.is_null()).astype(np.uint64)
        told = (told ^ each) * _FOLD + is_null
        told ^= told >> _SHIFT
    return told


class Candidates:
    """All clients, and how many requests and different uses each has."""

    def __init__(self) -> None:
        self._clients = _Counts()
        self._uses = _Counts()

    def add(self, clients: Numbers, uses: Numbers, requests: Numbers) -> None:
        """Take in rows: of which client, by its hash, which use of its own, and how many."""
        self._clients.add(clients, requests)
        self._uses.add(clients * _FOLD + uses, np.zeros(len(uses), np.int64), clients)

    def chosen(self) -> ChosenClients | None:
        """Those that are judged; None where all are."""
        every, requests = self._clients.keys, self._clients.sums
        # Each use is of a client that is there.
        place = np.searchsorted(every, self._uses.others)
        uses = np.bincount(place, minlength=len(every))
        fits = uses <= MOST_USES_OF_ONE
        if len(every) <= MOST_CLIENTS and uses.sum() <= MOST_USES and fits.all():
            return None
        order = np.lexsort((every, -requests))
        order = order[fits[order]]
        order = order[: np.searchsorted(np.cumsum(uses[order]), MOST_USES, "right")]
        kept = order[:MOST_CLIENTS]
        left_out = int(requests.sum() - requests[kept].sum())
        return ChosenClients(np.sort(every[kept]), len(every) - len(kept), left_out)


class _Counts:
    """The sum of numbers by key, and what else is known of a key."""

    def __init__(self) -> None:
        self.keys = np.zeros(0, np.uint64)
        self.sums = np.zeros(0, np.int64)
        self.others = np.zeros(0, np.uint64)

    def add(self, keys: Numbers, numbers: Numbers, others: Numbers | None = None) -> None:
        """Take in rows."""
        every = np.concatenate([self.keys, keys])
        counts = np.concatenate([self.sums, numbers])
        known = np.concatenate([self.others, keys if others is None else others])
        self.keys, first, of = np.unique(every, return_index=True, return_inverse=True)
        self.sums = np.zeros(len(self.keys), np.int64)
        np.add.at(self.sums, of, counts)
        self.others = known[first]
