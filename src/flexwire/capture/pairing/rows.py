"""Paired frames: facts about a frame from its header, its counterpart and its connection.

Callers supply the facts that only the whole capture reveals: which connections are Kafka, and which
requests were answered late or never. The code processes columns and, in rare cases, single rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from flexwire.capture.pairing import layout as L  # noqa: N812 - a prefix for about ten names
from flexwire.capture.pairing.apis import api_table
from flexwire.capture.pairing.state import (
    FAILED,
    NOT_KAFKA,
    TOKEN,
    UNBELIEVED,
    UNPAIRED,
    UNPAIRED_REASON,
)
from flexwire.capture.reassembly.frames import gather_bytes
from flexwire.columnar.record_columns import MOMENT
from flexwire.columnar.types import RAW_TAGGED_FIELDS
from flexwire.errors import CaptureError
from flexwire.wire.limits import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from flexwire.capture.pairing.headers import HeaderColumns, RequestSummary
    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.columnar.arrays import NumpyArray


OF_FRAME = (
    ("source", pa.string()),
    ("connection", pa.string()),
    ("direction", pa.string()),
    ("frame_index", pa.int64()),
    ("time", MOMENT),
    ("size", pa.int64()),
    ("payload", pa.binary()),
    ("outcome", pa.string()),
    ("error", pa.string()),
    ("message", pa.string()),
    ("api_key", pa.int32()),
    ("api_version", pa.int32()),
    ("correlation_id", pa.int32()),
    ("client_id", pa.string()),
    ("header_version", pa.int32()),
    ("body_offset", pa.int32()),
    ("header_unknown_tagged_fields", RAW_TAGGED_FIELDS),
)
"""The kind of a frame, and its header. The row of a response contains some facts from its request.
"""

PAIRED = pa.schema(
    [
        *OF_FRAME,
        ("withheld_credentials", pa.int32()),
        ("is_guarded", pa.bool_()),
        ("answered", pa.bool_()),
        ("latency_us", pa.int64()),
        ("body", pa.string()),
    ]
)
"""A frame, with facts from its counterpart. ``body`` is the message to decode, if any.

