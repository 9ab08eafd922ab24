"""One chunk's frames while they are read: a kernel takes the plain ones, and objects the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from flexwire.capture.pairing.turns_apis import SECRETS, Apis, apis
from flexwire.capture.reassembly.frames import taken
from flexwire.columnar.program import address
from flexwire.kernels.capture import turns_layout as L  # noqa: N812 - a word in front of some fifty

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.capture.pairing.turns_objects import Said
    from flexwire.capture.pairing.turns_state import Clients, Waiting
    from flexwire.capture.reassembly.frames import FrameColumns

    Words = np.ndarray[Any, Any]

_INT32 = (
    ("api_key", L.T_API_KEY),
    ("api_version", L.T_API_VERSION),
    ("correlation_id", L.T_CORRELATION_ID),
    ("client", L.T_CLIENT),
    ("header_version", L.T_HEADER_VERSION),
    ("body_offset", L.T_BODY_OFFSET),
)
_BYTES = (
    ("kind", L.T_KIND),
    ("is_expected", L.T_IS_EXPECTED),
    ("is_guarded", L.T_GUARDED),
    ("flags", L.T_FLAGS),
    ("is_given", L.T_GIVEN),
)


@dataclass(slots=True, eq=False)
class Facts:
    """What the headers of a chunk's frames say, a row a frame.

    ``kind`` is `UNREAD`, `REQUEST` (also of a damaged one whose header can be read), `UNPAIRED` or
    `ANSWER`, as `turns_layout` numbers them, and decides which columns have a meaning: for a
    response api key, version, client id and ``request_time`` are its request's. ``client`` numbers
    ``clients``. ``is_expected`` says of a request whether it expects a response. ``odd`` has what
    `FrameReader` told of the rows that were not plain. ``flags`` are those of a plain row's
    connection after it.

    A row that ``is_given`` was read before: its kind, correlation id and flags, and of a request
    api key, version, client id and whether it is expected, stand there already.
    """

    kind: Words
    api_key: Words
    api_version: Words
    correlation_id: Words
    client: Words
    header_version: Words
    body_offset: Words
    request_time: Words
    is_expected: Words
    is_guarded: Words
    flags: Words
    is_given: Words
    clients: list[str]
    odd: dict[int, dict[str, Any]]

    @classmethod
    def fresh(cls, rows: int, clients: list[str]) -> Facts:
        """Room for so many rows, of which nothing was read."""
        columns: dict[str, Any] = {name: np.zeros(rows, np.int32) for name, _ in _INT32}
        columns |= {name: np.zeros(rows, np.uint8) for name, _ in _BYTES}
        return cls(**columns, request_time=np.zeros(rows, np.int64), clients=clients, odd={})

    @classmethod
    def joined(cls, parts: Sequence[Facts], clients: list[str]) -> Facts:
        """Give all rows of the parts, whose clients count in the same; none of them is odd."""
        fresh = cls.fresh(0, clients)
        names = [name for name, _ in (*_INT32, *_BYTES)]
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(one, name) for one in (fresh, *parts)])
            for name in (*names, "request_time")
        }
        return replace(fresh, **columns)

    def take(self, rows: Words) -> Facts:
        """Give what some of the frames say, in the order of ``rows``."""
        names = [name for name, _ in (*_INT32, *_BYTES)]
        some = {name: getattr(self, name)[rows] for name in (*names, "request_time")}
        return replace(self, **some, odd=taken(self.odd, rows))

    def tell(self, row: int, told: dict[str, Any], client: int) -> None:
        """Take in what `FrameReader` told of a request, or of what was not read."""
        self.odd[row] = told
        self.is_guarded[row] = told["is_guarded"]
        self.is_expected[row] = "message" in told and told.get("pair") is not None
        if "message" in told:
            self.kind[row] = L.REQUEST
            self.client[row] = client
            for name in ("api_key", "api_version", *_HEADER):
                getattr(self, name)[row] = told[name]

    def answer(self, row: int, told: dict[str, Any], said: Said | None, client: int) -> None:
        """Take in what `FrameReader` told of a response whose header was read, and its request."""
        if "outcome" in told:
            self.odd[row] = told
        self.is_guarded[row] = told["is_guarded"]
        self.correlation_id[row] = told["correlation_id"]
        self.kind[row] = L.UNPAIRED if said is None else L.ANSWER
        if said is not None:
            self.api_key[row], self.api_version[row], _, self.request_time[row] = said
            self.client[row] = client


_HEADER = ("correlation_id", "header_version", "body_offset")


class Run:
    """The words of a run over one chunk, and the memory that they point to."""

    def __init__(
        self, frames: FrameColumns, numbers: Words, facts: Facts, waiting: Waiting, clients: Clients
    ) -> None:
        self.table: Apis = apis()
        self.frames, self.facts, self.waiting = frames, facts, waiting
        rows = len(frames)
        errors = np.zeros(rows, np.uint8)
        errors[list(frames.error)] = 1
        self.forgotten = np.empty((rows, L.FORGOT // 8), np.int64)
        self.early = np.empty((rows, L.LATER // 8), np.int64)
        self._secrets = [np.frombuffer(one, np.uint8) for one in SECRETS]
        extents = np.array([(address(one), len(one)) for one in self._secrets], np.int64)
        columns: dict[int, tuple[Words, type]] = {
            L.T_CONNECTION: (frames.connection, np.int32),
            L.T_IS_RESPONSE: (frames.is_response, np.bool_),
            L.T_INDEX: (frames.index, np.int64),
            L.T_TIME: (frames.time_us, np.int64),
            L.T_START: (frames.start, np.int64),
            L.T_STOP: (frames.stop, np.int64),
            L.T_ERRORS: (errors, np.uint8),
            L.T_NUMBERS: (numbers, np.int64),
            L.T_REQUEST_TIME: (facts.request_time, np.int64),
            L.T_FORGOTTEN: (self.forgotten, np.int64),
            L.T_EARLY: (self.early, np.int64),
            L.T_TABLE: (self.table.words, np.int64),
            L.T_SECRETS: (extents, np.int64),
            **{word: (getattr(facts, name), np.int32) for name, word in _INT32},
            **{word: (getattr(facts, name), np.uint8) for name, word in _BYTES},
        }
        self._held: dict[int, Words] = {
            word: np.ascontiguousarray(values, kind) for word, (values, kind) in columns.items()
        }
        for word, values in self._held.items():
            waiting.set(word, address(values) if values.size else 0)
        self._data = np.ascontiguousarray(frames.data)
        waiting.set(L.T_DATA, address(self._data) if self._data.size else 0)
        waiting.set(L.T_AT, 0)
        waiting.set(L.T_END, rows)
        waiting.set(L.T_KEYS, len(self.table.words))
        waiting.set(L.T_VERSIONS, self.table.versions)
        for word in (L.T_PREPARED, L.T_TRIED):
            waiting.set(word, L.NOWHERE)
        for word in (L.T_FORGOTTEN_COUNT, L.T_EARLY_COUNT):
            waiting.set(word, 0)
        self.use(clients)

    def use(self, clients: Clients) -> None:
        """Go on with more client ids."""
        self.waiting.set(L.T_CLIENTS, address(clients.table))
        self.waiting.set(L.T_CLIENT_MASK, len(clients.table) - 1)
        self.waiting.set(L.T_CLIENT_EXTENTS, address(clients.extents))

    def read_again(self, row: int) -> None:
        """Have the kernel read a row by its first bytes, though the frame is damaged."""
        self._held[L.T_ERRORS][row] = 0

    def prepare(self, row: int, *, expects: bool) -> None:
        """Have the kernel take a request that stands in the columns."""
        self.read_again(row)
        self.waiting.set(L.T_PREPARED, row)
        self.waiting.set(L.T_EXPECTS, int(expects))

    def number(self, row: int) -> int:
        """Give which of the states is that of a row's connection."""
        return int(self._held[L.T_NUMBERS][self.frames.connection[row]])

    def skip(self) -> None:
        """Go on after a row of which nothing waits."""
        self.waiting.set(L.T_AT, self.waiting.get(L.T_AT) + 1)
