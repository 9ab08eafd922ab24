"""A broker keeps its port between runs; a damaged port file causes only flexwire's own errors."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexwire.cli.app import app
from flexwire.cli.options import InputError
from flexwire.codec import message
from flexwire.errors import ArgumentError, FlexwireError, TapError
from flexwire.tap import HostPort
from flexwire.tap.listeners import PortRange, StablePorts, parse_port_range
from tests.net.broker import (
    LOOPBACK,
    Broker,
    connected,
    free_ports,
    run,
    serving,
    tapped,
)
from tests.net.test_relay import answering, asking, echo
from tests.net.test_rewriting import METADATA, metadata
from tests.protocol.payloads import request_payload, response_payload
from tests.searching import TIMED

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO, THREE = (HostPort(f"b-{number}", 9092) for number in (1, 2, 3))


async def advertised(out: Path, ports: PortRange, *brokers: HostPort) -> dict[HostPort, int]:
    """Return the tap's port for each broker, as a client of a new tap sees it."""

    def answer(*_: object) -> bytes:
        return response_payload(METADATA, 1, metadata(1, *brokers))

    async with (
        serving(Broker(answer)) as upstream,
        tapped(upstream, out, ports=ports) as tap,
        connected(tap.listen_address) as client,
    ):
        payload = await client.ask(request_payload(METADATA, 1))
    body = message("MetadataResponse").decode(payload[4:], 1)
    found = [one.port for one in body.brokers]  # type: ignore[attr-defined]  # the class is made at run time
    return dict(zip(brokers, found, strict=True))


@pytest.mark.long
def test_a_broker_has_the_same_port_after_a_restart(tmp_path: Path) -> None:
    first = free_ports(4)
    ports = PortRange(first, first + 3)

    async def job() -> None:
        assert await advertised(tmp_path, ports, ONE, TWO) == {ONE: first, TWO: first + 1}
        # The brokers are in another order, and one broker is new. Another broker is missing at
        # first.
        found = await advertised(tmp_path, ports, THREE, TWO)
        assert found == {THREE: first + 2, TWO: first + 1}
        assert await advertised(tmp_path, ports, ONE) == {ONE: first}

    run(job())
    (file,) = tmp_path.glob("*.json")
    assert file.name == f"tap-ports-{first}.json"
    assert json.loads(file.read_bytes()) == {
        "b-1:9092": first,
        "b-2:9092": first + 1,
        "b-3:9092": first + 2,
    }
    assert file.stat().st_mode & 0o077 == 0


def test_a_client_that_knows_a_listener_comes_to_its_broker_before_anybody_asks(
    tmp_path: Path,
) -> None:
    first = free_ports(2)
    ports = PortRange(first, first + 1)

    async def job() -> None:
        async with serving(Broker(echo)) as broker, serving(Broker(echo)) as upstream:
            StablePorts(ports, tmp_path / f"tap-ports-{first}.json").keep(broker, first + 1)
            async with tapped(upstream, tmp_path, ports=ports) as tap:
                assert tap.listeners[broker].port == first + 1
                async with connected(HostPort(LOOPBACK, first + 1)) as client:
                    assert await client.ask(asking(b"x")) == answering(b"x")

    run(job())


def test_a_port_that_is_taken_is_replaced_and_a_full_range_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = free_ports(3)
    ports = PortRange(first, first + 2)

    async def job() -> None:
        async with tapped(HostPort(LOOPBACK, 1), tmp_path / "other") as other:
            taken = other.listen_address.port
            alone = PortRange(taken, taken)
            found = await advertised(tmp_path / "alone", alone, ONE)
            assert found == {ONE: ONE.port}  # the file is unchanged
        assert "no port is free" in caplog.text
        StablePorts(ports, tmp_path / f"tap-ports-{first}.json").keep(ONE, first)
        nowhere = HostPort(LOOPBACK, 1)
        async with tapped(nowhere, tmp_path, ports=ports) as tap:
            assert tap.listeners[ONE].port == first
            # The running tap uses the port, so the next tap uses and keeps another port.
            async with tapped(nowhere, tmp_path, ports=ports) as second:
                assert second.listeners[ONE].port == first + 1
        assert await advertised(tmp_path, ports, ONE) == {ONE: first + 1}

    run(job())


def test_another_range_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "ports.json"
    StablePorts(PortRange(100, 109), path).keep(ONE, 105)
    assert StablePorts(PortRange(100, 105), path).addresses == (ONE,)
    assert StablePorts(PortRange(100, 104), path).addresses == ()
    assert list(StablePorts(PortRange(104, 106), path).candidates(TWO)) == [104, 106]
    assert list(StablePorts(PortRange(104, 106), path).candidates(ONE)) == [105, 104, 106]


@settings(max_examples=60, suppress_health_check=[*TIMED, HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=60)
    | st.dictionaries(
        st.sampled_from(["a:1", "b:2", "[::1]:3", "a", ""]),
        st.integers(-2, 70_000) | st.text(max_size=3) | st.booleans() | st.none(),
        max_size=4,
    ).map(lambda one: json.dumps(one).encode())
)
def test_whatever_the_file_holds_gives_ports_or_our_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "ports.json"
    path.write_bytes(data)
    with suppress(TapError):
        found = StablePorts(PortRange(1, 65_535), path)
        ports = [next(found.candidates(one)) for one in found.addresses]
        assert len(set(ports)) == len(ports)
        assert all(type(one) is int and 0 < one < 65_536 for one in ports)


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{", b'{"a:1": 5, "b:1": 5}', b'{"a": 5}', b'{"a:1": true}', b"[" * 99_999],
)
def test_a_damaged_file_is_said(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tap-ports-5.json"
    path.write_bytes(data)
    with pytest.raises(TapError, match=r"tap-ports-5\.json: expected broker addresses"):
        StablePorts(PortRange(5, 9), path)


@pytest.mark.parametrize("text", ["", "1", "5-4", "0-9", "1-65536", "a-b", "-", "1-2-3", "1-²"])
def test_what_is_not_a_range_is_said(text: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="expected a port range such as 19100-19199, got"):
        parse_port_range(text)
    command = ["tap", "--upstream", "b:1", "--out", str(tmp_path / "out"), f"--ports={text}"]
    with pytest.raises(FlexwireError, match="--ports: expected a port range such as"):
        CliRunner().invoke(app, command, catch_exceptions=False)


def test_no_ports_where_no_listeners_are_opened(tmp_path: Path) -> None:
    command = ["tap", "--upstream", "b:1", "--out", str(tmp_path), "--ports", "5-9"]
    with pytest.raises(InputError, match="--keep-addresses uses no such listeners"):
        CliRunner().invoke(app, [*command, "--keep-addresses"], catch_exceptions=False)
