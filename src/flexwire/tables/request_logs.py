"""Convert lines of request logs to rows of all tables, as if their frames had been captured.

A line contains a request and, usually, its response. It contains neither the sizes of frames nor
the bytes of records, so ``size`` is null and the table ``records`` remains empty. A broker forwards
some client requests to the controller. Forwarded requests are rows in a separate table.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.pairing.rows import PAIRED
from flexwire.capture.pairing.state import FAILED
from flexwire.logs.request_log import LoggedRequest, RefusedRequest
from flexwire.protocol.apis import api_key_of, request_entries
from flexwire.protocol.headers import request_name
from flexwire.protocol.sasl import NEGOTIATES
from flexwire.schema.catalog import catalog, per_catalog
from flexwire.tables.frames import BODY_OUTCOMES, CLIENT_COLUMNS, PARTIES, frame_rows
from flexwire.tables.listeners import ListenerCounts
from flexwire.tables.message_schema import COPIED, table_schema
from flexwire.tables.request_log_bodies import body_rows
from flexwire.tables.request_log_text import body_of_text
from flexwire.tables.row_filter import FRAMES, MESSAGES
from flexwire.tables.schema import FORWARDED_TABLE, OUTCOMES
from flexwire.wire.varint import parse_uuid_text, uuid_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from flexwire.logs.request_log.lines import RequestLogFile

    Array = np.ndarray[Any, np.dtype[Any]]


FORWARDED: Final = "forwarded_requests"
HEADER_ONLY: Final = "header"
"""The outcome for a line that contains only the header."""

_REQUEST, _RESPONSE = "request", "response"
_NO_API: Final = "no Kafka release in the catalog has this api key"
# The low bits of a ``frame_index`` are the line's offset in its file; the other bits are the file's
# number.
_OFFSET_BITS: Final = 40
# The response to an unsupported version of ApiVersions is always in version 0 and contains the
# error UNSUPPORTED_VERSION (KIP-511).
_FALLBACK: Final = b'{"errorCode":35,'
_TEXT_FALLBACK: Final = b"{error_code=35,"

LOGGED: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("connection", "client", "broker")),
        *((name, pa.string()) for name in ("principal", "listener", "security_protocol")),
        *((name, pa.string()) for name in ("client_id", *CLIENT_COLUMNS)),
        ("closed_by", pa.string()),
        *((name, pa.int64()) for name in ("first_us", "last_us", "requests", "responses")),
        *((name, pa.int64()) for name in ("first_at", "last_at")),
    ]
)
"""The facts about connections in lines: one or more rows for each connection.

