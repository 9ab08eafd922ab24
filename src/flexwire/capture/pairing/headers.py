"""Read the headers of a chunk's frames.

A kernel reads plain headers, and objects read all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flexwire.capture.pairing import layout as L  # noqa: N812 - a prefix for about fifty names
from flexwire.capture.pairing.apis import SECRETS, ApiTable, api_table
from flexwire.capture.pairing.state import FAILED, TOKEN, withhold_tagged_fields
from flexwire.capture.reassembly.connections import hear
from flexwire.capture.reassembly.frames import pick_rows
from flexwire.columnar.program import address
from flexwire.columnar.types import raw_tagged_fields
from flexwire.protocol import Conversation, RequestFrame, carries_credentials, is_believable
from flexwire.protocol.client_instances import header_instance_id
from flexwire.protocol.conversation import DEFAULT_IN_FLIGHT
from flexwire.protocol.headers import known_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flexwire.capture.pairing.state import ClientIds, PendingTable
    from flexwire.capture.reassembly.connections import CapturedFrame
    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.columnar.arrays import NumpyArray


_INT32 = (
    ("api_key", "api_key"),
    ("api_version", "api_version"),
    ("correlation_id", "correlation_id"),
    ("client", "client"),
    ("header_version", "header_version"),
    ("body_offset", "body_offset"),
    ("instance_at", "instance_at"),
)
_BYTES = (
    ("kind", "kind"),
    ("is_expected", "is_expected"),
    ("is_guarded", "guarded"),
    ("flags", "flags"),
    ("is_preset", "given"),
)


@dataclass(slots=True, eq=False)
class HeaderColumns:
    """The headers of a chunk's frames, in one row per frame.

    ``kind`` is `UNREAD`, `REQUEST` (also for a damaged request whose header can be read),
    `UNPAIRED` or `ANSWER`, as `flexwire.capture.pairing.layout` numbers them. The kind determines
    which columns have a meaning. The row of a response contains the api key, version, client id and
    ``request_time`` of its request. ``client`` contains indexes into ``clients``. ``instance_at``
    is the offset of the client instance id in the payload of a plain request that contains one, and
    otherwise 0. ``is_expected`` indicates whether a request expects a response. ``odd`` contains
    the results of `FrameReader` for the rows that were not plain. For a plain row, ``flags``
    contains the flags that the row's connection has after that row.

    A row for which ``is_given`` is true has already been read. Its columns already contain the
    kind, correlation id and flags, and for a request also the api key, the version, the client id
    and whether a response is expected.
    """

    kind: NumpyArray
    api_key: NumpyArray
    api_version: NumpyArray
    correlation_id: NumpyArray
    client: NumpyArray
    header_version: NumpyArray
    body_offset: NumpyArray
    instance_at: NumpyArray
    request_time: NumpyArray
    is_expected: NumpyArray
    is_guarded: NumpyArray
    flags: NumpyArray
    is_preset: NumpyArray
    clients: list[str]
    odd: dict[int, dict[str, Any]]

    @classmethod
    def fresh(cls, rows: int, clients: list[str]) -> HeaderColumns:
        """Return columns for a number of rows that have not been read yet."""
        columns: dict[str, Any] = {name: np.zeros(rows, np.int32) for name, _ in _INT32}
        columns |= {name: np.zeros(rows, np.uint8) for name, _ in _BYTES}
        return cls(**columns, request_time=np.zeros(rows, np.int64), clients=clients, odd={})

    @classmethod
    def joined(cls, parts: Sequence[HeaderColumns], clients: list[str]) -> HeaderColumns:
        """Return all rows of several parts that share client numbers and have no odd rows."""
        fresh = cls.fresh(0, clients)
        names = [name for name, _ in (*_INT32, *_BYTES)]
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in (fresh, *parts)])
            for name in (*names, "request_time")
        }
        return replace(fresh, **columns)

    def take(self, rows: NumpyArray) -> HeaderColumns:
        """Return the headers of some frames, in the order of ``rows``."""
        names = [name for name, _ in (*_INT32, *_BYTES)]
        some = {name: getattr(self, name)[rows] for name in (*names, "request_time")}
        return replace(self, **some, odd=pick_rows(self.odd, rows))

    def tell(self, row: int, values: dict[str, Any], client: int) -> None:
        """Store the result of `FrameReader` for a request, or for a frame that was not read."""
        self.odd[row] = values
        self.is_guarded[row] = values["is_guarded"]
        self.is_expected[row] = "message" in values and values.get("pair") is not None
        if "message" in values:
            self.kind[row] = L.REQUEST
            self.client[row] = client
            for name in ("api_key", "api_version", *_HEADER):
                getattr(self, name)[row] = values[name]

    def answer(
        self, row: int, values: dict[str, Any], said: RequestSummary | None, client: int
    ) -> None:
        """Store the result of `FrameReader` for a response with a header, and for its request."""
        if "outcome" in values:
            self.odd[row] = values
        self.is_guarded[row] = values["is_guarded"]
        self.correlation_id[row] = values["correlation_id"]
        self.kind[row] = L.UNPAIRED if said is None else L.ANSWER
        if said is not None:
            self.api_key[row], self.api_version[row], _, self.request_time[row] = said
            self.client[row] = client


_HEADER = ("correlation_id", "header_version", "body_offset")


class PairingRun:
    """The words that a kernel needs to process one chunk, and the memory that they point to."""

    def __init__(
        self,
        frames: FrameColumns,
        numbers: NumpyArray,
        headers: HeaderColumns,
        waiting: PendingTable,
        clients: ClientIds,
    ) -> None:
        self.table: ApiTable = api_table()
        self.frames, self.headers, self.waiting = frames, headers, waiting
        rows = len(frames)
        errors = np.zeros(rows, np.uint8)
        errors[list(frames.error)] = 1
        self.forgotten = np.empty((rows, L.FORGOT), np.int64)
        self.early = np.empty((rows, L.LATER), np.int64)
        self._secrets = [np.frombuffer(secret, np.uint8) for secret in SECRETS]
        extents = np.array([(address(secret), len(secret)) for secret in self._secrets], np.int64)
        columns: dict[str, tuple[NumpyArray, type]] = {
            "connection": (frames.connection, np.int32),
            "is_response": (frames.is_response, np.bool_),
            "index": (frames.index, np.int64),
            "time": (frames.time_us, np.int64),
            "start": (frames.start, np.int64),
            "stop": (frames.stop, np.int64),
            "errors": (errors, np.uint8),
            "numbers": (numbers, np.int64),
            "request_time": (headers.request_time, np.int64),
            "forgotten": (self.forgotten, np.int64),
            "early": (self.early, np.int64),
            "table": (self.table.words, np.int64),
            "secrets": (extents, np.int64),
            **{word: (getattr(headers, name), np.int32) for name, word in _INT32},
            **{word: (getattr(headers, name), np.uint8) for name, word in _BYTES},
        }
        self._held: dict[str, NumpyArray] = {
            word: np.ascontiguousarray(values, kind) for word, (values, kind) in columns.items()
        }
        for word, values in self._held.items():
            setattr(waiting.words, word, address(values) if values.size else 0)
        self._data = np.ascontiguousarray(frames.data)
        waiting.words.data = address(self._data) if self._data.size else 0
        waiting.words.at = 0
        waiting.words.end = rows
        waiting.words.keys = len(self.table.words)
        waiting.words.versions = self.table.versions
        waiting.words.prepared = waiting.words.tried = L.NOWHERE
        waiting.words.forgotten_count = waiting.words.early_count = 0
        self.use(clients)

    def use(self, clients: ClientIds) -> None:
        """Continue with more client ids."""
        self.waiting.words.clients = address(clients.table)
        self.waiting.words.client_mask = len(clients.table) - 1
        self.waiting.words.client_extents = address(clients.extents)

    def read_again(self, row: int) -> None:
        """Make the kernel read the first bytes of a row even though the frame is damaged."""
        self._held["errors"][row] = 0

    def prepare(self, row: int, *, expects: bool) -> None:
        """Have the kernel process a request whose facts are already in the columns."""
        self.read_again(row)
        self.waiting.words.prepared = row
        self.waiting.words.expects = int(expects)

    def number(self, row: int) -> int:
        """Return the number that identifies the state of the row's connection."""
        return int(self._held["numbers"][self.frames.connection[row]])

    def skip(self) -> None:
        """Continue after a row that leaves neither a request nor a response pending."""
        self.waiting.words.at = self.waiting.words.at + 1


