"""Request header 3 (KIP-1313) works with a catalog of specs like those of Kafka's trunk."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from flexwire.capture.pairing.pairing import Hindsight, Pairing, build_paired
from flexwire.capture.reassembly.connections import CapturedFrame
from flexwire.capture.reassembly.frames import FrameColumns
from flexwire.cli.app import app
from flexwire.errors import DecodeError
from flexwire.protocol import (
    Conversation,
    parse_request,
    parse_response,
    request_header_version,
)
from flexwire.protocol.headers import Numbering
from flexwire.schema.catalog import use_catalog
from tests.protocol.payloads import make
from tests.schema.trunk import GET_TELEMETRY, OFFSET_DELETE, PUSH_TELEMETRY, trunk_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

INSTANCE = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")


@pytest.fixture(scope="module", autouse=True)
def _trunk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    use_catalog(trunk_catalog(tmp_path_factory.mktemp("trunk")))
    yield
    use_catalog(None)


def header(**fields: Any) -> bytes:
    known = {"request_api_key": OFFSET_DELETE, "request_api_version": 1, "correlation_id": 10}
    encoded: bytes = make("RequestHeader", **known, client_id="", **fields).encode(3)
    return encoded


def test_its_bytes_are_those_of_header_2_and_a_tag() -> None:
    # Source: sizes of RequestHeaderTest in Kafka's pull request 23544.
    assert header(client_instance_id=INSTANCE).hex() == (
        "002f00010000000a0000" + "01" + "00" + "10" + INSTANCE.hex
    )
    assert len(header(client_instance_id=INSTANCE)) == 29
    assert header().hex() == "002f00010000000a000000"


@pytest.mark.parametrize(
    ("api_key", "versions"),
    [(OFFSET_DELETE, (1, 3)), (GET_TELEMETRY, (2, 3)), (PUSH_TELEMETRY, (2, 3)), (18, (1, 1))],
)
def test_a_version_has_the_header_that_its_spec_names(
    api_key: int, versions: tuple[int, ...]
) -> None:
    assert tuple(request_header_version(api_key, n) for n in (0, 1)) == versions


def test_kip_482_s_own_numbers_go_by_flexibility() -> None:
    assert request_header_version(OFFSET_DELETE, 1, Numbering.KIP_482) == 1
    assert request_header_version(OFFSET_DELETE, 0, Numbering.KIP_482) == 0


@pytest.mark.parametrize("instance", [INSTANCE, uuid.UUID(int=0)])
def test_a_frame_is_read_with_the_client_instance_id(instance: uuid.UUID) -> None:
    body = make("OffsetDeleteRequest", group_id="g").encode(1)
    request = parse_request(header(client_instance_id=instance) + body)
    read: Any = request.header
    assert (request.header_version, read.client_instance_id) == (3, instance)
    assert read.unknown_tagged_fields == {}
    decoded: Any = make("OffsetDeleteRequest").decode(
        (header(client_instance_id=instance) + body)[request.body_offset :], 1
    )
    assert decoded.group_id == "g"


def test_a_null_client_id_is_read_as_null() -> None:
    payload = bytes.fromhex("002f00010000000affff" + "010010") + INSTANCE.bytes
    assert parse_request(payload).client_id is None


@pytest.mark.parametrize("instance", [INSTANCE, uuid.UUID(int=0)])
@pytest.mark.parametrize("client_id", ["shop", None])
def test_each_reading_of_the_kip_gives_the_client_id_of_the_connection(
    client_id: str | None, instance: uuid.UUID
) -> None:
    # Each id may be in every request, or only in the first request.
    body = make("OffsetDeleteRequest", group_id="g").encode(1)
    payloads = [
        make(
            "RequestHeader",
            request_api_key=OFFSET_DELETE,
            request_api_version=1,
            correlation_id=number,
            client_id=client_id if number else "shop",
            client_instance_id=instance if number else INSTANCE,
        ).encode(3)
        + body
        for number in range(3)
    ]
    frames = [
        CapturedFrame("a>b", "request", one, one, one, len(payload) + 4, payload)
        for one, payload in enumerate(payloads)
    ]
    pairing, found = Pairing(), []
    for one in frames:
        chunk = FrameColumns.from_frames([one], "a.pcapng")
        rows = build_paired(chunk, pairing.read_headers(chunk), Hindsight())
        found += rows.select(["client_id", "header_version", "outcome"]).to_pylist()
    assert found == [{"client_id": "shop", "header_version": 3, "outcome": None}] * 3
    conversation = Conversation()
    requests = [conversation.request(payload).request for payload in payloads]
    assert [one.client_id for one in requests if one is not None] == ["shop"] * 3


def test_an_unknown_tag_beside_it_is_kept() -> None:
    payload = header(client_instance_id=INSTANCE, unknown_tagged_fields={7: b"new"})
    read: Any = parse_request(payload).header
    assert (read.client_instance_id, read.unknown_tagged_fields) == (INSTANCE, {7: b"new"})
    assert read.encode(3) == payload


@pytest.mark.parametrize("size", range(10, 29))
def test_a_header_that_is_cut_off_is_an_error(size: int) -> None:
    with pytest.raises(DecodeError, match=r"RequestHeader v3"):
        parse_request(header(client_instance_id=INSTANCE)[:size])


def test_an_id_of_another_size_is_an_error() -> None:
    payload = bytes.fromhex("002f00010000000a0000" + "01000f") + bytes(15)
    with pytest.raises(DecodeError, match="clientInstanceId"):
        parse_request(payload)


def test_its_response_has_header_1() -> None:
    answer = bytes.fromhex("0000000a" + "00") + make("OffsetDeleteResponse").encode(1)
    assert parse_response(answer, OFFSET_DELETE, 1).header_version == 1


def test_frames_are_explained_with_it() -> None:
    payload = header(client_instance_id=INSTANCE) + make("OffsetDeleteRequest").encode(1)
    frame = (len(payload).to_bytes(4, "big") + payload).hex()
    ran = CliRunner().invoke(app, ["explain", "--frame", frame], catch_exceptions=False)
    assert ran.exit_code == 0
    assert "clientInstanceId" in ran.output
    assert str(INSTANCE) in ran.output
    ran = CliRunner().invoke(app, ["decode", "--frame", frame, "--compact"], catch_exceptions=False)
    assert '"headerVersion": 3' in ran.output
    assert '"clientInstanceId": "ASNFZ4mrze8BI0VniavN7w"' in ran.output
