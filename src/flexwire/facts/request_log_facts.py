"""What the facts say of brokers' request logs, where an analysis was given some."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListenerFacts:
    """A listener of brokers: the requests that came to it, and those of replicas that fetch.

    ``name`` and ``security_protocol`` are None where lines were cut off before them.
    """

    name: str | None
    security_protocol: str | None
    requests: int
    replica_fetches: int = 0


@dataclass(frozen=True, slots=True)
class RequestLogFacts:
    """The figures of all request logs that were read; the rest of the facts says what is in them.

    ``requests`` are those that clients and brokers sent themselves, ``forwarded`` those that
    brokers forwarded to the controller for clients. ``refused`` are requests that brokers' own logs
    say they could not read. Of ``cut`` lines only the request's header is known; ``text`` lines are
    those of 2.7 and earlier that do not surely say what was asked. ``left_out_fields`` are
    mandatory fields that brokers left out of bodies. ``only_deprecated``: every line has a version
    that is deprecated, as at the level INFO. ``listeners`` may be the first of ``listener_count``,
    and ``requests_beyond`` are those of listeners that were too many to be told apart.
    """

    files: int
    server_logs: int
    lines: int
    requests: int
    forwarded: int = 0
    refused: int = 0
    cut: int = 0
    text: int = 0
    unused: int = 0
    left_out_fields: int = 0
    only_deprecated: bool = False
    timezone: str = "UTC"
    listeners: tuple[ListenerFacts, ...] = ()
    listener_count: int = 0
    requests_beyond: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is a request log, and no line in it is a request."""
        return bool(self.files) and not (self.requests + self.forwarded + self.cut + self.text)
