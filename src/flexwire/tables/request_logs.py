"""Lines of request logs as rows of all tables, as if a capture had their frames.

A line is a request and, where there was one, its response. Sizes of frames are not in it, and bytes
of records neither, so ``size`` is null and there are no rows of ``records``. Forwarded requests,
which a broker passes on to the controller for a client, are rows of a table of their own.

A log may be anybody's, and name as many as it likes. Which ones are kept does not depend on how the
lines were cut into tasks: those that come first in the alphabet.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.pairing.state import FAILED
from flexwire.logs.request_log import LoggedRequest, RefusedRequest
from flexwire.protocol.apis import api_key_of, request_entries
from flexwire.protocol.headers import request_name
from flexwire.protocol.sasl import NEGOTIATES
from flexwire.schema.catalog import per_catalog
from flexwire.tables.frames import DECODED
from flexwire.tables.message_schema import COPIED, table_schema
from flexwire.tables.request_log_bodies import body_rows
from flexwire.tables.request_log_text import body_of_text
from flexwire.tables.row_filter import FRAMES, MESSAGES
from flexwire.tables.schema import FORWARDED_TABLE, FRAMES_TABLE, OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flexwire.logs.request_log.lines import RequestLogFile

    Array = np.ndarray[Any, np.dtype[Any]]


MOST_LISTENERS: Final = 1_000
"""So many are told apart; a cluster has a handful."""
LONGEST_NAME: Final = 200
"""Of a longer name so many characters are kept."""

Listener: TypeAlias = tuple[str | None, str | None]
"""A listener's name and its security protocol; None where a line does not say them."""


@dataclass(slots=True)
class ListenerCounts:
    """Requests by listener, and the fetches of replicas among them.

    ``beyond`` are the requests to listeners that are too many to be told apart.
    """

    requests: Counter[Listener] = field(default_factory=Counter)
    replicas: Counter[Listener] = field(default_factory=Counter)
    beyond: int = 0

    def add(self, listeners: Iterable[Listener]) -> None:
        """Count a request of each."""
        self.requests.update(map(_shortened, listeners))
        self._prune()

    def add_replicas(self, listener: Listener, fetches: int) -> None:
        """Count fetches of replicas among the requests that were counted."""
        name = _shortened(listener)
        if name in self.requests:
            self.replicas[name] += fetches

    def merge(self, other: ListenerCounts) -> None:
        """Take in what others counted."""
        self.requests.update(other.requests)
        self.replicas.update(other.replicas)
        self.beyond += other.beyond
        self._prune()

    def _prune(self) -> None:
        if len(self.requests) > MOST_LISTENERS:
            for one in sorted(self.requests, key=_order)[MOST_LISTENERS:]:
                self.beyond += self.requests.pop(one)
                self.replicas.pop(one, None)


def _shortened(listener: Listener) -> Listener:
    name, protocol = listener
    return _short(name), _short(protocol)


def _short(text: str | None) -> str | None:
    if text is None or len(text) <= LONGEST_NAME:
        return text
    return f"{text[:LONGEST_NAME]}…"


def _order(listener: Listener) -> tuple[tuple[bool, str], ...]:
    return tuple((one is not None, one or "") for one in listener)


FORWARDED: Final = "forwarded_requests"
HEADER_ONLY: Final = "header"
"""The outcome of what a line gives but the header of."""

_REQUEST, _RESPONSE = "request", "response"
_NO_API: Final = "no Kafka release in the catalog has this api key"
# A line's place in its file has so many bits of a ``frame_index``, and the file's number the rest.
_OFFSET_BITS: Final = 40
# What an ApiVersions response says in version 0, whatever was asked: UNSUPPORTED_VERSION (KIP-511).
_FALLBACK: Final = b'{"errorCode":35,'
_TEXT_FALLBACK: Final = b"{error_code=35,"

LOGGED: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("connection", "client", "broker")),
        *((name, pa.string()) for name in ("principal", "listener", "security_protocol")),
        ("closed_by", pa.string()),
        *((name, pa.int64()) for name in ("first_us", "last_us", "requests", "responses")),
    ]
)
"""What lines say of connections: a row for each that some lines are about, or several."""


