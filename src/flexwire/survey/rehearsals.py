"""Read the actions of taps that rehearse a release from the comments in their captures.

Each task reads one file that is marked as written by such a tap. The results of all files are added
up. The comments are attached to packets, so all packets of the file are read. The tables show only
what was sent, not what the tap did.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.capture.files.comments import rehearsed_in
from flexwire.capture.files.reading import open_capture, packets_of
from flexwire.survey.request import make_opener

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.capture.files.comments import RehearsedRequest
    from flexwire.storage.input_file import InputFile

MOST_CLIENTS: Final = 2_000
"""The largest number of refused clients that are counted separately per file. This number limits
the size of a task's result.
"""
_MOST_REQUESTS: Final = 5
CLOSED: Final = "closed"


class RefusedKey(NamedTuple):
    """A client that a tap refused, as the rehearsed release would. The address has no port."""

    release: str
    host: str
    client_id: str | None


@dataclass(slots=True)
class ClientRefusals:
    """A client's refusals: their number, first and last time, and first distinct requests."""

    first_us: int
    last_us: int
    times: int = 0
    requests: list[str] = field(default_factory=list)

    def add(self, other: ClientRefusals) -> None:
        """Add more refusals of the same client."""
        self.first_us = min(self.first_us, other.first_us)
        self.last_us = max(self.last_us, other.last_us)
        self.times += other.times
        every = dict.fromkeys([*self.requests, *other.requests])
        self.requests = [*every][:_MOST_REQUESTS]


@dataclass(slots=True)
class RehearsedTraffic:
    """The actions of taps on requests.

    The counts are kept by kind of request, and for each client that was refused.

    ``beyond`` counts the requests of clients beyond the limit for separately counted clients.
    """

    did: Counter[str] = field(default_factory=Counter)
    refused: dict[RefusedKey, ClientRefusals] = field(default_factory=dict)
    beyond: int = 0

    def see(self, request: RehearsedRequest, most: int = MOST_CLIENTS) -> None:
        """Count the action of a tap on a request."""
        self.did[request.did] += 1
        if request.did != CLOSED:
            return
        client = RefusedKey(request.release, host_of(request.client), request.client_id)
        if client not in self.refused and len(self.refused) >= most:
            self.beyond += 1
            return
        at_us = request.timestamp_us
        named = [] if request.request is None else [request.request]
        self._add(client, ClientRefusals(at_us, at_us, 1, named))

    def add(self, other: RehearsedTraffic) -> None:
        """Add the counts of another file."""
        self.did.update(other.did)
        self.beyond += other.beyond
        for client, refusals in other.refused.items():
            self._add(client, refusals)

    def _add(self, client: RefusedKey, refusals: ClientRefusals) -> None:
        if (there := self.refused.get(client)) is None:
            self.refused[client] = refusals
        else:
            there.add(refusals)


def host_of(end: str) -> str:
    """Return the address of a connection's endpoint, without the port.

    >>> host_of("10.0.0.7:50123"), host_of("[::1]:50123")
    ('10.0.0.7', '[::1]')
    """
    return end.rpartition(":")[0]


def read_rehearsal(source: InputFile) -> RehearsedTraffic:
    """Return the actions of the tap that wrote a capture file.

    Raises `StorageError` for a file that is gone or changed, and `CaptureError` if it is not a
    capture.
    """
    traffic = RehearsedTraffic()
    with open_capture(source.name, make_opener([source])) as (file, _):
        for request in rehearsed_in(packets_of(source.name, file)):
            traffic.see(request)
    return traffic


def join(parts: Iterable[RehearsedTraffic]) -> RehearsedTraffic:
    """Return the sums over all files."""
    whole = RehearsedTraffic()
    for part in parts:
        whole.add(part)
    return whole