``first_at`` and ``last_at`` are the numbers of the first and the last of these lines.
"""
AFTER_ALL: Final = 1 << 62
"""The line number of a refused request in `LOGGED`, after all other lines of its connection."""


@dataclass(slots=True)
class RequestLogCounts:
    """The number of lines of each kind.

    ``listeners`` counts requests by listener and security protocol.
    """

    requests: int = 0
    forwarded: int = 0
    refused: int = 0
    cut: int = 0
    text: int = 0
    deprecated: int = 0
    left_out: int = 0
    listeners: ListenerCounts = field(default_factory=ListenerCounts)

    def merge(self, other: RequestLogCounts) -> None:
        """Add the counts of another task."""
        for name in ("requests", "forwarded", "refused", "cut", "text", "deprecated", "left_out"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.listeners.merge(other.listeners)


class FileItem(NamedTuple):
    """The content of a line, and the file that contains the line."""

    file: RequestLogFile
    item: LoggedRequest | RefusedRequest

    @property
    def number(self) -> int:
        """A number that no other line has. The number increases within a file."""
        return self.file.number << _OFFSET_BITS | max(0, self.item.offset)


class LoggedIds(NamedTuple):
    """The first client id and the first client instance id in the lines of a connection.

    ``client_at`` is the number of the line with the client id, or -1 if an earlier analysis has
    read this line.
    """

    client_id: str | None = None
    client_instance_id: str | None = None
    client_at: int = -1

    def client_id_at(self, number: int) -> str | None:
        """Return the client id for a line without one: the first client id in earlier lines."""
        return self.client_id if number > self.client_at else None


NO_IDS: Final = LoggedIds()


class RequestLogRows:
    """Build the rows for lines, batch by batch.

    A client may send its ids only once on a connection (KIP-1313). A line without a client id is
    assigned the first client id in earlier lines of the same connection, as in a capture. A line
    without a client instance id is assigned the first instance id in any line of the same
    connection. Both ids come from ``ids``.
    """

    def __init__(
        self, *, show_credentials: bool = False, ids: Mapping[str, LoggedIds] = MappingProxyType({})
    ) -> None:
        self._shows = show_credentials
        self._ids = ids
        self.counts = RequestLogCounts()

    def of(self, lines: Sequence[FileItem]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows of some lines, by table. The table of `LOGGED` rows is ""."""
        own: list[FileItem] = []
        forwarded: list[FileItem] = []
        refused: list[FileItem] = []
        for line in lines:
            if isinstance(line.item, RefusedRequest):
                refused.append(line)
            else:
                (forwarded if line.item.is_forwarded else own).append(line)
        for line in own:
            if isinstance(line.item, LoggedRequest):
                complete_request(line.item)
        self._tell(own, forwarded, refused)
        if own:
            batch = _RequestColumns(own, self._ids)
            for is_request in (True, False):
                yield from self._rows(batch, is_request=is_request)
            yield "", batch.connections()
        if forwarded:
            yield FORWARDED, _forwarded(forwarded)
        if refused:
            yield from _refused(refused, self._ids)

    def _tell(
        self, own: Sequence[FileItem], forwarded: Sequence[FileItem], refused: Sequence[FileItem]
    ) -> None:
        counts = self.counts
        counts.requests += len(own)
        counts.forwarded += len(forwarded)
        counts.refused += len(refused)
        for _, item in (*own, *forwarded):
            assert isinstance(item, LoggedRequest)  # noqa: S101 - `of` ensures this
            counts.cut += item.error is not None
            counts.text += item.is_text and item.request is None
            counts.deprecated += item.header.request_api_version_deprecated
        counts.listeners.add(
            (line.item.listener, line.item.security_protocol)
            for line in own
            if isinstance(line.item, LoggedRequest)
        )

    def _rows(
        self, lines: _RequestColumns, *, is_request: bool
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        rows = np.arange(len(lines)) if is_request else lines.answered
        facts = lines.facts(rows, is_request=is_request)
        bodies: list[tuple[Array, dict[str, pa.Array]]] = []
        for (name, version), places in lines.groups(rows, is_request=is_request).items():
            texts = [lines.body(row, is_request=is_request) for row in rows[places].tolist()]
            body = body_rows(name, version, texts, show_credentials=self._shows)
            self.counts.left_out += body.left_out
            bodies.append((places, body.columns))
            yield f"{MESSAGES}/{name}", _message_rows(facts, name, places, body.columns)
        yield FRAMES, _frame_rows(facts, bodies)


class JsonBody(NamedTuple):
    """A body as JSON: the name of its message, its version, and its text."""

    message: str
    version: int
    text: bytes


def logged_body(item: LoggedRequest, name: str | None, *, is_request: bool) -> JsonBody | None:
    """Return the body of a request or of its response, or None if the line contains no such body.

    ``name`` is the name of the request, as `name_of` returns it.
    """
    text = item.request if is_request else item.response
    if text is None or name is None:
        return None
    header = item.header
    version = header.request_api_version
    if is_request:
        return JsonBody(name, version, text)
    if header.request_api_key == api_key_of(NEGOTIATES) and text.startswith(_FALLBACK):
        version = 0
    return JsonBody(f"{name.removesuffix('Request')}Response", version, text)


class _RequestColumns:
    """The lines of requests that were not forwarded, as columns."""

    def __init__(self, lines: Sequence[FileItem], ids: Mapping[str, LoggedIds]) -> None:
        items: list[Any] = [line.item for line in lines]
        known = [ids.get(item.ends.name, NO_IDS) for item in items]
        self._items = items
        total = np.array([item.total_us for item in items], np.int64)
        self.written = np.array([item.time_us for item in items], np.int64)
        self.total = total
        keys = [item.header.request_api_key for item in items]
        versions = [item.header.request_api_version for item in items]
        self._names = [name_of(*pair) for pair in zip(keys, versions, strict=True)]
        self.answered = np.flatnonzero([item.has_response and item.error is None for item in items])
        text, number = pa.string(), pa.int32()
        strings = {
            "client_id": [
                item.header.client_id or one.client_id_at(line.number)
                for line, item, one in zip(lines, items, known, strict=True)
            ],
            "connection": [item.ends.name for item in items],
            "client": [item.ends.client for item in items],
            "broker": [item.ends.broker for item in items],
            "client_software_name": [item.software_name for item in items],
            "client_software_version": [item.software_version for item in items],
            "client_instance_id": [
                item.client_instance_id or one.client_instance_id
                for item, one in zip(items, known, strict=True)
            ],
            "principal": [item.principal for item in items],
            "listener": [item.listener for item in items],
            "security_protocol": [item.security_protocol for item in items],
            "source": [line.file.source.name for line in lines],
            "error": [item.error for item in items],
        }
        self._columns = {name: pa.array(texts, text) for name, texts in strings.items()} | {
            "api_key": pa.array(keys, number),
            "api_version": pa.array(versions, number),
            "correlation_id": pa.array([item.header.correlation_id for item in items], number),
            "frame_index": pa.array([line.number for line in lines], pa.int64()),
        }

    def __len__(self) -> int:
        return len(self._items)

    def body(self, row: int, *, is_request: bool) -> bytes | None:
        item: LoggedRequest = self._items[row]
        return item.request if is_request else item.response

    def groups(self, rows: Array, *, is_request: bool) -> dict[tuple[str, int], Array]:
        """Return which of ``rows`` have a body, by message and version of the body."""
        places_of: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        for place, row in enumerate(rows.tolist()):
            body = logged_body(self._items[row], self._names[row], is_request=is_request)
            if body is not None:
                places_of[body.message, body.version].append(place)
        return {key: np.array(places) for key, places in places_of.items()}

    def facts(self, rows: Array, *, is_request: bool) -> dict[str, pa.Array]:
        """Return the columns of all tables that come from the lines."""
        everything = len(rows) == len(self)
        taken = pa.array(rows)
        facts = {
            name: column if everything else column.take(taken)
            for name, column in self._columns.items()
        }
        suffix = "Request" if is_request else "Response"
        names = [self._names[row] for row in rows.tolist()]
        stems = [None if name is None else name.removesuffix("Request") for name in names]
        total, has_response = self.total[rows], np.isin(rows, self.answered)
        time = self.written[rows] - (total if is_request else 0)
        count = len(rows)
        facts |= {
            "time": pa.array(time).cast(PAIRED.field("time").type),
            "direction": pa.repeat(_REQUEST if is_request else _RESPONSE, count),
            "message": pc.binary_join_element_wise(pa.array(stems, pa.string()), suffix, ""),
            "size": pa.nulls(count, pa.int64()),
            "latency_us": pa.nulls(count, pa.int64()) if is_request else pa.array(total),
            "answered": (
                pa.array(np.ones(count, bool), mask=~has_response)
                if is_request
                else pa.nulls(count, pa.bool_())
            ),
        }
        return facts

    def connections(self) -> pa.RecordBatch:
        """Return the rows of `LOGGED`, one for each line."""
        count = len(self)
        has_response = np.zeros(count, np.int64)
        has_response[self.answered] = 1
        columns_by_name = self._columns | {
            "closed_by": pa.nulls(count, pa.string()),
            "first_us": pa.array(self.written - self.total),
            "last_us": pa.array(self.written),
            "requests": pa.array(np.ones(count, np.int64)),
            "responses": pa.array(has_response),
            "first_at": self._columns["frame_index"],
            "last_at": self._columns["frame_index"],
        }
        return pa.RecordBatch.from_arrays(
            [columns_by_name[name] for name in LOGGED.names], schema=LOGGED
        )


def complete_request(item: LoggedRequest) -> None:
    """Convert bodies in text form to JSON if possible, and read the client's software and id.

    The id is the client instance id.
    """
    _read_text(item)
    _read_software(item)
    _read_instance(item)


def _read_text(item: LoggedRequest) -> None:
    if item.is_text:
        key, version = item.header.request_api_key, item.header.request_api_version
        name = name_of(key, version) or ""
        answer = f"{name.removesuffix('Request')}Response"
        item.request = _of_text(item.request, name, version)
        asks = key == api_key_of(NEGOTIATES)
        is_fallback = asks and (item.response or b"").startswith(_TEXT_FALLBACK)
        item.response = _of_text(item.response, answer, 0 if is_fallback else version)


class _Software(msgspec.Struct, rename="camel", gc=False):
    client_software_name: str | None = None
    client_software_version: str | None = None


_SOFTWARE: Final = msgspec.json.Decoder(_Software)


def _read_software(item: LoggedRequest) -> None:
    """Read the client's software from the request that names it, as a broker does."""
    if item.header.request_api_key != api_key_of(NEGOTIATES):
        return
    if item.software_name is None and item.request is not None:
        # If a body is not valid, the error is reported when the body is read.
        with suppress(msgspec.MsgspecError, ValueError, RecursionError):
            software = _SOFTWARE.decode(item.request)
            item.software_name = software.client_software_name or None
            item.software_version = software.client_software_version or None


def _read_instance(item: LoggedRequest) -> None:
    """Read the client instance id of a line from its header, its request or its response."""
    key, version = item.header.request_api_key, item.header.request_api_version
    name = name_of(key, version) or ""
    bodies = {name: item.request, f"{name.removesuffix('Request')}Response": item.response}
    texts = [item.header.client_instance_id]
    for message_name, body in bodies.items():
        if body is not None and (field_name := _instance_name(message_name)) is not None:
            # If a body is not valid, the error is reported when the body is read.
            with suppress(msgspec.MsgspecError, ValueError, RecursionError):
                texts.append(msgspec.json.decode(body, type=dict[str, Any]).get(field_name))
    item.client_instance_id = next(filter(None, map(_instance, texts)), None)


@per_catalog
@lru_cache(maxsize=4096)
def _instance_name(message_name: str) -> str | None:
    """Return the JSON name of a message's client instance id, or None if there is no such field."""
    if message_name not in catalog().names():
        return None
    specs = catalog().entry(message_name).all_specs()
    fields = (field for spec in specs for field in spec.fields)
    return next((field.json_name for field in fields if field.identifies_client_instance), None)


def _instance(text: object) -> str | None:
    """Return an id in Kafka's text form.

    The result is None for the zero uuid, and for values that are not a uuid.
    """
    if not isinstance(text, str):
        return None
    try:
        value = parse_uuid_text(text)
    except ValueError:
        return None
    return uuid_text(value) if value.int else None


def _of_text(text: bytes | None, name: str, version: int) -> bytes | None:
    return None if text is None else body_of_text(text.decode(), name, version)


@per_catalog
@lru_cache(maxsize=4096)
def name_of(api_key: int, version: int) -> str | None:
    """Return the name of the request with an api key, or None if no release has this key."""
    return request_name(api_key, version) if request_entries(api_key) else None


def _message_rows(
    facts: dict[str, pa.Array], name: str, places: Array, body: dict[str, pa.Array]
) -> pa.RecordBatch:
    taken = pa.array(places)
    count = len(places)
    columns = {name: facts[name].take(taken) for name in COPIED}
    columns |= {
        "message": pa.repeat(name, count),
        "header_version": pa.nulls(count, pa.int32()),
        "header_unknown_tagged_fields": pa.nulls(
            count, OUTCOMES.field("header_unknown_tagged_fields").type
        ),
        "bytes": pa.nulls(count, pa.binary()),
        **body,
    }
    schema = table_schema(name, record_bytes=False)
    return pa.RecordBatch.from_arrays(
        [columns[column_name] for column_name in schema.names], schema=schema
    )


def _body_outcomes(bodies: Sequence[tuple[Array, dict[str, pa.Array]]]) -> pa.RecordBatch:
    """Return the results for bodies.

    Each item contains the rows of some bodies and the bodies' columns.
    """
    batches = [
        _filled({"row": pa.array(rows, pa.int32()), **columns}, len(rows), BODY_OUTCOMES)
        for rows, columns in bodies
    ]
    return pa.concat_batches([pa.RecordBatch.from_pylist([], BODY_OUTCOMES), *batches])


def _frame_rows(
    facts: dict[str, pa.Array], bodies: Sequence[tuple[Array, dict[str, pa.Array]]]
) -> pa.RecordBatch:
    """Return the rows of the table of frames, given the columns of `PAIRED` that lines provide."""
    count = len(facts["time"])
    no_api = facts["message"].is_null()
    columns = {
        "outcome": pc.if_else(no_api, FAILED, HEADER_ONLY),
        "error": pc.if_else(no_api, _NO_API, facts["error"]),
        "withheld_credentials": pa.array(np.zeros(count, np.int32)),
    }
    paired = _filled(facts | columns, count, PAIRED)
    return frame_rows(paired, _body_outcomes(bodies), {name: facts[name] for name in PARTIES})


def _filled(columns: dict[str, pa.Array], count: int, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with ``schema``. Missing columns become null."""
    arrays = [
        columns[column.name] if column.name in columns else pa.nulls(count, column.type)
        for column in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _forwarded(lines: Sequence[FileItem]) -> pa.RecordBatch:
    rows = []
    for line in lines:
        item = line.item
        assert isinstance(item, LoggedRequest)  # noqa: S101 - `RequestLogRows.of` ensures this
        header = item.header
        name = name_of(header.request_api_key, header.request_api_version)
        rows.append(
            {
                "time": item.time_us - item.total_us,
                "connection": item.ends.name,
                "broker": item.ends.broker,
                "listener": item.listener,
                "principal": item.principal,
                "client_id": header.client_id,
                "api_key": header.request_api_key,
                "api_name": None if name is None else name.removesuffix("Request"),
                "api_version": header.request_api_version,
                "correlation_id": header.correlation_id,
                "latency_us": None if item.error else item.total_us,
                "frame_index": line.number,
                "error": item.error,
                "source": line.file.source.name,
            }
        )
    return pa.RecordBatch.from_pylist(rows, FORWARDED_TABLE)


def _refused(
    lines: Sequence[FileItem], ids: Mapping[str, LoggedIds]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield rows of frames that a broker refused to read, and of the connections that it closed."""
    frames, connections = [], []
    for line in lines:
        item = line.item
        assert isinstance(item, RefusedRequest)  # noqa: S101 - `RequestLogRows.of` ensures this
        name = name_of(item.api_key, item.api_version)
        known = ids.get(item.ends.name, NO_IDS)
        shared = {
            "connection": item.ends.name,
            "client": item.ends.client,
            "broker": item.ends.broker,
            "client_id": known.client_id,
            "client_instance_id": known.client_instance_id,
        }
        frames.append(
            {
                **shared,
                "time": item.time_us,
                "direction": _REQUEST,
                "frame_index": line.number,
                "message": name,
                "api_key": item.api_key,
                "api_version": item.api_version,
                "answered": False,
                "outcome": HEADER_ONLY,
                "error": item.reason,
                "withheld_credentials": 0,
                "source": line.file.source.name,
            }
        )
        when = {"first_us": item.time_us, "last_us": item.time_us}
        when |= {"first_at": AFTER_ALL, "last_at": AFTER_ALL}
        connections.append({**shared, **when, "closed_by": "broker", "requests": 1, "responses": 0})
    texts = {name: [row.get(name) for row in frames] for name in PARTIES}
    parties = {name: pa.array(values, pa.string()) for name, values in texts.items()}
    no_bodies = pa.RecordBatch.from_pylist([], BODY_OUTCOMES)
    yield FRAMES, frame_rows(pa.RecordBatch.from_pylist(frames, PAIRED), no_bodies, parties)
    yield "", pa.RecordBatch.from_pylist(connections, LOGGED)
