"""A pytest fixture that puts a tap in front of any broker and returns the frames that were sent.

To use it, write ``pytest_plugins = ["flexwire.pytest_plugin"]`` in a ``conftest.py``. The tap runs
in a separate thread, so tests may block or be coroutines, and clients may run in other processes.
The plug-in needs no extra. The plug-in is not an entry point, because pytest would then rewrite
each module of flexwire that a test imports. Source: https://docs.pytest.org, "Requiring/Loading
plugins in a test module".
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import pytest

from flexwire.arguments import to_int

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path

    from flexwire.capture.messages import CapturedMessage
    from flexwire.client.notation import HostPort
    from flexwire.codec import Message
    from flexwire.tap import Tap

__all__ = ["RunningTap", "TappedFrame", "kafka_tap"]

_ANYWHERE: Final = "127.0.0.1:0"
_PAUSE_SECONDS: Final = 0.02
_MOST_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class TappedFrame:
    """A request or response that passed through the tap. ``body`` is its message in ``version``.

    ``name`` is "ProduceRequest" or "ProduceResponse". The version of a response is that of its
    request, or 0 if a broker answers ApiVersions in version 0 (KIP-511). ``client_id`` is None for
    a response, and for a request without a client id.
    """

    name: str
    version: int
    correlation_id: int
    client_id: str | None
    body: bytes

    @property
    def message(self) -> Message:
        """The decoded body. Raises `DecodeError` if the body does not fit its spec."""
        from flexwire.codec import message  # noqa: PLC0415 - pytest loads this plug-in in every run

        return message(self.name).decode(self.body, self.version)


class RunningTap:
    """A tap that runs until the test ends. The address for clients is ``bootstrap``."""

    def __init__(self, tap: Tap) -> None:
        self._tap = tap
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kafka_tap")

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._do(self._tap.start())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._do(self._tap.close())
        finally:
            self._stop()

    @property
    def bootstrap(self) -> str:
        """The address of the tap for ``bootstrap.servers``, such as "127.0.0.1:40123"."""
        return str(self._tap.listen_address)

    @property
    def tap(self) -> Tap:
        """The tap itself, with its counts, listeners and capture files."""
        return self._tap

    @property
    def refused(self) -> dict[str | None, str]:
        """For each client id, the first request that a rehearsal refused.

        The dict is empty without a rehearsal.
        """
        rehearsal = self._tap.rehearsal
        if rehearsal is None:
            return {}
        return {client_id: request for (_, client_id), request in [*rehearsal.failed.items()]}

    def pretend(self, release: str) -> None:
        """Imitate this release, such as "4.4", for all later requests (see docs/rehearse.md).

        Raises `UnknownMessageError` for a release that is not in the catalog, and the errors that
        `flexwire.tap.Tap.rehearse` raises.
        """
        from flexwire.tap.rehearsal import RehearsalPlan  # noqa: PLC0415 - pytest loads this plug-in in every run

        self._do(self._tap.rehearse(RehearsalPlan(release)))

    def end_rehearsal(self) -> None:
        """Let all later requests pass, as if the upgrade had been undone."""
        self._do(self._changed(self._tap.end_rehearsal))

    def fault(self, text: str) -> None:
        """Apply a fault to later requests, such as "Produce error=NOT_LEADER_OR_FOLLOWER once".

        docs/faults.md describes the grammar. Raises `ArgumentError` for a string that does not
        describe a fault, and the errors that `flexwire.tap.Tap.add_fault` raises.
        """
        self._do(self._changed(lambda: self._tap.add_fault(text)))

    def end_faults(self) -> None:
        """Let all later requests pass."""
        self._do(self._changed(self._tap.end_faults))

    @property
    def faults_done(self) -> dict[str, int]:
        """The number of times that each fault was applied, by the fault's text."""
        return {} if self._tap.faults is None else dict(self._tap.faults.done)

    def frames(
        self, api: str | None = None, *, at_least: int = 0, timeout: float = 10.0
    ) -> list[TappedFrame]:
        """Return the requests and responses that have passed so far, in order for each connection.

        ``api`` is the name or the API key of an API ("Produce"), or the name of a message
        ("ProduceRequest"). Without ``api``, all frames are returned. A response reaches the capture
        at about the same time as it reaches the client. With ``at_least``, the method waits for
        this many frames, for at most ``timeout`` seconds. Each call reads the complete capture.

        Raises `ArgumentError` for an API that is in no release, and `TapError` if too few frames
        arrive within this time.
        """
        from flexwire.errors import TapError  # noqa: PLC0415 - pytest loads this plug-in in every run

        to_int(at_least, "at_least", least=0)
        names = _names_of(api)
        deadline = time.monotonic() + timeout
        while len(found := self._read(names)) < at_least:
            if time.monotonic() > deadline:
                raise TapError(
                    f"expected {at_least} frames of {api or 'any API'} within {timeout:g} s, got "
                    f"{len(found)}"
                )
            time.sleep(_PAUSE_SECONDS)
        return [_tapped(frame) for frame in found]

    def _read(self, names: frozenset[str] | None) -> list[CapturedMessage]:
        from flexwire.capture.messages import UnusedBytes, read_messages  # noqa: PLC0415 - pytest loads this plug-in in every run

        return [
            frame
            for frame in read_messages(self._tap.capture_paths)
            if not isinstance(frame, UnusedBytes) and (names is None or frame.name in names)
        ]

    async def _changed(self, change: Callable[[], None]) -> None:
        change()

    def _do(self, job: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(job, self._loop).result(_MOST_SECONDS)

    def _stop(self) -> None:
        self._do(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_MOST_SECONDS)
        self._loop.close()


def _names_of(api: str | None) -> frozenset[str] | None:
    from flexwire.schema.catalog import catalog  # noqa: PLC0415 - pytest loads this plug-in in every run
    from flexwire.tap.frame_filter import parse_api  # noqa: PLC0415 - pytest loads this plug-in in every run

    if api is None:
        return None
    if api in catalog().names():
        return frozenset({api})
    name = parse_api(api)
    return frozenset({f"{name}Request", f"{name}Response"})


def _tapped(frame: CapturedMessage) -> TappedFrame:
    header: Any = frame.header
    return TappedFrame(
        frame.name,
        frame.version,
        header.correlation_id,
        getattr(header, "client_id", None),
        frame.body,
    )


@pytest.fixture
def kafka_tap(tmp_path: Path) -> Iterator[Callable[..., RunningTap]]:
    """Start taps: ``kafka_tap("localhost:9092")`` returns a `RunningTap` in front of that cluster.

    The first argument is an address of the cluster. For TLS, the address begins with ``ssl://``.
    ``pretend="4.4"`` rehearses that release (docs/rehearse.md). To make requests fail, use
    `RunningTap.fault`. The other options are the fields of `flexwire.tap.config.TapConfig`.
    Captures are stored below ``tmp_path``, and all taps stop at the end of the test.
    """
    with ExitStack() as running:
        count = 0

        def start(
            upstream: str | HostPort, *, pretend: str | None = None, **options: Any
        ) -> RunningTap:
            from flexwire.tap import Tap, TapSecurity  # noqa: PLC0415 - pytest loads this plug-in in every run
            from flexwire.tap.fault_rules import FaultPlan  # noqa: PLC0415 - pytest loads this plug-in in every run
            from flexwire.tap.rehearsal import RehearsalPlan  # noqa: PLC0415 - pytest loads this plug-in in every run
            from flexwire.tap.security import resolve_security  # noqa: PLC0415 - pytest loads this plug-in in every run

            nonlocal count
            count += 1
            security = options.pop("security", TapSecurity())
            listen, to, security = resolve_security(_ANYWHERE, upstream, security)
            if pretend is not None:
                options["rehearsal"] = RehearsalPlan(pretend)
            if options.get("processes", 1) == 1:
                options.setdefault("faults", FaultPlan())
            out = tmp_path / f"kafka-tap-{count}"
            return running.enter_context(
                RunningTap(Tap(listen, to, out, security=security, **options))
            )

        yield start
