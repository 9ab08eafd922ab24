from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture import messages
from flexwire.capture.messages import CapturedMessage, UnusedBytes, read_messages
from flexwire.codec import message
from flexwire.errors import CaptureError
from flexwire.schema.spec import MessageType
from flexwire.specs.cost.meter import ComparisonSide, CostMeter, SentMessage
from flexwire.specs.cost.sides import bundled_specs
from tests.capture.traffic import packet, pcap
from tests.spark.traffic import Traffic, made, request, response

if TYPE_CHECKING:
    from pathlib import Path


def conversation(directory: Path, *, rotate: bool = False) -> Traffic:
    traffic = Traffic(directory)
    connection = traffic.connect()
    for number in range(3):
        asked = made("MetadataRequest", topics=[])
        traffic.send(connection, "request", request(asked, 9 + number, number))
        if rotate:
            traffic.rotate()
        traffic.send(connection, "response", response(made("MetadataResponse"), 9 + number, number))
    return traffic


def read(directory: Path) -> list[CapturedMessage | UnusedBytes]:
    return list(read_messages(sorted(directory.glob("*.pcap*"))))


@pytest.mark.parametrize("rotate", [False, True])
def test_requests_and_responses_come_with_version_header_and_body(
    tmp_path: Path,
    rotate: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    conversation(tmp_path, rotate=rotate).close()
    found = read(tmp_path)
    assert [(one.name, one.version) for one in found if isinstance(one, CapturedMessage)] == [
        (f"Metadata{kind}", version) for version in (9, 10, 11) for kind in ("Request", "Response")
    ]
    for one in found:
        assert isinstance(one, CapturedMessage)
        is_request = one.type is MessageType.REQUEST
        assert one.header_version == (2 if is_request else 1)
        assert one.body == message(one.name).decode(one.body, one.version).encode(one.version)
        client: Any = one.header
        assert not is_request or client.client_id == "tests"


def test_bytes_of_messages_and_prefixes_are_those_of_the_wire(tmp_path: Path) -> None:
    traffic = conversation(tmp_path)
    traffic.close()
    size = 0
    for one in read(tmp_path):
        assert isinstance(one, CapturedMessage)
        size += 4 + len(one.header.encode(one.header_version)) + len(one.body)
    assert size == traffic.bytes


def test_every_frame_is_a_message_or_is_told_why_it_is_none(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path)
    connection = traffic.connect()
    asked = made("MetadataRequest", topics=[])
    traffic.exchange(connection, asked, made("MetadataResponse"), 9, 1)
    traffic.send(connection, "response", response(made("MetadataResponse"), 9, 77))
    traffic.send(connection, "request", b"\0\x03\0\x09\0\0\0\x05\0\x50")
    traffic.send(connection, "request", b"\x7f\xff\0\x09\0\0\0\x05")
    traffic.send(connection, "request", request(made("SaslHandshakeRequest"), 0, 2))
    traffic.send(connection, "response", response(made("SaslHandshakeResponse"), 0, 2))
    traffic.send(connection, "request", b"\0me\0secret")
    traffic.send(connection, "response", b"")
    traffic.send_raw(connection, "request", b"\0\0\0\x50cut off")
    traffic.close()
    found = read(tmp_path)
    assert len(found) == traffic.sent
    kinds = [one.kind if isinstance(one, UnusedBytes) else one.name for one in found]
    assert kinds == [
        "MetadataRequest", "MetadataResponse", "unpaired", "header", "header",
        "SaslHandshakeRequest", "SaslHandshakeResponse", "token", "token", "frame",
    ]  # fmt: skip
    assert not any("secret" in one.reason for one in found if isinstance(one, UnusedBytes))


def test_what_is_not_kafka_is_bytes_and_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ZooKeeper's first request reads as a Produce v0, and its second one as a Produce v1.
    session = struct.pack(">iqiqi", 0, 0, 18000, 0, 16) + bytes(17)
    path = struct.pack(">iii", 1, 4, 12) + b"/brokers/ids\1"
    traffic = Traffic(tmp_path)
    other, kafka = traffic.connect(("10.0.0.2", 1)), traffic.connect(("10.0.0.2", 2))
    for payload in (session, path, path):
        traffic.send(other, "request", payload)
    # Before the last request, nothing shows that the connection is Kafka.
    for correlation_id in range(5):
        asked = request(made("MetadataRequest"), 0, correlation_id, client_id="")
        traffic.send(kafka, "request", asked)
    traffic.send(kafka, "response", response(made("MetadataResponse"), 0, 4))
    traffic.close()
    found = read(tmp_path)
    told = [one for one in found if isinstance(one, UnusedBytes)]
    assert {(one.kind, one.reason) for one in told} == {
        ("not Kafka", "no request on the connection reads as Kafka; the data looks like ZooKeeper")
    }
    assert sum(one.size for one in told) == 3 * 4 + len(session) + 2 * len(path)
    assert len(found) == traffic.sent
    assert [one.name for one in found if isinstance(one, CapturedMessage)] == [
        *["MetadataRequest"] * 5,
        "MetadataResponse",
    ]
    # Memory is bounded, and all dropped data is counted.
    monkeypatch.setattr(messages, "HELD_FRAMES", 2)
    bounded = read(tmp_path)
    assert len(bounded) == traffic.sent
    assert [type(one) for one in bounded].count(CapturedMessage) == 3
    assert {one.reason for one in bounded if isinstance(one, UnusedBytes)} == {
        "no request on the connection reads as Kafka",
    }


def test_a_connection_does_not_answer_for_an_earlier_one_on_its_ports(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path)
    asked = made("MetadataRequest", topics=[])
    traffic.send(traffic.connect(), "request", request(asked, 9, 1))
    traffic.exchange(traffic.connect(), asked, made("MetadataResponse"), 12, 1)
    traffic.close()
    versions = [one.version for one in read(tmp_path) if isinstance(one, CapturedMessage)]
    assert versions == [9, 12, 12]


def test_a_fallback_is_read_at_version_0(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path)
    connection = traffic.connect()
    asked = made("ApiVersionsRequest", client_software_name="a", client_software_version="1")
    traffic.send(connection, "request", request(asked, 4, 1))
    traffic.send(connection, "response", response(made("ApiVersionsResponse", error_code=35), 0, 1))
    traffic.close()
    versions = [one.version for one in read(tmp_path) if isinstance(one, CapturedMessage)]
    assert versions == [4, 0]


def test_files_are_read_in_the_order_of_their_traffic(tmp_path: Path) -> None:
    conversation(tmp_path, rotate=True).close()
    files = sorted(tmp_path.glob("*.pcapng"))
    assert len(files) > 2
    backwards = list(read_messages(files[::-1]))
    assert backwards == list(read_messages(files))
    assert all(isinstance(one, CapturedMessage) for one in backwards)


def test_packets_without_tcp_are_told_of(tmp_path: Path) -> None:
    udp = bytearray(packet())
    udp[9] = 17
    (tmp_path / "a.pcap").write_bytes(pcap([bytes(udp), bytes(udp), packet(b"")]))
    assert [one.kind for one in read(tmp_path) if isinstance(one, UnusedBytes)] == [
        "packet",
        "packet",
    ]


def test_no_capture_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(CaptureError, match="neither pcap nor pcapng"):
        list(read_messages([path]))


def test_damage_is_counted_and_never_stops_the_reading(tmp_path: Path) -> None:
    conversation(tmp_path).close()
    (path,) = tmp_path.glob("*.pcapng")
    whole = path.read_bytes()
    seeded = random.Random(7)
    specs = bundled_specs()
    for _ in range(25):
        raw = bytearray(whole)
        for _ in range(seeded.randrange(1, 8)):
            raw[seeded.randrange(8, len(raw))] = seeded.randrange(256)
        path.write_bytes(raw[: seeded.randrange(len(raw) // 2, len(raw) + 1)])
        meter = CostMeter(ComparisonSide(specs), ComparisonSide(specs))
        count = 0
        try:
            for one in read_messages([path]):
                count += 1
                if isinstance(one, UnusedBytes):
                    meter.leave_out(one.kind, one.reason, one.size)
                else:
                    meter.add(
                        SentMessage(
                            one.name, one.api_key, one.type, one.version, one.body, one.header
                        )
                    )
        except CaptureError:
            continue
        told = sum(one.times for one in meter.uncompared.values())
        assert told + sum(row.messages for row in meter.rows.values()) == count


def test_so_many_connections_are_open_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "OPEN_CONNECTIONS", 2)
    traffic = Traffic(tmp_path)
    opened = [traffic.connect((f"10.0.0.{number}", 50000)) for number in (10, 11, 12)]
    for connection in opened:
        traffic.exchange(
            connection, made("MetadataRequest", topics=[]), made("MetadataResponse"), 9, 1
        )
    traffic.close()
    found = read(tmp_path)
    assert [type(one) for one in found] == [CapturedMessage] * 6