class RequestSummary(NamedTuple):
    """The facts about a request that its response needs: layout, client and time."""

    api_key: int
    api_version: int
    client_id: str | None
    time_us: int

    @classmethod
    def of_entry(cls, what: int, client: int, time: int, clients: ClientIds) -> RequestSummary:
        """Return the facts in a kernel's entry."""
        version = _signed(what & L.VERSION_MASK, L.API_KEY_SHIFT)
        return cls(what >> L.API_KEY_SHIFT, version, clients.text(client), time)


class WaitingFrames(NamedTuple):
    """The frames on a connection that are waiting for their request or response.

    ``asked`` contains the correlation id, the index and the facts of each request. The facts are
    None for a token. ``early`` contains the correlation id, the index and the time of each
    response.
    """

    asked: list[tuple[int, int, RequestSummary | None]]
    early: list[tuple[int, int, int]]

    @classmethod
    def of_entries(cls, entries: NumpyArray, clients: ClientIds) -> WaitingFrames:
        """Return the waiting frames from the entries of a connection that a kernel reads."""
        waiting = cls([], [])
        for key, what, client, time, index in entries.tolist():
            correlation_id = _signed(key & L.CORRELATION_MASK, L.SIDE_SHIFT)
            if key >> L.SIDE_SHIFT & 1 == L.ASKED:
                said = RequestSummary.of_entry(what, client, time, clients)
                waiting.asked.append((correlation_id, index, said))
            else:
                waiting.early.append((correlation_id, index, time))
        return waiting


