"""decode and explain read whole frames: with or without a length, paired, by line, in captures."""

from __future__ import annotations

import base64
import io
import json
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.files.packets import tcp_packet
from flexwire.codec import explain, message
from flexwire.protocol.nested_messages import with_nested
from flexwire.records import Record, encode_batch
from flexwire.wire.segment_layout import ACK
from tests.capture.test_frame_lookup import _packets
from tests.capture.traffic import FAR, NEAR, pcap
from tests.cli.test_messages import Run
from tests.protocol.payloads import make, request_payload, response_payload

if TYPE_CHECKING:
    from pathlib import Path

METADATA, PRODUCE, HEARTBEAT = 3, 0, 12


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(capsys, monkeypatch)


def _framed(payload: bytes) -> str:
    return (len(payload).to_bytes(4, "big") + payload).hex(" ")


def _request(**fields: Any) -> bytes:
    return request_payload(METADATA, 12, make("MetadataRequest", **fields))


def test_a_request_says_what_it_is(run: Run) -> None:
    for given in (_request().hex(), _framed(_request())):
        told = json.loads(run("decode", "--frame", given).out)
        assert (told["frame"], told["message"], told["version"]) == (
            "request",
            "MetadataRequest",
            12,
        )
        assert told["header"]["correlationId"] == 7
        assert told["body"]["allowAutoTopicCreation"] is True
        assert told["length"] == len(_request())


def test_a_response_is_read_by_its_api_or_its_request(run: Run) -> None:
    answer = _framed(response_payload(HEARTBEAT, 4, make("HeartbeatResponse", error_code=16)))
    asked = _framed(request_payload(HEARTBEAT, 4, make("HeartbeatRequest")))
    for arguments in (
        ["--api", "Heartbeat", "--version", "4"],
        ["--api", "HeartbeatResponse", "--version", "latest"],
        ["--api", str(HEARTBEAT), "-V", "4"],
        ["--request", asked],
    ):
        told = json.loads(run("decode", "--frame", answer, *arguments).out)
        assert told["body"]["_errorName"] == "NOT_COORDINATOR"
    other = _framed(request_payload(HEARTBEAT, 4, make("HeartbeatRequest"), correlation_id=8))
    ran = run("decode", "--frame", answer, "--request", other)
    assert (ran.code, ran.out) == (1, "")
    assert "correlation id 7 instead of 8, so it belongs to another request" in ran.err


def test_records_are_shown_as_records(run: Run) -> None:
    batch = encode_batch([Record(0, 5, b"order-7", b"paid", [])])
    kind: Any = make("ProduceRequest", acks=1)
    topic = type(kind).TopicProduceData(name="t")
    topic.partition_data = [type(kind).PartitionProduceData(index=0, records=batch)]
    kind.topic_data = [topic]
    payload = request_payload(PRODUCE, 9, kind)
    told = json.loads(run("decode", "--frame", _framed(payload)).out)
    [shown] = told["body"]["topicData"][0]["partitionData"][0]["records"]
    assert [(one["key"], one["value"]) for one in shown["records"]] == [("order-7", "paid")]
    lines = run("explain", "--frame", _framed(payload)).out.splitlines()
    assert any(line.endswith('BYTES as text                    "order-7"') for line in lines)


def test_explain_has_a_part_for_the_header_and_one_for_the_body(run: Run) -> None:
    ran = run("explain", "--frame", _framed(_request()))
    titles = [part.splitlines()[0] for part in ran.out.split("\n\n") if part]
    assert titles == ["request: a frame of 20 bytes; RequestHeader v2", "MetadataRequest v12"]
    header, body = json.loads(run("explain", "--frame", _request().hex(), "--format", "json").out)
    assert header["annotations"][0]["value"] == METADATA
    assert (header["title"], body["title"], body["error"]) == (*titles, None)


def test_each_line_is_answered_by_a_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("00", encoding="ascii")
    lines = f"{_framed(_request())}\n\nnonsense\n{secret}\n{_request().hex()}\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(lines.encode())))
    ran = run("decode", "--frame", "--lines", "-")
    told = [json.loads(line) for line in ran.out.splitlines()]
    assert ["message" in one for one in told] == [True, False, False, True]
    # A line is never read as a file name.
    assert "is not hex or base64" in told[2]["error"]
    assert (ran.code, ran.err) == (1, "2 of the lines could not be decoded\n")
    file = tmp_path / "lines"
    file.write_text("ffffffff00\n", encoding="ascii")
    ran = run("decode", "MetadataRequest", str(file), "-V", "4", "--lines")
    assert json.loads(ran.out) == {"topics": None, "allowAutoTopicCreation": False}


