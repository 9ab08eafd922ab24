"""The facts about rehearsals: the clients that a tap refused, and those that work again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from flexwire.facts.units import count, plural

MOST_REFUSED: Final = 200
"""The maximum number of refused clients that the facts list."""


@dataclass(frozen=True, slots=True)
class RefusedClient:
    """A client that a tap refused in a rehearsal of a release: its address and client id.

    ``requests`` contains some of the refused requests, such as "Produce v2". ``times`` is the
    number of refusals, and the two moments are those of the first and the last refusal.
    ``works_time_us`` is the time when a request of the same API was first answered afterwards, and
    ``works_with`` is that request. Both are None if the capture contains no such request.
    ``returned`` is true if the client sent anything afterwards. A ``client_id`` has at most 200
    characters.
    """

    release: str
    host: str
    client_id: str | None
    requests: tuple[str, ...]
    times: int
    first_time_us: int
    last_time_us: int
    works_time_us: int | None = None
    works_with: str | None = None
    returned: bool = False


@dataclass(frozen=True, slots=True)
class RehearsalFacts:
    """Captures of taps that rehearsed ``releases``, and the numbers of affected requests.

    ``narrowed`` counts responses from which versions were removed. For ``sent_on`` of these, the
    request was forwarded in another version. ``unsupported`` counts requests that were answered
    with error 35, and ``closed`` counts requests that ended their connection. ``refused`` contains
    the clients that sent these ``closed`` requests, starting with the most refusals. It may be
    incomplete, but ``refused_count`` includes all clients. If a file has very many clients, it
    lists only some of them, and ``beyond`` counts the requests of the others.
    """

    releases: tuple[str, ...] = ()
    files: int = 0
    narrowed: int = 0
    sent_on: int = 0
    unsupported: int = 0
    closed: int = 0
    refused: tuple[RefusedClient, ...] = ()
    refused_count: int = 0
    beyond: int = 0

    @property
    def sentence(self) -> str:
        """The captures of rehearsals and the number of refused clients, in a sentence.

        >>> print(RehearsalFacts(("4.4.0",), 1, closed=3, refused_count=2).sentence)
        1 capture is from a tap that rehearsed 4.4.0. The tap refused 2 clients in 3 requests.
        """
        files = f"{plural(self.files, 'capture')} {'is' if self.files == 1 else 'are'} from a tap"
        least = "at least " if self.beyond else ""
        refused = (
            f"refused {least}{plural(self.refused_count, 'client')} "
            f"in {plural(self.closed, 'request')}"
            if self.closed
            else "refused no client"
        )
        return f"{files} that rehearsed {', '.join(self.releases)}. The tap {refused}."

    @property
    def outcomes(self) -> tuple[int, int, int]:
        """How many ``refused`` clients work again, came back, or were not seen again."""
        works = sum(client.works_time_us is not None for client in self.refused)
        returned = sum(client.returned for client in self.refused) - works
        return works, returned, len(self.refused) - works - returned

    @property
    def outcome_sentence(self) -> str:
        """How many clients came back, in a sentence.

        >>> gone = RefusedClient("4.4.0", "10.0.0.7", "a", ("Produce v2",), 1, 0, 0)
        >>> print(RehearsalFacts(("4.4.0",), 1, refused=(gone,), refused_count=1).outcome_sentence)
        Afterwards, 0 worked again, 0 came back but were not seen to work, and 1 was not seen again.
        """
        works, returned, gone = self.outcomes
        shown = (
            f"Of the {count(len(self.refused))} shown, "
            if len(self.refused) < self.refused_count
            else "Afterwards, "
        )
        return (
            f"{shown}{count(works)} worked again, {count(returned)} came back "
            f"but {'was' if returned == 1 else 'were'} not seen to work, and {count(gone)} "
            f"{'was' if gone == 1 else 'were'} not seen again."
        )
