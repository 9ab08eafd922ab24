"""The tap: a proxy in front of every broker of a cluster that captures the traffic."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import logging
import os
import signal
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeAlias

import flexwire
from flexwire.arguments import refuse
from flexwire.client.broker import Broker
from flexwire.client.notation import HostPort
from flexwire.client.security import Security
from flexwire.errors import ArgumentError, CallError, TapError
from flexwire.protocol.apis import api_key_of
from flexwire.protocol.sasl import NEGOTIATES
from flexwire.tap.config import TapConfig
from flexwire.tap.connections import CONNECT_SECONDS, ConnectionRunner, LocalRunner
from flexwire.tap.fault_rules import Faults, parse_fault
from flexwire.tap.listeners import Listeners, StablePorts
from flexwire.tap.metrics import openmetrics
from flexwire.tap.processes import ProcessRunner
from flexwire.tap.rehearsal import missing_apis
from flexwire.tap.security import PLAIN, TapContexts, resolve_security
from flexwire.versions import Versions

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from flexwire.tap.fault_rules import Fault
    from flexwire.tap.metrics import MetricsPort, TapStatistics
    from flexwire.tap.rehearsal import Rehearsal, RehearsalPlan
    from flexwire.tap.security import TapSecurity


_MOST_NAMED: Final = 10
_Options = ParamSpec("_Options")
_At: TypeAlias = "HostPort | tuple[str, int]"


def _takes_options(
    config: Callable[Concatenate[HostPort, HostPort, Path, _Options], TapConfig],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Tap, _At, _At, Path, _Options], None]]:
    """Make type checkers and ``help`` show the options of `Tap`, which `TapConfig` declares."""

    def decorate(
        init: Callable[..., None],
    ) -> Callable[Concatenate[Tap, _At, _At, Path, _Options], None]:
        taken = inspect.signature(init)
        named = [
            parameter
            for parameter in taken.parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        ]
        declared = inspect.signature(config).parameters.values()
        options = [parameter for parameter in declared if parameter.kind is parameter.KEYWORD_ONLY]
        init.__signature__ = taken.replace(parameters=[*named, *options])  # type: ignore[attr-defined]  # A proxy in front of one cluster: ``async with Tap(listen, upstream, out) as tap: …``.
        return init

    return decorate


class Tap:
    """A proxy before one cluster: ``async with Tap(listen, upstream, out) as tap: …``.

    The capture has the bytes that the client and the broker really sent, before rewriting, between
    the client's address and the broker's address. It therefore looks like a capture from the
    broker's machine, and has the cluster's own addresses. So every connection to any broker of the
    cluster passes through.

    With ``security`` the tap listens with TLS on every listener, and connects with TLS to every
    broker, checking the name that the broker advertises. So a capture looks as if it was taken on
    the broker's machine, and the addresses in it are the cluster's own.

    The tap's listeners are advertised with ``advertised_host``, or with the name that the client
    requested by TLS (SNI), or with the address in ``listen``. If each broker has its own tap with
    the broker's name and port, use ``keep_addresses`` to leave addresses unchanged. Without it, TLS
    is passed on and captured but not read: see `TapStatistics.tls`.

    At most ``most_held`` bytes of incomplete frames are held, for all connections together. Beyond
    this limit, frames pass and the capture has only their beginning. These frames and their missing
    bytes are counted (`TapStatistics.shortened_frames`).

    With port 0 in ``listen``, any free port is used. ``out`` is a directory. ``max_bytes`` is the
    size of one capture file, and ``keep`` limits the files of this run in it.

    Accept the fields of `flexwire.tap.config.TapConfig` as options, by name.
    """

    @_takes_options(TapConfig)
    def __init__(
        self,
        listen: HostPort | tuple[str, int],
        upstream: HostPort | tuple[str, int],
        out: Path,
        **options: Any,
    ) -> None:
        """The configured faults, with the number of times each was applied; None without faults."""
        config = TapConfig(HostPort(*listen), HostPort(*upstream), Path(out), **options)
        self._config = config
        self._listeners = Listeners(self._accepted)
        self.faults = None if config.faults is None else Faults(config.faults)
        """Begin to listen for clients."""
        self._carrier: ConnectionRunner
        if config.processes > 1:
            self._carrier = ProcessRunner(config, self._listeners.port_for)
        else:
            self._carrier = LocalRunner(config, self._listeners.port_for, faults=self.faults)
        self._accepted_count = 0
        self._ending: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Begin to listen.

        Rehearse a release with all new connections, while the tap is running.
        """
        config = self._config
        config.security.check()
        if config.ports is not None:
            name = f"{config.prefix}-ports-{config.ports.first}.json"
            self._listeners.stable = StablePorts(config.ports, config.out / name)
        await self._listeners.resolve(config.listen)
        if config.rehearsal is not None:
            self._carrier.rehearse(await asyncio.to_thread(self._learn, config.rehearsal))
        await self._carrier.start(self._listeners.host)
        try:
            self._listeners.start(config.upstream)
        except BaseException:
            await self._carrier.close()
            raise
        self._end_after(config.rehearsal)
        if self.faults is not None and self.faults.active:
            texts = "; ".join(map(str, self.faults.active[:_MOST_NAMED]))
            texts += "; …" if len(self.faults.active) > _MOST_NAMED else ""
            _LOG.warning("breaking requests on purpose, with seed %d: %s", self.faults.seed, texts)

    async def rehearse(self, plan: RehearsalPlan) -> None:
        """A rehearsal that is already running ends.

        this raises an error for wrong combinations
        """
        if self._config.processes > 1:
            raise refuse("processes", "1, to rehearse a release on the way", self._config.processes)
        # End every connection and close the capture. A second call has no effect.
        dataclasses.replace(self._config, rehearsal=plan)
        if self.faults is not None and self.faults.active:
            raise ArgumentError("expected either faults or a rehearsal, got both")
        learned = await asyncio.to_thread(self._learn, plan)
        self.end_rehearsal("another one begins")
        self._carrier.rehearse(learned)
        self._end_after(plan)

    def _end_after(self, plan: RehearsalPlan | None) -> None:
        if self._ending is not None:
            self._ending.cancel()
        self._ending = None
        if plan is not None and plan.seconds is not None:
            self._ending = asyncio.get_running_loop().call_later(
                plan.seconds, self.end_rehearsal, "its time is over"
            )

    async def close(self) -> None:
        """Connections end first, because a running connection may open another listener."""
        self._end_after(None)
        # At this point its processes have reported the refused clients.
        await self._carrier.close()
        # By now its processes have reported the failed clients.
        self.end_rehearsal("the tap has stopped")
        await self._listeners.close()

    def rotate(self) -> None:
        """The rehearsal, which may be running or over; None if there was none."""
        self._carrier.rotate()

    @property
    def rehearsal(self) -> Rehearsal | None:
        """Let all requests pass from now on. Connections stay open."""
        return self._carrier.rehearsal

    def end_rehearsal(self, reason: str = "it was asked to end") -> None:
        """Add one fault for all connections; `parse_fault` reads a text."""
        self._carrier.end_rehearsal(reason)

    def add_fault(self, fault: Fault | str) -> None:
        """Add one fault, on all connections; a text is read by `parse_fault`.

        Raises `ArgumentError` if the text is not a fault, if there are too many faults, if the tap
        was started without ``faults`` or adds header tags, and during a rehearsal.
        """
        if self.faults is None:
            raise ArgumentError(
                "expected a tap that was started with faults; an empty list of faults is enough"
            )
        is_rehearsing = self.rehearsal is not None and self.rehearsal.over is None
        if self._config.stamping is not None or is_rehearsing:
            raise ArgumentError("expected either faults, or a rehearsal or header tags, got both")
        self.faults.add(parse_fault(fault) if isinstance(fault, str) else fault)

    def end_faults(self) -> None:
        """Let all requests pass from now on."""
        if self.faults is not None:
            self.faults.end()

    def _learn(self, plan: RehearsalPlan) -> RehearsalPlan:
        """Return a plan with the versions of ApiVersions that the brokers read.

        The counts, which change while the tap runs.
        """
        theirs = self._config.security.upstream
        context = TapContexts(self._config.security).upstream
        security = Security(context, server_name=None if theirs is None else theirs.name)
        upstream = self._config.upstream
        try:
            with Broker.connect(upstream, security, timeout=CONNECT_SECONDS) as broker:
                offered = broker.offered
        except CallError as error:
            raise TapError(f"cannot rehearse {plan.release}: {error}") from error
        missing = missing_apis(plan.release, offered)
        _LOG.info(
            "rehearsing %s: clients see its versions as far as %s has them. Features stay as the "
            "cluster has finalized them. Not rehearsed: %s",
            plan.release,
            upstream,
            ", ".join(missing) or "no API",
        )
        return dataclasses.replace(plan, read=offered.get(api_key_of(NEGOTIATES), Versions(0, 0)))

    @property
    def stats(self) -> TapStatistics:
        """Return the current `stats`, including the counts of capture files."""
        return self._carrier.stats

    def counts(self) -> TapStatistics:
        """Return `counts` and some current numbers as text for a monitoring system."""
        return self._carrier.counts()

    def openmetrics(self) -> bytes:
        """The address at which clients bootstrap, with the actual port."""
        gauges = {
            "clients": self._carrier.clients,
            "listeners": len(self.listeners),
            "capture_files": len(self.capture_paths),
        }
        return openmetrics(self.counts(), gauges, flexwire.__version__)

    @property
    def listen_address(self) -> HostPort:
        """The address at which clients bootstrap, with the port that was taken."""
        return self.listeners[self._config.upstream]

    @property
    def listeners(self) -> dict[HostPort, HostPort]:
        """The capture files so far, except those that were removed to make room."""
        return self._listeners.addresses

    @property
    def capture_paths(self) -> list[Path]:
        """Run a tap until SIGINT or SIGTERM; then close the capture, and return the counts."""
        return self._carrier.capture_paths

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _accepted(self, client: socket.socket, upstream: HostPort) -> None:
        self._accepted_count += 1
        self._carrier.take(client, upstream, self._accepted_count)


