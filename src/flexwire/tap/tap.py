"""The tap: a proxy that captures the traffic between clients and all brokers of a cluster."""

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
        init.__signature__ = taken.replace(parameters=[*named, *options])  # type: ignore[attr-defined]  # functions may have one, and their type does not say so
        return init

    return decorate


class Tap:
    """A proxy in front of one cluster: ``async with Tap(listen, upstream, out) as tap: …``.

    Clients bootstrap at `listen_address`. In responses, each broker's address is replaced by that
    of a listener of the tap. A listener is opened when its broker's address is first seen, and
    remains open while the tap runs. The listener uses the next port after the first port, or any
    free port if the next port is in use. Every connection to any broker of the cluster therefore
    passes through the tap.

    The capture contains the bytes that the client and the broker actually sent, before rewriting,
    between the client's address and the broker's address. The capture therefore looks like a
    capture from the broker's machine, and contains the cluster's own addresses.

    With ``security``, the tap uses TLS on every listener and for every connection to a broker, and
    checks the name that the broker advertises. The capture is then plain text, by default without
    credentials. Without ``security``, TLS is forwarded and captured, but not decrypted: see
    `TapStatistics.tls`.

    The tap's listeners are advertised under ``advertised_host``, under the name that the client
    requested through TLS (SNI), or under the address in ``listen``. If each broker has its own tap
    with the broker's name and port, use ``keep_addresses`` to leave addresses unchanged.

    For all connections together, at most ``most_held`` bytes of incomplete frames are held. Beyond
    this limit, frames pass, but the capture contains only their beginning. These frames and their
    missing bytes are counted (`TapStatistics.shortened_frames`).

    With port 0 in ``listen``, any free port is used. ``out`` is a directory. ``max_bytes`` is the
    size of one capture file, and ``keep`` limits the files of this run in that directory. With
    ``ports``, the listeners for brokers use that range. A file in ``out`` stores the ports, so that
    the next run uses the same ones. ``sample`` is the share of connections to capture, each of them
    completely, and ``only`` selects some of their frames. Each file records both. ``stamping`` adds
    tags to the headers of forwarded requests. Comments in the capture contain these tags, next to
    the client's own bytes. ``rehearsal`` names a release, and clients get the versions of this
    release instead of the brokers' versions. ``faults`` break requests on purpose. With an empty
    `FaultPlan`, faults may be added while the tap runs (`add_fault`). With several ``processes``,
    each process handles some of the clients and writes its own capture files. A script that starts
    such a tap must be importable by `multiprocessing`.
    """

    @_takes_options(TapConfig)
    def __init__(
        self,
        listen: HostPort | tuple[str, int],
        upstream: HostPort | tuple[str, int],
        out: Path,
        **options: Any,
    ) -> None:
        """Accept the fields of `flexwire.tap.config.TapConfig` as options, by name."""
        config = TapConfig(HostPort(*listen), HostPort(*upstream), Path(out), **options)
        self._config = config
        self._listeners = Listeners(self._accepted)
        self.faults = None if config.faults is None else Faults(config.faults)
        """The configured faults, with the number of times each was applied. None without faults."""
        self._carrier: ConnectionRunner
        if config.processes > 1:
            self._carrier = ProcessRunner(config, self._listeners.port_for)
        else:
            self._carrier = LocalRunner(config, self._listeners.port_for, faults=self.faults)
        self._accepted_count = 0
        self._ending: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Begin to listen for clients.

        Raises `TapError` if the tap cannot listen, `TlsError` if it cannot use the certificates and
        keys, and `CaptureError` if it cannot use the directory.
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
        """Rehearse a release with all new connections, while the tap is running.

        A rehearsal that is already running ends. The capture continues in the next file, which
        records the rehearsal. Raises `ArgumentError` if the tap has several processes or adds
        header tags. Raises `TapError` if the brokers do not report the versions that they read, and
        `CaptureError` if that file cannot be written.
        """
        if self._config.processes > 1:
            raise refuse(
                "processes", "1, to start a rehearsal in a running tap", self._config.processes
            )
        # `dataclasses.replace` raises an error for invalid combinations.
        dataclasses.replace(self._config, rehearsal=plan)
        if self.faults is not None and self.faults.active:
            raise ArgumentError("expected either faults or a rehearsal, got both")
        learned = await asyncio.to_thread(self._learn, plan)
        self.end_rehearsal("another rehearsal begins")
        self._carrier.rehearse(learned)
        self._end_after(plan)

    def _end_after(self, plan: RehearsalPlan | None) -> None:
        if self._ending is not None:
            self._ending.cancel()
        self._ending = None
        if plan is not None and plan.seconds is not None:
            self._ending = asyncio.get_running_loop().call_later(
                plan.seconds, self.end_rehearsal, "the time is up"
            )

    async def close(self) -> None:
        """End every connection and close the capture. Calling this again has no effect."""
        self._end_after(None)
        # Connections end first, because a running connection may open another listener.
        await self._carrier.close()
        # At this point the processes have reported the refused clients.
        self.end_rehearsal("the tap has stopped")
        await self._listeners.close()

    def rotate(self) -> None:
        """Continue in the next capture file, so that the earlier files are finished."""
        self._carrier.rotate()

    @property
    def rehearsal(self) -> Rehearsal | None:
        """The current or the last rehearsal, or None if there was no rehearsal."""
        return self._carrier.rehearsal

    def end_rehearsal(self, reason: str = "on request") -> None:
        """Let all later requests pass. Connections remain open."""
        self._carrier.end_rehearsal(reason)

    def add_fault(self, fault: Fault | str) -> None:
        """Add one fault for all connections. A string is parsed by `parse_fault`.

        Raises `ArgumentError` for a string that is not a fault, for too many faults, for a tap that
        was started without ``faults`` or that adds header tags, and during a rehearsal.
        """
        if self.faults is None:
            raise ArgumentError(
                "expected a tap that was started with faults; an empty list of faults is enough"
            )
        is_rehearsing = self.rehearsal is not None and self.rehearsal.over is None
        if self._config.stamping is not None or is_rehearsing:
            raise ArgumentError("faults cannot be combined with a rehearsal or header tags")
        self.faults.add(parse_fault(fault) if isinstance(fault, str) else fault)

    def end_faults(self) -> None:
        """Let all later requests pass."""
        if self.faults is not None:
            self.faults.end()

    def _learn(self, plan: RehearsalPlan) -> RehearsalPlan:
        """Return a plan with the versions of ApiVersions that the brokers read.

        These versions are requested on a separate connection, because a connection with SASL would
        refuse a second ApiVersions request. Raises `TapError` if the brokers do not answer.
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
            "rehearsing %s: clients see only versions that %s also supports. The finalized "
            "features do not change. Not rehearsed: %s",
            plan.release,
            upstream,
            ", ".join(missing) or "no API",
        )
        return dataclasses.replace(plan, read=offered.get(api_key_of(NEGOTIATES), Versions(0, 0)))

    @property
    def stats(self) -> TapStatistics:
        """The counts, which change while the tap runs."""
        return self._carrier.stats

    def counts(self) -> TapStatistics:
        """Return the current `stats`, including the counts of capture files."""
        return self._carrier.counts()

    def openmetrics(self) -> bytes:
        """Return `counts` and some current numbers, in text form, for a monitoring system."""
        gauges = {
            "clients": self._carrier.clients,
            "listeners": len(self.listeners),
            "capture_files": len(self.capture_paths),
        }
        return openmetrics(self.counts(), gauges, flexwire.__version__)

    @property
    def listen_address(self) -> HostPort:
        """The address at which clients bootstrap, with the actual port."""
        return self.listeners[self._config.upstream]

    @property
    def listeners(self) -> dict[HostPort, HostPort]:
        """The tap's listener for each broker's advertised address."""
        return self._listeners.addresses

    @property
    def capture_paths(self) -> list[Path]:
        """The capture files so far, except those that were removed to make room."""
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
    "clients connect to the tap with TLS, but the tap connects to the brokers without TLS: anybody "
    "between the tap and the brokers can read SASL PLAIN passwords and OAUTHBEARER tokens; use "
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
    """Run a tap until SIGINT or SIGTERM, then close the capture and return the counts.

    SIGHUP makes the tap continue in the next capture file, or stop if the terminal was closed.
    SIGUSR1 ends a rehearsal and all faults. Addresses may include their security protocol, as in
    ``ssl://127.0.0.1:19093``. ``ready`` is called as soon as clients can connect. ``metrics`` is
    started and closed together with the tap, and serves its counts. Raises the errors of
    `Tap.start` and `MetricsPort.start`.
    """
    listen, upstream, security = resolve_security(listen, upstream, security)
    if security.lays_credentials_open:
        _LOG.warning(_LAID_OPEN)
    stop = asyncio.Event()
    at_terminal = os.isatty(_INPUT)
    tap = Tap(listen, upstream, out, security=security, **options)

    def hung_up() -> None:
        # After a terminal is closed, it sends nothing more, not even Ctrl-C.
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
        # Without signal handlers (on Windows, or in a thread), canceling the task stops the tap
        # just as cleanly.
        with suppress(NotImplementedError, RuntimeError, ValueError, AttributeError):
            number = getattr(signal, name)
            loop.add_signal_handler(number, handler)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
