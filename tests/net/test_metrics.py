"""A monitor can read a tap's metrics, and all other connections to that port are limited."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from flexwire.cli.app import app
from flexwire.cli.options import InputError
from flexwire.errors import TapError
from flexwire.tap import HostPort, MetricsPort, Tap, TapStatistics, run_tap
from flexwire.tap.metrics import (
    CONTENT_TYPE,
    GAUGES,
    MOST_CONNECTIONS,
    MOST_HEAD_BYTES,
    openmetrics,
)
from tests.net.broker import LOOPBACK, Broker, connected, run, serving, settled
from tests.net.test_relay import asking, echo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ASK = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n"


@asynccontextmanager
async def answering(*, seconds: float = 60.0) -> AsyncIterator[MetricsPort]:
    port = MetricsPort((LOOPBACK, 0), seconds=seconds)
    await port.start(lambda: b"told\n")
    try:
        yield port
    finally:
        await port.close()


async def told(address: HostPort, request: bytes) -> tuple[bytes, bytes]:
    """Return the answer's headers and body, which are both empty if there is no answer."""
    async with connected(address) as client:
        await client.send(request)
        head, _, body = (await client.reader.read()).partition(b"\r\n\r\n")
    return head, body


def values(text: str) -> dict[str, int]:
    found = re.findall(r"^flexwire_tap_(\w+) (\d+)$", text, re.MULTILINE)
    return {name: int(value) for name, value in found}


# Each field of the statistics has its own series with its own value.
@settings(max_examples=20)
@given(st.data())
def test_every_count_is_told(data: st.DataObject) -> None:
    names = [one.name for one in dataclasses.fields(TapStatistics)]
    counts = {name: data.draw(st.integers(0, 2**63)) for name in names}
    text = openmetrics(TapStatistics(**counts), {"clients": 3}, "1.2").decode()
    expected = {name if name in GAUGES else f"{name}_total": counts[name] for name in names}
    assert values(text) == {**expected, "clients": 3}
    assert text.endswith('\nflexwire_tap_info{version="1.2"} 1\n# EOF\n')
    # In the grammar of OpenMetrics 1.0, a family has one type line, before its samples.
    families = re.findall(r"^# TYPE (\S+) (?:counter|gauge|info)$", text, re.MULTILINE)
    assert len(set(families)) == len(families) == len(names) + 2
    for family in re.findall(r"^# UNIT (\S+) bytes$", text, re.MULTILINE):
        assert family.endswith("_bytes")
    assert not [one for one in text.splitlines() if not re.match(r"# |flexwire_tap_", one)]
    assert set(names) >= GAUGES


def test_a_running_tap_gives_its_counts(tmp_path: Path) -> None:
    async def job() -> dict[str, int]:
        started: asyncio.Future[Tap] = asyncio.get_running_loop().create_future()
        metrics = MetricsPort(("localhost", 0))
        async with serving(Broker(echo)) as upstream:
            program = asyncio.create_task(
                run_tap(
                    HostPort(LOOPBACK, 0),
                    upstream,
                    tmp_path,
                    metrics=metrics,
                    ready=started.set_result,
                )
            )
            tap = await started
            async with connected(tap.listen_address) as one, connected(tap.listen_address):
                await one.ask(asking(b""))
                await settled(lambda: tap.stats.open_connections == 2)
                tap.rotate()
                head, body = await told(metrics.address, ASK)
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            assert f"Content-Type: {CONTENT_TYPE}\r\n".encode() in head
            assert b"Content-Length: %d\r\n" % len(body) in head
            program.cancel()
            with pytest.raises(asyncio.CancelledError):
                await program
            with pytest.raises(ConnectionRefusedError):
                await told(metrics.address, ASK)
            return values(body.decode())

    found = run(job())
    assert (found["requests_total"], found["responses_total"]) == (1, 1)
    assert (found["connections_total"], found["open_connections"]) == (2, 2)
    assert (found["clients"], found["listeners"], found["capture_files"]) == (1, 1, 2)
    assert found["request_bytes_total"] > 0


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (ASK, b"200 OK"),
        (ASK.replace(b"/metrics", b"/metrics?name[]=x"), b"200 OK"),
        (b"GET /metrics HTTP/1.0\r\n\r\n", b"200 OK"),
        (b"GET / HTTP/1.1\r\n\r\n", b"404 Not Found"),
        (b"GET /metrics/.. HTTP/1.1\r\n\r\n", b"404 Not Found"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405 Method Not Allowed"),
        (b"GET /metrics\r\n\r\n", b"400 Bad Request"),
        (b"\r\n\r\n", b"400 Bad Request"),
        (b"PRI * HTTP/2.0\r\n\r\n", b"400 Bad Request"),
        (b"\x16\x03\x01\xff\xff\r\n\r\n", b"400 Bad Request"),
        (b"GET /metrics HTTP/1.1\r\nA: " + b"a" * MOST_HEAD_BYTES + b"\r\n\r\n", b""),
        (b"a" * (MOST_HEAD_BYTES * 4), b""),
    ],
)
def test_a_question_has_its_answer(request_: bytes, status: bytes) -> None:
    async def job() -> tuple[bytes, bytes]:
        async with answering() as port:
            try:
                return await told(port.address, request_)
            except ConnectionError:
                return b"", b""  # more arrived than was read

    head, body = run(job())
    assert head.partition(b"\r\n")[0] == (b"HTTP/1.1 " + status if status else b"")
    assert body == (b"told\n" if status == b"200 OK" else b"")


