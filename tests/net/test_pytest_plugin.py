"""With the fixture ``kafka_tap``, any client in a test uses the tap, and its frames are read as
messages.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.files.comments import rehearsed_release_in
from flexwire.client import Broker as Caller
from flexwire.codec import message
from flexwire.errors import ArgumentError, TapError, UnknownMessageError
from flexwire.pytest_plugin import kafka_tap
from tests.net.broker import serving
from tests.net.releases import NEWER, REAL, broker_of, produce
from tests.net.test_relay import echo
from tests.protocol.payloads import frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.pytest_plugin import RunningTap

    Start = Callable[..., RunningTap]

__all__ = ["kafka_tap"]


@contextmanager
def cluster() -> Iterator[str]:
    """Run a broker in a thread, in place of a container. Yield its address."""
    address: list[str] = []
    started, stop = threading.Event(), threading.Event()

    async def job() -> None:
        async with serving(broker_of(REAL, echo)) as upstream:
            address.append(str(upstream))
            started.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=asyncio.run, args=(job(),))
    thread.start()
    try:
        assert started.wait(60)
        yield address[0]
    finally:
        stop.set()
        thread.join(60)


@pytest.fixture
def upstream() -> Iterator[str]:
    with cluster() as address:
        yield address


def test_frames_are_what_a_client_and_the_broker_sent(kafka_tap: Start, upstream: str) -> None:
    tap = kafka_tap(upstream)
    with Caller.connect(tap.bootstrap, client_id="orders") as caller:
        assert caller.offered
    asked, answered = tap.frames("ApiVersions", at_least=2)[:2]
    assert (asked.name, answered.name) == ("ApiVersionsRequest", "ApiVersionsResponse")
    assert asked.correlation_id == answered.correlation_id
    assert (asked.client_id, answered.client_id) == ("orders", None)
    assert isinstance(asked.message, message("ApiVersionsRequest"))
    assert isinstance(answered.message, message("ApiVersionsResponse"))
    named = tap.frames("ApiVersionsRequest")
    assert {one.name for one in named} == {"ApiVersionsRequest"}
    assert tap.frames("18") == tap.frames() == tap.frames("apiversions")
    assert tap.frames("Fetch") == []


def test_two_taps_of_one_test_are_apart(kafka_tap: Start, upstream: str) -> None:
    first, second = kafka_tap(upstream), kafka_tap(upstream)
    with Caller.connect(first.bootstrap, client_id="orders") as caller:
        assert caller.offered
    assert first.frames(at_least=2)
    assert second.frames() == []
    assert first.bootstrap != second.bootstrap


async def _produced(tap: RunningTap) -> bytes:
    """Send a Produce request of an old version, and return all bytes until the end."""
    host, _, port = tap.bootstrap.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(frame(produce(2)))
    writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), 60)
    finally:
        writer.close()


def test_a_rehearsal_refuses_until_it_is_ended(kafka_tap: Start, upstream: str) -> None:
    tap = kafka_tap(upstream, pretend=NEWER)
    assert asyncio.run(_produced(tap)) == b""
    assert tap.refused == {"tests": "Produce v2"}
    assert [one.version for one in tap.frames("Produce", at_least=1)] == [2]
    tap.end_rehearsal()
    assert asyncio.run(_produced(tap)) != b""
    assert kafka_tap(upstream).refused == {}


@pytest.mark.long
def test_a_release_is_met_from_any_moment_on(kafka_tap: Start, upstream: str) -> None:
    tap = kafka_tap(upstream)
    assert asyncio.run(_produced(tap)) != b""
    tap.pretend(NEWER)
    assert asyncio.run(_produced(tap)) == b""
    assert tap.refused == {"tests": "Produce v2"}
    first, second = tap.tap.capture_paths
    releases = []
    for path in (first, second):
        with path.open("rb") as file:
            releases.append(rehearsed_release_in(file))
    assert releases == [None, NEWER]
    # With another release, the fixture's list of refusals starts empty.
    tap.pretend("4.0")
    assert tap.refused == {}
    assert len(tap.frames("ProduceRequest", at_least=2)) == 2
    with pytest.raises(UnknownMessageError, match=r"4\.9"):
        tap.pretend("4.9")
    with pytest.raises(ArgumentError, match="processes"):
        kafka_tap(upstream, processes=2).pretend(NEWER)


def test_coroutines_and_the_tap_do_not_wait_for_each_other(kafka_tap: Start, upstream: str) -> None:
    tap = kafka_tap(upstream)

    async def job() -> list[bytes]:
        return await asyncio.gather(*(_produced(tap) for _ in range(5)))

    answers = asyncio.run(job())
    assert all(answers)
    assert len(tap.frames("Produce", at_least=10)) == 10


def test_what_is_asked_wrongly_is_refused(kafka_tap: Start, upstream: str) -> None:
    tap = kafka_tap(upstream)
    with pytest.raises(ArgumentError, match="'Metadata'"):
        tap.frames("Metadta")
    with pytest.raises(TapError, match=r"expected 1 frames of Fetch within 0\.05 s, got 0"):
        tap.frames("Fetch", at_least=1, timeout=0.05)
    with pytest.raises(ArgumentError, match="at_least"):
        tap.frames(at_least=-1)
    with pytest.raises(UnknownMessageError, match=r"4\.9"):
        kafka_tap(upstream, pretend="4.9")
    with pytest.raises(TapError):
        kafka_tap("127.0.0.1:1", pretend=NEWER)


def test_a_tap_that_could_not_start_leaves_no_thread(kafka_tap: Start) -> None:
    before = threading.active_count()
    with pytest.raises(TapError):
        kafka_tap("127.0.0.1:1", pretend=NEWER)
    assert not [one for one in threading.enumerate() if one.name == "kafka_tap"]
    assert threading.active_count() == before


def test_faults_begin_on_open_connections_and_end(kafka_tap: Start, upstream: str) -> None:
    tap = kafka_tap(upstream)
    fault = "ApiVersions error=UNSUPPORTED_VERSION nth=2"
    with Caller.connect(tap.bootstrap, client_id="orders") as caller:
        assert caller.offered
        tap.fault(fault)
        for code in (0, 35, 0):
            response: Any = caller.call("ApiVersions", {}, 3).response
            assert response.error_code == code
        tap.fault("ApiVersions close")
        tap.end_faults()
        assert caller.call("ApiVersions", {}, 3).response
    assert tap.faults_done == {fault: 1}
    with pytest.raises(ArgumentError, match="is not a valid word in a fault"):
        tap.fault("ApiVersions close sometimes")


def test_faults_and_a_rehearsal_are_never_together(kafka_tap: Start, upstream: str) -> None:
    tap = kafka_tap(upstream)
    tap.fault("Fetch close")
    with pytest.raises(ArgumentError, match="faults or a rehearsal"):
        tap.pretend(NEWER)
    tap.end_faults()
    tap.pretend(NEWER)
    with pytest.raises(ArgumentError, match="faults cannot be combined with a rehearsal"):
        tap.fault("Fetch close")
    assert kafka_tap(upstream, pretend=NEWER).faults_done == {}