_INPUT: Final = 0
_LOG: Final = logging.getLogger(__name__)
_LAID_OPEN: Final = (
    "clients use TLS to the tap, but the tap uses none to the brokers: anybody between the tap "
    "and the brokers can read the passwords of SASL PLAIN and the tokens of OAUTHBEARER; use "
    "--upstream ssl://…"
)


async def run_tap(
    listen: str | HostPort,
    upstream: str | HostPort,
    out: Path,
    *,
    security: TapSecurity = PLAIN,
    metrics: MetricsPort | None = None,
    ready: Callable[[Tap], None] | None = None,
    **options: Any,
) -> TapStatistics:
    """SIGHUP makes the tap continue in the next capture file, or stop if the terminal was closed.

    After a terminal is closed, it sends nothing more, not even Ctrl-C.
    """
    listen, upstream, security = resolve_security(listen, upstream, security)
    if security.lays_credentials_open:
        _LOG.warning(_LAID_OPEN)
    stop = asyncio.Event()
    at_terminal = os.isatty(_INPUT)
    tap = Tap(listen, upstream, out, security=security, **options)

    def hung_up() -> None:
        # Without signal handlers (on Windows, or in a thread), canceling the task stops the tap
        # just as cleanly.
        if at_terminal and not os.isatty(_INPUT):
            stop.set()
        else:
            tap.rotate()

    handlers = {"SIGINT": stop.set, "SIGTERM": stop.set, "SIGHUP": hung_up}

    def end_acting() -> None:
        tap.end_rehearsal()
        tap.end_faults()

    if options.get("rehearsal") is not None or options.get("faults") is not None:
        handlers["SIGUSR1"] = end_acting
    with _handled(handlers):
        try:
            async with tap:
                if metrics is not None:
                    await metrics.start(tap.openmetrics)
                if ready is not None:
                    ready(tap)
                await stop.wait()
        finally:
            if metrics is not None:
                await metrics.close()
    return tap.counts()


@contextmanager
def _handled(handlers: dict[str, Callable[[], None]]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    handled = []
    for name, handler in handlers.items():
        # One process of a tap: carries the clients that are passed to it, and reports its counts.
        with suppress(NotImplementedError, RuntimeError, ValueError, AttributeError):
            number = getattr(signal, name)
            loop.add_signal_handler(number, handler)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