``outcome`` is null if the body can be decoded. For a request, ``answered`` is null if the request
expects no response, or if the request is damaged and got no response. A response has the api key,
version, client id and message of its request. ``latency_us`` is the time from the last byte of the
request to the last byte of the response.
"""

_DIRECTIONS = ("request", "response")
_OUTCOMES = (FAILED, TOKEN, UNPAIRED, NOT_KAFKA)
_FAILED, _TOKEN, _UNPAIRED, _NOT_KAFKA = range(4)
_NULL = -1


class Judgement(NamedTuple):
    """The final verdict on a connection."""

    is_kafka: bool
    reads_as_kafka: bool
    seen_from_start: bool


# If nothing is known about a connection, its frames keep their values.
_UNKNOWN = Judgement(is_kafka=True, reads_as_kafka=True, seen_from_start=False)


@dataclass(frozen=True, slots=True)
class Hindsight:
    """The facts about connections that only the whole capture reveals.

    ``unanswered`` contains the indexes of the requests without a response, in ascending order.
    ``early`` contains the facts about requests that were captured after their response, by the
    index of the response.
    """

    judgements: Mapping[str, Judgement] = field(default_factory=dict)
    unanswered: Mapping[str, list[int]] = field(default_factory=dict)
    early: Mapping[str, Mapping[int, RequestSummary]] = field(default_factory=dict)


def build_paired(
    frames: FrameColumns,
    headers: HeaderColumns,
    hindsight: Hindsight,
    *,
    show_credentials: bool = False,
) -> pa.RecordBatch:
    """Return the frames of a chunk with the columns of `PAIRED`, in order.

    Raises `CaptureError` if the payloads total more than 2 GiB.
    """
    return _PairedRows(frames, headers, hindsight, show_credentials=show_credentials).batch()


class _TextColumn:
    """A string column with few distinct values, stored as numbers. `_NULL` is null."""

    def __init__(self, rows: int, texts: Iterable[str] = ()) -> None:
        self.numbers = np.full(rows, _NULL, np.int32)
        self.texts = {text: number for number, text in enumerate(texts)}

    def number(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def column(self) -> pa.Array:
        numbers = self.numbers
        if not len(numbers) or (numbers == numbers[0]).all():
            text = list(self.texts)[numbers[0]] if len(numbers) and numbers[0] != _NULL else None
            return pa.repeat(pa.scalar(text, pa.string()), len(numbers))
        return pa.array(list(self.texts), pa.string()).take(_nullable(numbers, numbers != _NULL))


class _PairedRows:
    """Build the columns of one chunk."""

    def __init__(
        self,
        frames: FrameColumns,
        headers: HeaderColumns,
        hindsight: Hindsight,
        *,
        show_credentials: bool,
    ) -> None:
        self._frames, self._headers, self._hindsight = frames, headers, hindsight
        self._shows = show_credentials
        rows = len(frames)
        used = np.bincount(frames.connection, minlength=len(frames.connections))
        # The indexes of these arrays are the places of the connections in the frames.
        self._names = {int(number): frames.connections[number] for number in np.flatnonzero(used)}
        self._is_other = self._judged(lambda connection: not connection.is_kafka)
        self._is_unread = (
            self._judged(lambda connection: not connection.reads_as_kafka) & ~frames.is_response
        )
        self._is_known = self._judged(
            lambda connection: connection.seen_from_start and connection.reads_as_kafka
        )
        is_nobody = self._is_other | self._is_unread
        # On a connection without evidence of Kafka, requests have no client and responses have no
        # request.
        is_asked = self._judged(lambda connection: connection.reads_as_kafka)
        self._is_request = (headers.kind == L.REQUEST) & ~is_nobody
        is_response = (headers.kind == L.ANSWER) | (headers.kind == L.UNPAIRED)
        self._is_answer = (headers.kind == L.ANSWER) & is_asked & ~is_nobody
        self._is_alone = is_response & ~self._is_answer & ~is_nobody
        self._outcome, self._error = _TextColumn(rows, _OUTCOMES), _TextColumn(rows)
        self._withheld = np.zeros(rows, np.int32)
        self._is_nobody, self._tagged = is_nobody, dict[int, list[dict[str, Any]]]()
        self._lacks_payload = np.zeros(rows, np.bool_)
        is_guarded = headers.is_guarded != 0
        self._is_guarded = ~self._is_known | (is_guarded & (not show_credentials))

    def _judged(self, judge: Any) -> NumpyArray:
        rows = np.zeros(len(self._frames.connections), np.bool_)
        for place, name in self._names.items():
            rows[place] = judge(self._hindsight.judgements.get(name, _UNKNOWN))
        judged: NumpyArray = rows[self._frames.connection]
        return judged

    def batch(self) -> pa.RecordBatch:
        self._answer_late()
        self._take_odd()
        self._judge()
        self._withhold()
        frames, headers = self._frames, self._headers
        described = self._is_request | self._is_answer
        has_id = self._is_request | self._is_answer | self._is_alone
        is_request, names = self._is_request, api_table().requests
        message = _TextColumn(len(frames), [*names, *map(_response_name, names)])
        codes = api_table().names_of(headers.api_key[described], headers.api_version[described])
        message.numbers[described] = codes + len(names) * self._is_answer[described]
        body = _TextColumn(0, message.texts)
        body.numbers = np.where(self._outcome.numbers == _NULL, message.numbers, _NULL)
        direction = _TextColumn(0, _DIRECTIONS)
        direction.numbers = frames.is_response.astype(np.int32)
        client = _TextColumn(0, headers.clients)
        client.numbers = np.where(described, headers.client, _NULL)
        latency = np.where(self._is_answer, frames.time_us - headers.request_time, 0)
        columns = {
            "source": self._source(),
            "connection": self._connection(),
            "direction": direction.column(),
            "frame_index": pa.array(frames.index),
            "time": pa.array(frames.time_us).cast(MOMENT),
            "size": pa.array(frames.size),
            "payload": _payloads(frames, ~self._lacks_payload),
            "outcome": self._outcome.column(),
            "error": self._error.column(),
            "message": message.column(),
            "api_key": _nullable(headers.api_key, described),
            "api_version": _nullable(headers.api_version, described),
            "correlation_id": _nullable(headers.correlation_id, has_id),
            "client_id": client.column(),
            "header_version": _nullable(headers.header_version, is_request),
            "body_offset": _nullable(headers.body_offset, is_request),
            "header_unknown_tagged_fields": self._tagged_fields(),
            "withheld_credentials": pa.array(self._withheld),
            "is_guarded": pa.array(self._is_guarded),
            "answered": self._answered(),
            "latency_us": _nullable(latency, self._is_answer),
            "body": body.column(),
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in PAIRED.names], schema=PAIRED)

    def _source(self) -> pa.Array:
        origins = self._frames.origins
        if origins is None:
            return pa.repeat(pa.scalar(self._frames.file, pa.string()), len(self._frames))
        return pa.array(origins.files, pa.string()).take(pa.array(origins.of_row))

    def _connection(self) -> pa.Array:
        # A capture may contain many connections, but each chunk contains only a few of them.
        numbers = np.zeros(len(self._frames.connections), np.int32)
        numbers[list(self._names)] = np.arange(len(self._names))
        names = pa.array(list(self._names.values()), pa.string())
        return names.take(pa.array(numbers[self._frames.connection]))

    def _answer_late(self) -> None:
        """Fill in the responses whose request was captured later."""
        early = self._hindsight.early
        judgements = self._hindsight.judgements
        places = [
            place
            for place, name in self._names.items()
            if name in early and judgements.get(name, _UNKNOWN).reads_as_kafka
        ]
        if not places:
            return
        headers, frames = self._headers, self._frames
        api_key, version = headers.api_key.copy(), headers.api_version.copy()
        client, time = headers.client.copy(), headers.request_time.copy()
        texts = {text: number for number, text in enumerate(headers.clients)}
        for row in np.flatnonzero(self._is_alone & np.isin(frames.connection, places)).tolist():
            name = frames.connections[frames.connection[row]]
            said = early[name].get(int(frames.index[row]))
            if said is None:
                continue
            api_key[row], version[row], client_id, time[row] = said
            known = None if client_id is None else texts.setdefault(client_id, len(texts))
            client[row] = _NULL if known is None else known
            self._is_alone[row], self._is_answer[row] = False, True
        self._headers = replace(
            headers,
            api_key=api_key,
            api_version=version,
            client=client,
            request_time=time,
            clients=list(texts),
        )

    def _take_odd(self) -> None:
        """Fill in the results for frames that were not plain, except the facts in their headers."""
        for row, values in self._headers.odd.items():
            if "outcome" in values:
                self._outcome.numbers[row] = _OUTCOMES.index(values["outcome"])
            if values.get("error") is not None:
                self._error.numbers[row] = self._error.number(values["error"])
            self._withheld[row] = values.get("withheld_credentials", 0)
            self._lacks_payload[row] = values.get("payload", b"") is None
            tagged = values.get("header_unknown_tagged_fields")
            if tagged is not None and not self._is_nobody[row]:
                self._tagged[row] = tagged

    def _judge(self) -> None:
        """Set the outcome of unpaired responses, and of frames on non-Kafka connections."""
        outcome, error = self._outcome.numbers, self._error.numbers
        headers, is_unread = self._headers, self._is_unread
        outcome[is_unread] = _FAILED
        error[is_unread & (error == _NULL)] = self._error.number(UNBELIEVED)
        unpaired = self._is_alone & (outcome == _NULL)
        outcome[unpaired] = _UNPAIRED
        for row in np.flatnonzero(unpaired).tolist():
            reason = UNPAIRED_REASON % headers.correlation_id[row]
            error[row] = self._error.number(reason)
        outcome[self._is_other], error[self._is_other] = _NOT_KAFKA, _NULL
        self._withheld[self._is_other] = 0

    def _withhold(self) -> None:
        """If the bytes of frames without a body may be credentials, remove them."""
        if self._shows:
            return
        outcome = self._outcome.numbers
        is_withheld = (outcome != _NULL) & (
            (outcome == _UNPAIRED) | (outcome == _NOT_KAFKA) | self._is_guarded
        )
        is_counted = is_withheld & ~self._lacks_payload & (self._frames.stop > self._frames.start)
        self._withheld[is_counted & (outcome != _NOT_KAFKA)] = 1
        self._lacks_payload |= is_withheld

    def _answered(self) -> pa.Array:
        frames = self._frames
        answered = np.ones(len(frames), np.bool_)
        places = [
            place for place, name in self._names.items() if name in self._hindsight.unanswered
        ]
        is_asked = self._is_request & (self._headers.is_expected != 0)
        if places and (unanswered := self._unanswered(places, np.flatnonzero(is_asked))):
            rows = np.flatnonzero(is_asked & np.isin(frames.connection, list(unanswered)))
            sought = [_joined(place, np.array(indexes)) for place, indexes in unanswered.items()]
            joined = _joined(frames.connection[rows].astype(np.int64), frames.index[rows])
            answered[rows] = ~np.isin(joined, np.concatenate(sought))
        # A damaged request may have been answered, even if no response to it is known.
        is_damaged = np.zeros(len(frames), np.bool_)
        is_damaged[list(frames.error)] = True
        return pa.array(answered, mask=~is_asked | (is_damaged & ~answered))

    def _unanswered(self, places: list[int], rows: NumpyArray) -> dict[int, list[int]]:
        """Return the requests without a response between the first and last rows, by connection."""
        frames, unanswered = self._frames, {}
        first = np.full(len(frames.connections), -1, np.int64)
        last = first.copy()
        # If several values are assigned to the same place, the last one remains. The indexes of
        # each connection are in ascending order.
        last[frames.connection[rows]] = frames.index[rows]
        first[frames.connection[rows[::-1]]] = frames.index[rows[::-1]]
        for place in places:
            ascending = self._hindsight.unanswered[self._names[place]]
            begin = bisect_left(ascending, int(first[place]))
            if indexes := ascending[begin : bisect_right(ascending, int(last[place]))]:
                unanswered[place] = indexes
        return unanswered

    def _tagged_fields(self) -> pa.Array:
        values = [value for row in sorted(self._tagged) for value in self._tagged[row]]
        counts, is_null = np.zeros(len(self._frames) + 1, np.int32), ~self._is_request
        for row, fields in self._tagged.items():
            counts[row + 1], is_null[row] = len(fields), False
        return pa.ListArray.from_arrays(
            pa.array(np.cumsum(counts, dtype=np.int32)),
            pa.array(values, RAW_TAGGED_FIELDS.value_type),
            type=RAW_TAGGED_FIELDS,
            mask=pa.array(is_null),
        )


def _response_name(request: str) -> str:
    return request.removesuffix("Request") + "Response"


def _joined(connections: NumpyArray | int, indexes: NumpyArray) -> NumpyArray:
    # An index counts frames, and their number never reaches this value.
    joined: NumpyArray = connections << 40 | indexes
    return joined


def _nullable(values: NumpyArray, valid: NumpyArray) -> pa.Array:
    return pa.array(values, mask=~valid)


def _payloads(frames: FrameColumns, wanted: NumpyArray) -> pa.Array:
    """Return the payloads of the wanted rows, and null for all other rows."""
    sizes = np.where(wanted, frames.stop - frames.start, 0)
    ends = np.cumsum(sizes)
    size = int(ends[-1]) if len(ends) else 0
    if size > INT32_MAX:
        raise CaptureError(f"expected frames of at most {INT32_MAX} bytes in total, got {size}")
    offsets = np.zeros(len(sizes) + 1, np.int32)
    offsets[1:] = ends
    copied = gather_bytes(frames.data, frames.start, offsets)
    validity = None if wanted.all() else pa.array(wanted).buffers()[1]
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(copied)]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)