def _signed(number: int, bits: int) -> int:
    half = 1 << bits - 1
    return (number + half) % (half << 1) - half


class ConnectionReader:
    """A connection whose frames are read as objects, and the frames that are waiting on it."""

    def __init__(self, reader: FrameReader) -> None:
        self._reader = reader
        # The state is found through the pair that the conversation returned.
        self._asked: dict[int, tuple[int, RequestSummary]] = {}
        self._early: dict[int, int] = {}

    @property
    def conversation(self) -> Conversation:
        """The conversation on this connection."""
        return self._reader.conversation

    def waiting(self) -> WaitingFrames:
        """Return the waiting frames, oldest first."""
        waiting = self.conversation.waiting()
        nothing: tuple[int, RequestSummary | None] = (0, None)
        asked = [(number or 0, *self._asked.get(pair, nothing)) for number, pair in waiting.asked]
        early = [
            (number, self._early[pair], seen)
            for number, pair, seen in waiting.early
            if pair in self._early
        ]
        return WaitingFrames(asked, early)

    def resume(self, waiting: WaitingFrames) -> ConnectionReader:
        """Continue from another reader's state, with the oldest frames first."""
        conversation = self._reader.conversation
        for correlation_id, index, said in waiting.asked:
            if said is None:
                conversation.resume_token()
                continue
            pair = conversation.resume_request(
                known_request(said.api_key, said.api_version, correlation_id, said.client_id)
            )
            self._asked[pair] = index, said
        for correlation_id, index, seen in waiting.early:
            self._early[conversation.resume_response(correlation_id, seen)] = index
        return self

    def read(
        self, frame: CapturedFrame
    ) -> tuple[dict[str, Any], RequestSummary | None, int | None]:
        """Return the header of a frame and, for a response, the facts from its request.

        For a request whose response was captured first, the second value is the response's index.
        """
        values = self._reader.read(frame)
        pair = values.get("pair")
        if pair is None:
            return values, None, None
        if frame.direction == "response":
            _, said = self._asked.pop(pair, (0, None))
            if said is None:
                self._early[pair] = frame.index
                if len(self._early) > DEFAULT_IN_FLIGHT:
                    self._early.pop(next(iter(self._early)))
            return values, said, None
        if pair in self._early:
            return values, summarize_request(values, frame), self._early.pop(pair)
        self._asked[pair] = frame.index, summarize_request(values, frame)
        return values, None, None

    def forgotten(self) -> Iterator[int]:
        """Yield each request that is certainly no longer waiting.

        Each request is yielded only once.
        """
        while len(self._asked) > DEFAULT_IN_FLIGHT:
            index, _ = self._asked.pop(next(iter(self._asked)))
            yield index

    def unanswered(self) -> list[int]:
        """Return the requests that wait, and those that no longer wait but have no response."""
        return [index for index, _ in self._asked.values()]