def test_a_head_has_the_length_and_not_the_body() -> None:
    async def job() -> tuple[bytes, bytes]:
        async with answering() as port:
            return await told(port.address, ASK.replace(b"GET", b"HEAD"))

    head, body = run(job())
    assert b"Content-Length: 5\r\n" in head
    assert body == b""


def test_who_says_nothing_is_closed_and_who_comes_beyond_the_bound_at_once() -> None:
    async def job() -> None:
        async with answering(seconds=0.2) as port, connected(port.address) as silent:
            await silent.send(ASK[:20])
            assert await silent.reader.read() == b""
        async with answering() as port:
            waiting = [await asyncio.open_connection(*port.address) for _ in range(20)]
            # Some connections are refused. The others stay open and wait for the tap.
            ended = [asyncio.create_task(reader.read()) for reader, _ in waiting]
            await settled(lambda: sum(one.done() for one in ended) == 20 - MOST_CONNECTIONS)
            for _, writer in waiting:
                writer.close()
            await asyncio.gather(*ended)
            await settled(lambda: not port._answering)
            assert (await told(port.address, ASK))[1] == b"told\n"

    run(job())


def test_a_port_that_closes_leaves_nobody_waiting() -> None:
    async def job() -> None:
        async with answering() as port:
            reader, writer = await asyncio.open_connection(*port.address)
            await settled(lambda: len(port._answering) == 1)
        assert await reader.read() == b""
        writer.close()

    run(job())


def test_only_loopback_is_listened_at_unless_told(tmp_path: Path) -> None:
    everywhere = "0.0.0.0"  # noqa: S104  # this is the test case

    async def job() -> None:
        with pytest.raises(TapError, match=f"a loopback address for metrics, got {everywhere}"):
            await MetricsPort((everywhere, 0)).start(bytes)
        port = MetricsPort((everywhere, 0), beyond_loopback=True)
        await port.start(lambda: b"told\n")
        assert (await told(HostPort(LOOPBACK, port.address.port), ASK))[1] == b"told\n"
        with pytest.raises(TapError, match=r"cannot listen on .* for metrics.*in use"):
            await MetricsPort(port.address, beyond_loopback=True).start(bytes)
        await port.close()
        # A tap that cannot serve its metrics does not start, and leaves nothing behind.
        taken = MetricsPort((everywhere, 0))
        with pytest.raises(TapError, match="a loopback address"):
            await run_tap(f"{LOOPBACK}:0", f"{LOOPBACK}:9", tmp_path, metrics=taken)

    run(job())


def test_options_that_do_not_fit_are_said(tmp_path: Path) -> None:
    command = ["tap", "--upstream", "b:1", "--out", str(tmp_path / "out")]
    with pytest.raises(InputError, match="needs --metrics"):
        CliRunner().invoke(app, [*command, "--metrics-beyond-loopback"], catch_exceptions=False)
    with pytest.raises(TapError, match="expected host:port"):
        CliRunner().invoke(app, [*command, "--metrics", "9464"], catch_exceptions=False)
