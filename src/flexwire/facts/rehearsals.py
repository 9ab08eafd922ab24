"""The facts of rehearsals: whom a tap refused in the name of a release, and who works again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from flexwire.facts.units import count, plural

MOST_REFUSED: Final = 200
"""The facts name so many refused clients at most."""


@dataclass(frozen=True, slots=True)
class RefusedClient:
    """A client that a tap refused in a rehearsal of a release: its address and client id.

    ``requests`` are the refused requests, as "Produce v2"; there may be more. The client was
    refused ``times``, for the first and the last time at these moments. Afterwards a request of the
    same API was answered for the first time at ``works_time_us``, and ``works_with`` is that
    request; both are None if the capture has none. ``returned`` says whether the client sent
    anything afterwards. A ``client_id`` has at most 200 characters.
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
    """Captures of taps that rehearsed ``releases``, and what these taps did, in requests.

    ``narrowed`` responses lost versions, ``sent_on`` of them in another version. ``unsupported``
    requests were answered with error 35, and on ``closed`` ones the connection was closed.
    ``refused`` are the clients of these, most often refused first; they may be the first of
    ``refused_count``, which leaves out clients of files with very many. There ``beyond`` requests
    are of clients that are not counted.
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
        """Say which captures are of rehearsals, and how many clients were refused.

        >>> print(RehearsalFacts(("4.4.0",), 1, closed=3, refused_count=2).sentence)
        1 capture is of a tap that rehearsed 4.4.0, and refused 2 clients by 3 requests.
        """
        files = f"{plural(self.files, 'capture')} {'is' if self.files == 1 else 'are'} of a tap"
        least = "at least " if self.beyond else ""
        refused = (
            f"refused {least}{plural(self.refused_count, 'client')} "
            f"by {plural(self.closed, 'request')}"
            if self.closed
            else "refused no client"
        )
        return f"{files} that rehearsed {', '.join(self.releases)}, and {refused}."

    @property
    def outcomes(self) -> tuple[int, int, int]:
        """How many of ``refused`` work again, came back, and were not seen again."""
        works = sum(client.works_time_us is not None for client in self.refused)
        returned = sum(client.returned for client in self.refused) - works
        return works, returned, len(self.refused) - works - returned

    @property
    def outcome_sentence(self) -> str:
        """Say who came back.

        >>> gone = RefusedClient("4.4.0", "10.0.0.7", "a", ("Produce v2",), 1, 0, 0)
        >>> print(RehearsalFacts(("4.4.0",), 1, refused=(gone,), refused_count=1).outcome_sentence)
        Afterwards 0 work again, 0 came back but were not seen to work, and 1 was not seen again.
        """
        works, returned, gone = self.outcomes
        shown = (
            f"Of the {count(len(self.refused))} shown, "
            if len(self.refused) < self.refused_count
            else "Afterwards "
        )
        return (
            f"{shown}{count(works)} work{'s' * (works == 1)} again, {count(returned)} came back "
            f"but {'was' if returned == 1 else 'were'} not seen to work, and {count(gone)} "
            f"{'was' if gone == 1 else 'were'} not seen again."
        )