def test_a_file_holds_hex_a_dump_or_bytes(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "frame"
    raw = bytes.fromhex(_framed(_request()))
    for content in (
        raw,
        raw.hex().encode(),
        f"0000  {raw[:16].hex(' ')}\n0010  {raw[16:].hex(' ')}".encode(),
    ):
        file.write_bytes(content)
        assert json.loads(run("decode", "--frame", str(file)).out)["message"] == "MetadataRequest"


def test_a_packet_of_a_capture_is_decoded(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap(_packets()))
    ran = run("explain", str(path), "--frame-number", "5")
    assert ran.out.startswith("10.0.0.9:50000>10.0.0.1:9092, request 1 of the connection\n")
    assert "ApiVersionsRequest v0" in ran.out
    ran = run("explain", str(path), "--frame-number", "9")
    assert (ran.code, ran.err) == (
        1,
        f"CaptureError: {path}: there is no packet 9; the last packet is 7\n",
    )


def test_a_capture_comes_by_standard_input_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    given = SimpleNamespace(buffer=io.BytesIO(pcap(_packets())))
    monkeypatch.setattr(sys, "stdin", given)
    assert "ApiVersionsRequest v0" in run("explain", "-", "--frame-number", "5").out


def test_a_capture_shows_no_password(run: Run, tmp_path: Path) -> None:
    secret = b"\0alice\0pass-of-alice"
    handshake, token = (
        make("SaslHandshakeRequest", mechanism="PLAIN"),
        make("SaslAuthenticateRequest", auth_bytes=secret),
    )
    sent = [
        request_payload(17, 1, handshake),
        request_payload(36, 2, token),
        # This line cannot be decoded.
        request_payload(36, 2, token)[:-4],
    ]
    path, at, packets = tmp_path / "capture.pcap", 1000, []
    for one in sent:
        whole = len(one).to_bytes(4, "big") + one
        packets.append(
            tcp_packet(NEAR, FAR, sequence=at, acknowledgment=1, flags=ACK, payload=whole)
        )
        at += len(whole)
    path.write_bytes(pcap(packets))
    for number in ("2", "3"):
        for command in ("decode", "explain"):
            ran = run(command, str(path), "--frame-number", number)
            told = (ran.out + ran.err).lower()
            for form in (b"pass-of", b"alice"):
                assert form.decode() not in told
                assert form.hex(" ") not in told
            assert base64.b64encode(secret).decode().lower() not in told
            assert command == "decode" or "; 1 credential is withheld" in told


def test_withheld_records_are_not_shown_as_none(run: Run) -> None:
    kind: Any = type(make("FetchResponse"))
    partition = kind.PartitionData(partition_index=0, records=b"withheld")
    topic = kind.FetchableTopicResponse(topic="__cluster_metadata", partitions=[partition])
    payload = response_payload(1, 12, make("FetchResponse", responses=[topic]))
    ran = run("decode", "--frame", _framed(payload), "--api", "Fetch", "-V", "12")
    [shown] = json.loads(ran.out)["body"]["responses"][0]["partitions"]
    assert shown["records"] == base64.b64encode(b"withheld").decode()


def test_bytes_that_begin_with_their_length_get_a_hint(run: Run) -> None:
    for command in ("decode", "explain"):
        ran = run(command, "MetadataRequest", _framed(_request()), "-V", "12")
        assert ran.code == 1
        assert "these bytes begin with a length, as a frame does: try --frame" in ran.err


@pytest.mark.parametrize("command", ["decode", "explain"])
def test_a_response_that_is_read_as_a_request_gets_a_hint(run: Run, command: str) -> None:
    payload = response_payload(3, 12, make("MetadataResponse"))
    ran = run(command, "--frame", _framed(payload))
    assert ran.code == 1
    assert "the bytes were read as a request; if they are a response" in ran.err
    asked = run(command, "--frame", _framed(payload[:9]), "--api", "Metadata", "-V", "12")
    assert asked.code == 1
    assert "read as a request" not in asked.err


@pytest.mark.parametrize("command", ["decode", "explain"])
def test_a_capture_that_is_taken_for_a_frame_says_what_to_ask_for(
    run: Run, command: str, tmp_path: Path
) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap(_packets()))
    for given in (["--frame"], ["MetadataRequest", "--version", "12"]):
        ran = run(command, *given[:1], str(path), *given[1:])
        assert ran.code == 1
        assert "is a capture: select one of its packets with --frame-number N" in ran.err
        assert "read as a request" not in ran.err
    assert "--frame-number N for packet N of a capture" in run(command, str(path)).err


