"""A cluster: each request goes to the broker that its route names, over one connection each."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from flexwire.arguments import to_int, to_version
from flexwire.client.broker import DEFAULT_CLIENT_ID, LATEST, Broker, parse_address
from flexwire.client.connection import DEFAULT_SECONDS, Closing
from flexwire.client.routes import ANY, Route, addresses, find, parse_route
from flexwire.client.security import PLAINTEXT, Security
from flexwire.client.writing import why_it_writes
from flexwire.errors import (
    CallError,
    CodecError,
    FrameError,
    LoginError,
    VersionNotOfferedError,
)
from flexwire.protocol import DEFAULT_FRAME_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flexwire.client.answers import Answer
    from flexwire.client.host_port import HostPort
    from flexwire.codec import Message

RETRIES: Final = 5
"""How often a request that went to the wrong broker is sent again where that is asked for."""

_FIRST_PAUSE: Final = 0.2


class Cluster(Closing):
    """A cluster by the address of one of its brokers, or of several: "one:9092,two:9092".

    Connections are opened when they are needed and kept, one to each broker. ``controllers``: the
    addresses are of the controllers' own listener.
    """

    def __init__(
        self,
        bootstrap: str,
        security: Security = PLAINTEXT,
        *,
        client_id: str | None = DEFAULT_CLIENT_ID,
        timeout: float = DEFAULT_SECONDS,
        frame_limit: int = DEFAULT_FRAME_LIMIT,
        controllers: bool = False,
    ) -> None:
        self._bootstrap = [parse_address(one) for one in bootstrap.split(",")]
        self._security = security
        self._controllers = controllers
        self._options: dict[str, Any] = {
            "client_id": client_id,
            "timeout": timeout,
            "frame_limit": frame_limit,
        }
        self._brokers: dict[HostPort, Broker] = {}

    def broker(self, route: Route | str = ANY) -> Broker:
        """Find the broker of a route, asking the cluster anew, and connect to it."""
        route = parse_route(route) if isinstance(route, str) else route
        first = self._first()
        return self._connected(find(route, first, among_controllers=self._controllers))

    def call(
        self,
        message_name: str,
        body: Message | Mapping[str, Any] | None = None,
        version: int | str = LATEST,
        *,
        to: Route | str = ANY,
        retries: int = 0,
        **options: Any,
    ) -> Answer:
        """Send a request to a route's broker and return the answer; see `Broker.call`.

        An answer that says that another broker answers (NOT_LEADER_OR_FOLLOWER, NOT_COORDINATOR,
        NOT_CONTROLLER) or this one in a moment is given as it is, or with ``retries`` asked for
        again so often, after the route was looked up anew. A request that may change something is
        sent again only where no part of it succeeded.
        """
        return self.ask(message_name, body, version, to=to, retries=retries, **options).exact()

    def ask(
        self,
        message_name: str,
        body: Message | Mapping[str, Any] | None = None,
        version: int | str = LATEST,
        *,
        to: Route | str = ANY,
        retries: int = 0,
        **options: Any,
    ) -> Answer:
        """Do what `call` does, but return an answer that is not Kafka's too; see `Broker.ask`.

        With ``any_version=False`` the broker is asked first which versions it offers, and one that
        is not among them raises `VersionNotOfferedError`.
        """
        any_version = options.pop("any_version", True)
        to_int(retries, "retries", least=0)
        route = parse_route(to) if isinstance(to, str) else to
        pause = _FIRST_PAUSE
        asked: list[HostPort] = []
        for left in range(retries, -1, -1):
            try:
                broker = self._other(asked) if asked and route == ANY else self.broker(route)
            except LoginError:
                raise
            except CallError:
                if not left:
                    raise
            else:
                if version != LATEST and not any_version:
                    broker = self._checked(broker, message_name, to_version(version))
                answer = broker.ask(message_name, body, version, **options)
                if not left or not _goes_again(answer):
                    return answer
                asked.append(broker.address)
            time.sleep(pause)
            pause *= 2
        raise AssertionError  # the last turn returns or raises

    def _checked(self, broker: Broker, message_name: str, version: int) -> Broker:
        """The broker, if it offers a version or does not say what it offers."""
        try:
            broker.check_version(message_name, version)
        except VersionNotOfferedError:
            raise
        except (CallError, CodecError, FrameError):
            # Brokers that do not know ApiVersions close the connection; others answer nonsense.
            broker.close()
            return self._connected(broker.address)
        return broker

    def close(self) -> None:
        """End all connections."""
        for broker in self._brokers.values():
            broker.close()
        self._brokers.clear()

    def _other(self, asked: list[HostPort]) -> Broker:
        """A connection to a broker that was not asked, or not for longest."""
        first = self._first()
        every = addresses(first, among_controllers=self._controllers) or [first.address]
        fresh = [one for one in every if one not in asked]
        return self._connected(fresh[0] if fresh else min(every, key=_latest_in(asked)))

    def _first(self) -> Broker:
        """A connection to the first bootstrap address that can be reached."""
        failed = []
        for address in self._bootstrap:
            try:
                return self._connected(address)
            except LoginError:
                raise
            except CallError as error:
                failed.append(str(error))
        raise CallError("; ".join(failed))

    def _connected(self, address: HostPort) -> Broker:
        known = self._brokers.get(address)
        if known is None or not known.is_open:
            known = Broker.connect(address, self._security, **self._options)
            self._brokers[address] = known
        return known


def _latest_in(asked: list[HostPort]) -> Callable[[HostPort], int]:
    """By how late each stands in a list."""
    return {one: at for at, one in enumerate(asked)}.__getitem__


def _goes_again(answer: Answer) -> bool:
    reads = why_it_writes(answer.api_name, answer.request) is None
    return answer.is_moved and (reads or answer.did_nothing)