@dataclass(slots=True)
class RequestLogCounts:
    """What lines said besides rows, counted.

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
        """Take in what others said."""
        for name in ("requests", "forwarded", "refused", "cut", "text", "deprecated", "left_out"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.listeners.merge(other.listeners)


class FileItem(NamedTuple):
    """What a line says, and the file that it stands in."""

    file: RequestLogFile
    item: LoggedRequest | RefusedRequest

    @property
    def number(self) -> int:
        """A number that no other line has; of two lines of a file the later has the greater."""
        return self.file.number << _OFFSET_BITS | max(0, self.item.offset)


class RequestLogRows:
    """Makes the rows of lines, batch after batch."""

    def __init__(self, *, show_credentials: bool = False) -> None:
        self._shows = show_credentials
        self.told = RequestLogCounts()

    def of(self, lines: Sequence[FileItem]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Give the rows of some lines by table; those of `LOGGED` have the name of no table, ""."""
        own: list[FileItem] = []
        forwarded: list[FileItem] = []
        refused: list[FileItem] = []
        for one in lines:
            if isinstance(one.item, RefusedRequest):
                refused.append(one)
            else:
                (forwarded if one.item.is_forwarded else own).append(one)
        for one in own:
            _read_text(one.item)
            _read_software(one.item)
        self._tell(own, forwarded, refused)
        if own:
            batch = _RequestColumns(own)
            for is_request in (True, False):
                yield from self._rows(batch, is_request=is_request)
            yield "", batch.connections()
        if forwarded:
            yield FORWARDED, _forwarded(forwarded)
        if refused:
            yield from _refused(refused)

    def _tell(
        self, own: Sequence[FileItem], forwarded: Sequence[FileItem], refused: Sequence[FileItem]
    ) -> None:
        told = self.told
        told.requests += len(own)
        told.forwarded += len(forwarded)
        told.refused += len(refused)
        for _, one in (*own, *forwarded):
            assert isinstance(one, LoggedRequest)  # noqa: S101 - see `of`
            told.cut += one.error is not None
            told.text += one.is_text and one.request is None
            told.deprecated += one.header.request_api_version_deprecated
        told.listeners.add(
            (one.item.listener, one.item.security_protocol)
            for one in own
            if isinstance(one.item, LoggedRequest)
        )

    def _rows(
        self, lines: _RequestColumns, *, is_request: bool
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        rows = np.arange(len(lines)) if is_request else lines.answered
        facts = lines.facts(rows, is_request=is_request)
        told: list[tuple[Array, dict[str, pa.Array]]] = []
        for (name, version), places in lines.groups(rows, is_request=is_request).items():
            texts = [lines.body(row, is_request=is_request) for row in rows[places].tolist()]
            found = body_rows(name, version, texts, show_credentials=self._shows)
            self.told.left_out += found.left_out
            told.append((places, found.columns))
            yield f"{MESSAGES}/{name}", _message_rows(facts, name, places, found.columns)
        yield FRAMES, _frame_rows(facts, told)


class _RequestColumns:
    """Lines of requests that are no forwarded ones, as columns."""

    def __init__(self, lines: Sequence[FileItem]) -> None:
        items: list[Any] = [one.item for one in lines]
        self._items = items
        total = np.array([one.total_us for one in items], np.int64)
        self.written = np.array([one.time_us for one in items], np.int64)
        self.total = total
        keys = [one.header.request_api_key for one in items]
        versions = [one.header.request_api_version for one in items]
        self._names = [_name(*one) for one in zip(keys, versions, strict=True)]
        self.answered = np.flatnonzero([one.has_response and one.error is None for one in items])
        text, number = pa.string(), pa.int32()
        strings = {
            "client_id": [one.header.client_id for one in items],
            "connection": [one.ends.name for one in items],
            "client": [one.ends.client for one in items],
            "broker": [one.ends.broker for one in items],
            "client_software_name": [one.software_name for one in items],
            "client_software_version": [one.software_version for one in items],
            "principal": [one.principal for one in items],
            "listener": [one.listener for one in items],
            "security_protocol": [one.security_protocol for one in items],
            "source": [one.file.source.name for one in lines],
            "error": [one.error for one in items],
        }
        self._columns = {name: pa.array(one, text) for name, one in strings.items()} | {
            "api_key": pa.array(keys, number),
            "api_version": pa.array(versions, number),
            "correlation_id": pa.array([one.header.correlation_id for one in items], number),
            "frame_index": pa.array([one.number for one in lines], pa.int64()),
        }

    def __len__(self) -> int:
        return len(self._items)

    def body(self, row: int, *, is_request: bool) -> bytes | None:
        one: LoggedRequest = self._items[row]
        return one.request if is_request else one.response

    def groups(self, rows: Array, *, is_request: bool) -> dict[tuple[str, int], Array]:
        """Which of ``rows`` have a body, by message and the version that it is in."""
        found: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        for place, row in enumerate(rows.tolist()):
            one: LoggedRequest = self._items[row]
            text = one.request if is_request else one.response
            name = self._names[row]
            if text is None or name is None:
                continue
            header = one.header
            version = header.request_api_version
            if not is_request:
                name = f"{name.removesuffix('Request')}Response"
                asks = header.request_api_key == api_key_of(NEGOTIATES)
                if asks and text.startswith(_FALLBACK):
                    version = 0
            found[name, version].append(place)
        return {key: np.array(places) for key, places in found.items()}

    def facts(self, rows: Array, *, is_request: bool) -> dict[str, pa.Array]:
        """What rows of all tables have of their lines."""
        everything = len(rows) == len(self)
        taken = pa.array(rows)
        facts = {
            name: one if everything else one.take(taken) for name, one in self._columns.items()
        }
        suffix = "Request" if is_request else "Response"
        names = [self._names[row] for row in rows.tolist()]
        stems = [None if one is None else one.removesuffix("Request") for one in names]
        api_names = pa.array(stems, pa.string())
        total, has_response = self.total[rows], np.isin(rows, self.answered)
        time = self.written[rows] - (total if is_request else 0)
        count = len(rows)
        facts |= {
            "time": pa.array(time).cast(FRAMES_TABLE.field("time").type),
            "direction": pa.repeat(_REQUEST if is_request else _RESPONSE, count),
            "api_name": api_names,
            "message": pc.binary_join_element_wise(api_names, suffix, ""),
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
        """The rows of `LOGGED`: one for each line."""
        count = len(self)
        has_response = np.zeros(count, np.int64)
        has_response[self.answered] = 1
        told = self._columns | {
            "closed_by": pa.nulls(count, pa.string()),
            "first_us": pa.array(self.written - self.total),
            "last_us": pa.array(self.written),
            "requests": pa.array(np.ones(count, np.int64)),
            "responses": pa.array(has_response),
        }
        return pa.RecordBatch.from_arrays([told[name] for name in LOGGED.names], schema=LOGGED)


def _read_text(item: LoggedRequest | RefusedRequest) -> None:
    """Give what text has of bodies the form of JSON, as far as it is sure."""
    if isinstance(item, LoggedRequest) and item.is_text:
        key, version = item.header.request_api_key, item.header.request_api_version
        name = _name(key, version) or ""
        answer = f"{name.removesuffix('Request')}Response"
        item.request = _of_text(item.request, name, version)
        asks = key == api_key_of(NEGOTIATES)
        is_fallback = asks and (item.response or b"").startswith(_TEXT_FALLBACK)
        item.response = _of_text(item.response, answer, 0 if is_fallback else version)


class _Software(msgspec.Struct, rename="camel", gc=False):
    client_software_name: str | None = None
    client_software_version: str | None = None


_SOFTWARE: Final = msgspec.json.Decoder(_Software)


def _read_software(item: LoggedRequest | RefusedRequest) -> None:
    """Take what software a client is from where it says so: the broker knows it from then on."""
    if not isinstance(item, LoggedRequest):
        return
    if item.header.request_api_key != api_key_of(NEGOTIATES):
        return
    if item.software_name is None and item.request is not None:
        # What is not so is told where the body is read.
        with suppress(msgspec.MsgspecError, ValueError, RecursionError):
            found = _SOFTWARE.decode(item.request)
            item.software_name = found.client_software_name or None
            item.software_version = found.client_software_version or None


def _of_text(text: bytes | None, name: str, version: int) -> bytes | None:
    return None if text is None else body_of_text(text.decode(), name, version)


@per_catalog
@lru_cache(maxsize=4096)
def _name(api_key: int, version: int) -> str | None:
    return request_name(api_key, version) if request_entries(api_key) else None


def _message_rows(
    facts: dict[str, pa.Array], name: str, places: Array, body: dict[str, pa.Array]
) -> pa.RecordBatch:
    taken = pa.array(places)
    count = len(places)
    columns = {one: facts[one].take(taken) for one in COPIED}
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
    return pa.RecordBatch.from_arrays([columns[one] for one in schema.names], schema=schema)


def _frame_rows(
    facts: dict[str, pa.Array], told: Sequence[tuple[Array, dict[str, pa.Array]]]
) -> pa.RecordBatch:
    count = len(facts["time"])
    # A row for each body, in the order of ``told``; those without one have none.
    place = np.full(count, -1)
    done = 0
    for places, _ in told:
        place[places] = np.arange(done, done + len(places))
        done += len(places)
    has_body = place >= 0
    taken = pa.array(place, mask=~has_body)

    def of_body(name: str) -> pa.Array:
        kind = OUTCOMES.field(name).type
        columns = [columns[name] for _, columns in told]
        return (pa.concat_arrays(columns) if columns else pa.nulls(0, kind)).take(taken)

    error = pc.coalesce(facts["error"], of_body("error"))
    no_api = facts["api_name"].is_null()
    error = pc.if_else(no_api, _NO_API, error)
    failed = pc.or_(no_api, pc.and_(pa.array(has_body), error.is_valid()))
    outcome = pc.if_else(failed, FAILED, pc.if_else(pa.array(has_body), DECODED, HEADER_ONLY))
    made = facts | {
        "body_version": of_body("body_version"),
        "header_version": pa.nulls(count, pa.int32()),
        "withheld_credentials": of_body("withheld_credentials").fill_null(0),
        "outcome": outcome,
        "error": error,
    }
    return _as_frames(made, count)


def _as_frames(made: dict[str, pa.Array], count: int) -> pa.RecordBatch:
    arrays = [
        made[one.name] if one.name in made else pa.nulls(count, one.type) for one in FRAMES_TABLE
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=FRAMES_TABLE)


def _forwarded(lines: Sequence[FileItem]) -> pa.RecordBatch:
    rows = []
    for line in lines:
        one = line.item
        assert isinstance(one, LoggedRequest)  # noqa: S101 - see `RequestLogRows.of`
        header = one.header
        name = _name(header.request_api_key, header.request_api_version)
        rows.append(
            {
                "time": one.time_us - one.total_us,
                "connection": one.ends.name,
                "broker": one.ends.broker,
                "listener": one.listener,
                "principal": one.principal,
                "client_id": header.client_id,
                "api_key": header.request_api_key,
                "api_name": None if name is None else name.removesuffix("Request"),
                "api_version": header.request_api_version,
                "correlation_id": header.correlation_id,
                "latency_us": None if one.error else one.total_us,
                "frame_index": line.number,
                "error": one.error,
                "source": line.file.source.name,
            }
        )
    return pa.RecordBatch.from_pylist(rows, FORWARDED_TABLE)


def _refused(lines: Sequence[FileItem]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Rows of frames that a broker did not read, on connections that it closed for that."""
    frames, connections = [], []
    for line in lines:
        one = line.item
        assert isinstance(one, RefusedRequest)  # noqa: S101 - see `RequestLogRows.of`
        name = _name(one.api_key, one.api_version)
        shared = {
            "connection": one.ends.name,
            "client": one.ends.client,
            "broker": one.ends.broker,
        }
        frames.append(
            {
                **shared,
                "time": one.time_us,
                "direction": _REQUEST,
                "frame_index": line.number,
                "message": name,
                "api_name": None if name is None else name.removesuffix("Request"),
                "api_key": one.api_key,
                "api_version": one.api_version,
                "answered": False,
                "outcome": HEADER_ONLY,
                "error": one.reason,
                "withheld_credentials": 0,
                "source": line.file.source.name,
            }
        )
        times = {"first_us": one.time_us, "last_us": one.time_us}
        connections.append(
            {**shared, **times, "closed_by": "broker", "requests": 1, "responses": 0}
        )
    yield FRAMES, pa.RecordBatch.from_pylist(frames, FRAMES_TABLE)
    yield "", pa.RecordBatch.from_pylist(connections, LOGGED)