@pytest.mark.parametrize("command", ["decode", "explain"])
def test_an_empty_frame_is_said_to_be_empty_and_an_odd_one_is_not(run: Run, command: str) -> None:
    assert "'000' is not hex, base64 or a file" in run(command, "--frame", "000").err
    assert "DATA is empty" in run(command, "--frame", "").err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--frame", "MetadataRequest", "00"], "give only DATA"),
        (["00"], "give MESSAGE and DATA, --frame for a whole frame"),
        (["MetadataRequest", "00"], "--version is missing: give the version"),
        (["MetadataRequest", "00", "01", "-V", "1"], "quote text that contains spaces"),
        (["--frame", "00", "-V", "1"], "a request contains its version"),
        (["--frame", "00", "--api", "Metadata"], "--api needs --version"),
        (["--frame", "00", "--lenient"], "frames are read with Kafka's own specs"),
        (
            ["--frame", "x.pcap", "--frame-number", "1"],
            "--frame-number finds the frame in a capture",
        ),
        (["MetadataRequest", "00", "-V", "newest"], "'newest' is not a version"),
        (["MetadataRequest", "00", "-V", "32768"], "'32768' is not a version"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    run: Run, arguments: list[str], told: str
) -> None:
    ran = run("explain", *arguments)
    assert ran.code == 2
    assert told in ran.err


@pytest.mark.parametrize("command", ["decode", "explain"])
def test_a_frame_that_is_cut_off_shows_what_is_there_and_what_is_missing(
    run: Run, command: str
) -> None:
    topics = [{"name": "orders"}, {"name": "payments"}]
    kind: Any = message("MetadataRequest")
    payload = request_payload(METADATA, 12, kind.of(topics=topics))
    whole = payload[:-9]
    ran = run(command, "--frame", (len(payload).to_bytes(4, "big") + whole).hex())
    told = (
        f"its first 4 bytes announce {len(payload)} bytes, but {len(whole)} follow; "
        "the bytes end in MetadataRequest v12 at topics[1].name"
    )
    assert (ran.code, told in ran.err) == (1, True)
    # This is certainly a request.
    assert "read as a request" not in ran.err
    if command == "decode":
        form = json.loads(ran.out)
        assert (form["length"], form["present"]) == (len(payload), len(whole))
        assert form["header"]["clientId"] == "tests"
        assert [one.get("name") for one in form["body"]["topics"]] == ["orders", None]
        assert told in form["error"]
    else:
        first = f"request: the first {len(whole)} of {len(payload)} bytes of a frame;"
        assert ran.out.startswith(first)
        assert "(not decoded)" in ran.out
    # Without a length, the number of missing bytes is unknown.
    bare = run(command, "--frame", whole.hex())
    assert "without its length, the number of missing bytes is unknown" in bare.err
    assert "the bytes end in MetadataRequest v12 at topics[1].name" in bare.err


@pytest.mark.parametrize("command", ["decode", "explain"])
def test_all_frames_of_a_paste_are_shown(run: Run, command: str) -> None:
    frames = [_request(topics=[]), request_payload(HEARTBEAT, 4, make("HeartbeatRequest"))]
    pasted = "".join(map(_framed, frames))
    ran = run(command, "--frame", pasted + _framed(_request())[:30])
    assert ran.code == 1
    assert "frame 3 of 3, from byte" in ran.err
    assert "frame is cut off: its first 4 bytes announce" in ran.err
    assert all(name in ran.out for name in ("MetadataRequest", "HeartbeatRequest"))
    assert f"frame 2 of 3, from byte {4 + len(frames[0])}" in ran.out
    assert run(command, "--frame", pasted).code == 0
    answers = [response_payload(HEARTBEAT, 4, make("HeartbeatResponse"))] * 2
    several = "".join(map(_framed, answers))
    assert run(command, "--frame", several, "--api", "Heartbeat", "-V", "4").code == 0
    assert run(command, "--frame", several, "--request", pasted).code == 0


def test_a_line_of_several_frames_is_answered_by_a_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    one = _framed(_request())
    file.write_text(f"{one} {one}\n{one[:41]}\n{one}\n", encoding="ascii")
    ran = run("decode", "--frame", "--lines", str(file))
    two, cut, whole = map(json.loads, ran.out.splitlines())
    assert [frame["message"] for frame in two["frames"]] == ["MetadataRequest"] * 2
    assert "announce" in cut["error"]
    assert "error" not in whole
    assert (ran.code, ran.err) == (1, "1 of the lines could not be decoded\n")