def summarize_request(values: dict[str, Any], frame: CapturedFrame) -> RequestSummary:
    """Return the facts about a request that its response needs."""
    return RequestSummary(
        values["api_key"], values["api_version"], values["client_id"], frame.timestamp_us
    )


class FrameReader:
    """Read the frames of one connection into columns, without their bodies.

    Frames are read in the order in which the assembler returned them. The bytes of a token are
    never shown. The bytes of a frame that does not decode as a request or response are shown only
    if its message is known and authentication is ruled out on the connection.
    """

    def __init__(
        self,
        *,
        show_credentials: bool = False,
        conversation: Conversation | None = None,
    ) -> None:
        self._show_credentials = show_credentials
        self.conversation = conversation or Conversation()

    def read(self, frame: CapturedFrame) -> dict[str, Any]:
        """Return the columns of `FRAMES` that depend on the frame's header and on its place."""
        turn = hear(frame, self.conversation)
        values: dict[str, Any] = {"is_guarded": not self._show_credentials and turn.is_guarded}
        if turn.kind == "token":
            values["outcome"] = TOKEN
        elif turn.kind == "unread":
            values |= {"outcome": FAILED, "error": turn.error}
        if turn.correlation_id is not None:
            values |= {"correlation_id": turn.correlation_id, "pair": turn.pair}
        if frame.direction == "request" and turn.request is not None:
            values |= self._described(turn.request)
        # A response to an unknown message may contain credentials.
        is_unread = "outcome" in values and (values["is_guarded"] or "message" not in values)
        if is_unread and not self._show_credentials:
            tagged = withhold_tagged_fields(values.get("header_unknown_tagged_fields", []))
            values |= {
                "payload": None,
                "withheld_credentials": 1 if frame.payload else 0,
                "header_unknown_tagged_fields": tagged,
            }
        return values

    def _described(self, request: RequestFrame) -> dict[str, Any]:
        header: Any = request.header
        tagged, client_id = raw_tagged_fields(header.unknown_tagged_fields), request.client_id
        is_other = not is_believable(request) and client_id != self.conversation.client_id
        if is_other and not self._show_credentials:
            # Other bytes may also look like a header. The client id in such bytes would be wrong.
            client_id = None
        is_secret = carries_credentials(request.message_name) or not is_believable(request)
        if is_secret and not self._show_credentials:
            tagged = withhold_tagged_fields(tagged)
        return {
            "message": request.message_name,
            "api_key": request.api_key,
            "api_version": request.api_version,
            "correlation_id": request.correlation_id,
            "client_id": client_id,
            "header_version": request.header_version,
            "body_offset": request.body_offset,
            "client_instance_id": header_instance_id(request),
            "header_unknown_tagged_fields": tagged,
        }