def _versioned(name: str, version: int, **fields: Any) -> bytes:
    return version.to_bytes(2, "big") + message(name).of(**fields).encode(version)


@pytest.mark.parametrize("version", range(4))
def test_a_subscription_says_its_own_version(run: Run, version: int) -> None:
    raw = _versioned("ConsumerProtocolSubscription", version, topics=["orders"])
    told = json.loads(run("decode", "ConsumerProtocolSubscription", raw.hex()).out)
    assert told["topics"] == ["orders"]
    asked = ["-V", str(version)]
    for given in (raw, raw[2:]):
        ran = run("decode", "ConsumerProtocolSubscription", given.hex(), *asked)
        assert json.loads(ran.out) == told
    lines = run("explain", "ConsumerProtocolSubscription", raw.hex()).out.splitlines()
    assert lines[1].split() == ["0", "00", f"0{version}", "version", "INT16", str(version)]
    assert run("decode", "ConsumerProtocolSubscription", "00ff").code == 2
    assert run("decode", "ConsumerProtocolSubscription", raw.hex(), "-V", "9").code == 1


@pytest.mark.parametrize("protocol", ["consumer", "connect", "other"])
def test_what_group_members_exchange_is_explained(run: Run, protocol: str) -> None:
    inside = {
        "consumer": _versioned("ConsumerProtocolSubscription", 3, topics=["orders"]),
        # The metadata of a Connect worker: version 1, a URL, an offset, and no assignment.
        "connect": b"\0\1" + b"\0\6http:/" + bytes(8) + b"\xff\xff\xff\xff",
        "other": b"\xff\xff\0",
    }[protocol]
    asked: Any = message("JoinGroupRequest").of(
        protocol_type=protocol, protocols=[{"name": "p", "metadata": inside}]
    )
    out = run("explain", "--frame", _framed(request_payload(11, 9, asked))).out
    assert ("metadata.topics[0] " in out) == (protocol == "consumer")
    assert ("metadata.url " in out) == (protocol == "connect")
    assert ("COMPACT_BYTES " in out) == (protocol == "other")
    given: Any = message("SyncGroupResponse").of(
        protocol_type="consumer",
        assignment=_versioned(
            "ConsumerProtocolAssignment",
            1,
            assigned_partitions=[{"topic": "orders", "partitions": [4]}],
        ),
    )
    raw = _framed(response_payload(14, 5, given))
    lines = run("explain", "--frame", raw, "--api", "SyncGroup", "-V", "5").out.splitlines()
    [partition] = [one for one in lines if "assignedPartitions[0].partitions[0]" in one]
    assert partition.split()[-1] == "4"


def test_every_byte_of_a_nested_message_is_explained_once() -> None:
    """Offsets in the group's bytes are counted from the start of the frame."""
    for version in range(6):
        member = _versioned("ConsumerProtocolSubscription", 1, topics=["a", "b"])
        form = {"groupId": "g", "protocols": [{"name": "range", "metadata": member}]}
        fields = {"group_id": form["groupId"], "protocol_type": "consumer"}
        asked: Any = message("JoinGroupRequest").of(protocols=form["protocols"], **fields)
        raw = asked.encode(version)
        found = with_nested(explain(type(asked), raw, version), "JoinGroupRequest")
        ends = [one.offset + one.length for one in found.annotations]
        assert [0, *ends[:-1]] == [one.offset for one in found.annotations]
        assert ends[-1] == len(raw)


def test_a_response_that_is_cut_off_is_not_shown_as_a_request(run: Run) -> None:
    """The correlation id is 7, and Produce has a version 7."""
    kind: Any = message("MetadataResponse")
    answer = kind.of(brokers=[{"node_id": 1, "host": "broker-1.example.com", "port": 9092}])
    payload = response_payload(METADATA, 12, answer)
    for cut in range(20, len(payload)):
        data = (len(payload).to_bytes(4, "big") + payload[:cut]).hex()
        ran = run("decode", "--frame", data)
        assert ran.code == 1
        assert f"its first 4 bytes announce {len(payload)} bytes, but {cut} follow" in ran.err
        assert "the bytes were read as a request; if they are a response" in ran.err
        assert ran.out == ""
        named = run("decode", "--frame", data, "--api", "Metadata", "-V", "12")
        assert json.loads(named.out)["message"] == "MetadataResponse"
        assert "read as a request" not in named.err
