"""A tap that filters captures both a request and its answer or neither, and counts all frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from click.testing import CliRunner

from flexwire.capture.files.comments import CapturedPart, CaptureFilter, part_in
from flexwire.capture.files.reading import open_capture
from flexwire.capture.messages import CapturedMessage, read_messages
from flexwire.cli.app import app
from flexwire.protocol import Conversation
from flexwire.protocol.frames import FrameGroup, to_frame
from flexwire.schema.catalog import catalog
from flexwire.tap.frame_filter import FrameFilter, TopicNames, parse_api, topic_fields
from flexwire.tap.metrics import TapStatistics
from tests.net.broker import Broker, captured, connected, run, serving, settled, tapped
from tests.net.test_withholding import answer as sasl_answer
from tests.net.test_withholding import sasl
from tests.protocol.payloads import frame, make, request_payload, response_payload

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from flexwire.protocol import RequestFrame
    from flexwire.tap import Tap

PRODUCE, FETCH, METADATA, HEARTBEAT, LIST_GROUPS = 0, 1, 3, 12, 16
IDS = {"orders": UUID(int=5), "other": UUID(int=6)}


def metadata(*names: str) -> Any:
    kind = make("MetadataResponse")
    topics = [kind.MetadataResponseTopic(name=one, topic_id=IDS[one]) for one in names]
    return make("MetadataResponse", topics=topics)


def fetch(*topics: str | UUID, version: int) -> bytes:
    kind = make("FetchRequest")
    named = [
        kind.FetchTopic(topic_id=one) if isinstance(one, UUID) else kind.FetchTopic(topic=one)
        for one in topics
    ]
    return request_payload(FETCH, version, make("FetchRequest", topics=named))


def produce(topic: str, acks: int = -1) -> bytes:
    kind = make("ProduceRequest")
    data = kind.TopicProduceData(name=topic)
    body = make("ProduceRequest", acks=acks, timeout_ms=1, topic_data=[data])
    return request_payload(PRODUCE, 9, body)


class Judge:
    """A connection whose frames are filtered one by one."""

    def __init__(self, only: CaptureFilter, names: TopicNames | None = None) -> None:
        self.stats = TapStatistics()
        self.filter = FrameFilter(only, names or TopicNames(), self.stats)
        self.conversation = Conversation()

    def asked(self, payload: bytes) -> bool:
        return self._is_kept(payload, self.conversation.request(payload))

    def answered(self, payload: bytes) -> bool:
        return self._is_kept(payload, self.conversation.response(payload))

    def _is_kept(self, payload: bytes, turn: Any) -> bool:
        frames, (takes,) = self.filter.select(FrameGroup(to_frame(payload), [payload]), [turn])
        assert frames == (
            FrameGroup(to_frame(payload), [payload]) if takes else FrameGroup(b"", [])
        )
        return takes


def test_a_request_and_its_response_are_there_together_or_not_at_all() -> None:
    judge = Judge(CaptureFilter(apis=("Metadata",)))
    assert judge.asked(request_payload(METADATA, 9, make("MetadataRequest"), correlation_id=1))
    assert not judge.asked(request_payload(LIST_GROUPS, 3, correlation_id=2))
    left_out = response_payload(LIST_GROUPS, 3, b"abc", correlation_id=2)
    assert not judge.answered(left_out)
    assert judge.answered(response_payload(METADATA, 9, metadata(), correlation_id=1))
    # The capture shows that the response answers no captured request.
    assert judge.answered(left_out)
    assert judge.stats.filtered_frames == 2


@pytest.mark.parametrize(
    ("client_id", "is_kept"),
    [("billing-1", True), ("billing-", True), ("x-billing", False), (None, True), ("B", False)],
)
def test_client_ids_are_texts_with_any_text_in_them(client_id: str | None, is_kept: Any) -> None:
    judge = Judge(CaptureFilter(client_ids=("billing-*", "")))
    assert judge.asked(request_payload(LIST_GROUPS, 3, client_id=client_id)) is is_kept


def test_a_client_id_that_a_connection_gave_once_holds_for_its_later_requests() -> None:
    # Source: KIP-1313, the client id may be null after the first request.
    only = CaptureFilter(client_ids=("billing",))
    named, other, nobody = Judge(only), Judge(only), Judge(only)
    assert named.asked(request_payload(LIST_GROUPS, 3, client_id="billing"))
    assert not other.asked(request_payload(LIST_GROUPS, 3, client_id="orders"))
    for number in range(2, 5):
        later = request_payload(LIST_GROUPS, 3, client_id=None, correlation_id=number)
        answer = response_payload(LIST_GROUPS, 3, b"abc", correlation_id=number)
        assert (named.asked(later), named.answered(answer)) == (True, True)
        assert (other.asked(later), other.answered(answer)) == (False, False)
        assert not nobody.asked(later)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("axbyc", True),
        ("abc", True),
        ("ac", False),
        ("abcd", False),
        ("xabc", False),
        ("abb", False),
    ],
)
def test_stars_stand_for_any_text_between_others(text: str, fits: Any) -> None:
    assert CaptureFilter(topics=("no", "a*b*c")).takes_topic(text) is fits
    assert not CaptureFilter(topics=("aa*aa",)).takes_topic("aaa"), "parts do not overlap"
    assert CaptureFilter(topics=("*",)).takes_topic(text)


def test_a_hostile_client_id_is_judged_at_once() -> None:
    # A search with backtracking would never end.
    only = CaptureFilter(client_ids=("*a*a*a*a*a*a*b*",))
    assert not only.takes_client("a" * 32_767)


@pytest.mark.parametrize(
    ("payload", "is_kept"),
    [
        (produce("orders"), True),
        (produce("other"), False),
        (produce("orders.2"), False),
        (fetch("other", "orders", version=11), True),
        (fetch("other", version=11), False),
        (fetch(IDS["orders"], version=13), True),
        (fetch(IDS["other"], version=13), False),
        # An id that no response has named may belong to any topic.
        (fetch(UUID(int=77), version=13), True),
        # Requests that name no topic, and requests for all topics.
        (request_payload(HEARTBEAT, 3, make("HeartbeatRequest")), False),
        (request_payload(METADATA, 9, make("MetadataRequest", topics=None)), True),
        # This frame cannot be decoded.
        (produce("other")[:-1], True),
    ],
)
def test_a_request_is_about_the_topics_that_it_names(payload: bytes, is_kept: Any) -> None:
    names = TopicNames()
    other = Judge(CaptureFilter(topics=("orders",)), names)
    other.asked(request_payload(METADATA, 12, make("MetadataRequest")))
    other.answered(response_payload(METADATA, 12, metadata("orders", "other")))
    assert Judge(CaptureFilter(topics=("orders",)), names).asked(payload) is is_kept


@pytest.mark.parametrize("first", [None, "orders", "other"])
def test_a_fetch_that_names_nothing_goes_on_with_its_session(first: str | None) -> None:
    judge = Judge(CaptureFilter(topics=("orders",)))
    if first is not None:
        assert judge.asked(fetch(first, version=11)) is (first == "orders")
    assert judge.asked(fetch(version=11)) is (first != "other")


def test_sasl_and_what_is_not_understood_stay() -> None:
    judge = Judge(CaptureFilter(topics=("orders",), apis=("Produce",)))
    assert judge.asked(sasl(0)[0])
    assert judge.asked(b"\0alice\0secret")
    assert judge.asked(sasl()[1])
    assert Judge(CaptureFilter(apis=("Produce",))).asked(b"\x7f\x7f" + bytes(20))
    assert judge.stats.filtered_frames == 0


@pytest.mark.long
@pytest.mark.slow
def test_requests_that_are_never_answered_are_not_remembered_for_ever() -> None:
    judge = Judge(CaptureFilter(apis=("Metadata",)))
    for one in range(10_050):
        assert not judge.asked(request_payload(LIST_GROUPS, 3, correlation_id=one))
    assert len(judge.filter._left_out) == 10_000
    judge = Judge(CaptureFilter(apis=("Metadata",)))
    for _ in range(3):
        assert not judge.asked(produce("orders", acks=0))
    assert not judge.filter._left_out


def test_every_place_of_topics_is_one_of_its_message() -> None:
    requests = [name for name in catalog().names() if name.endswith("Request")]
    with_places = [name for name in requests if topic_fields(name)]
    assert {"FetchRequest", "ProduceRequest", "OffsetCommitRequest"} <= set(with_places)
    assert "HeartbeatRequest" not in with_places
    for name in with_places:
        assert any(
            hasattr(make(name), (*place.path, place.name or place.topic_id)[0])
            for place in topic_fields(name)
        ), name


def answers(request: RequestFrame, payload: bytes) -> bytes:
    if request.api_key in {17, 36}:
        return sasl_answer(request, payload)
    return response_payload(
        request.api_key, request.api_version, b"r" * 30, correlation_id=request.correlation_id
    )


def tapped_with(only: CaptureFilter, sent: list[bytes], out: Path) -> tuple[Tap, tuple[int, int]]:
    async def job() -> tuple[Tap, tuple[int, int]]:
        async with (
            serving(Broker(answers)) as upstream,
            tapped(upstream, out, only=only, sample=1.0) as tap,
        ):
            async with connected(tap.listen_address) as client:
                for one in sent:
                    await client.ask(one)
            async with connected(tap.listen_address) as silent:
                await silent.ask(request_payload(LIST_GROUPS, 3))
            await settled(lambda: tap.stats.open_connections == 0)
        return tap, (client.port, upstream.port)

    return run(job())


def test_what_is_left_out_leaves_no_gap(tmp_path: Path) -> None:
    sent = [
        request_payload(LIST_GROUPS, 3, correlation_id=1),
        request_payload(HEARTBEAT, 3, make("HeartbeatRequest"), correlation_id=2),
        *sasl(),
        request_payload(LIST_GROUPS, 3, correlation_id=4),
        request_payload(HEARTBEAT, 3, make("HeartbeatRequest"), correlation_id=5),
    ]
    only = CaptureFilter(apis=("Heartbeat",))
    tap, ports = tapped_with(only, sent, tmp_path)
    streams = captured(tap.capture_paths)
    kept = [sent[1], *sasl(), sent[5]]
    assert streams.keys() == {ports, ports[::-1]}, "one connection, and not the silent one"
    assert streams[ports] == b"".join(map(frame, kept))
    found = list(read_messages(tap.capture_paths))
    assert all(isinstance(one, CapturedMessage) for one in found)
    expected = ["Heartbeat", "SaslHandshake", "SaslAuthenticate", "Heartbeat"]
    assert [one.name for one in found if isinstance(one, CapturedMessage)] == [
        name + kind for name in expected for kind in ("Request", "Response")
    ]
    stats = tap.stats
    assert stats.filtered_frames == 6
    left_out = [sent[0], sent[4], request_payload(LIST_GROUPS, 3)]
    assert stats.filtered_bytes == sum(len(frame(one)) for one in left_out) + 3 * 39
    assert stats.is_captured
    with open_capture(str(tap.capture_paths[0])) as (file, _):
        assert part_in(file) == CapturedPart(1.0, "APIs Heartbeat")


def test_of_a_pair_that_is_left_out_nothing_is_there_where_it_breaks_off(tmp_path: Path) -> None:
    asked = [request_payload(one, 3, correlation_id=one) for one in (HEARTBEAT, LIST_GROUPS)]
    left_out, taken = (
        frame(response_payload(one, 3, b"r" * 30, correlation_id=one))
        for one in (LIST_GROUPS, HEARTBEAT)
    )

    async def job(begun: bytes, out: Path) -> tuple[bytes, bytes, Tap]:
        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readexactly(len(frame(asked[0]) + frame(asked[1])))
            writer.write(begun)
            await writer.drain()

        async with (
            serving(handler) as upstream,
            tapped(upstream, out, only=CaptureFilter(apis=("Heartbeat",))) as tap,
        ):
            async with connected(tap.listen_address) as client:
                await client.send(frame(asked[0]) + frame(asked[1]))
                assert await client.reader.read() == begun
            await settled(lambda: tap.stats.open_connections == 0)
            ends = client.port, upstream.port
            streams = captured(tap.capture_paths)
            return streams[ends], streams[ends[::-1]], tap

    for begun, said, filtered in (left_out[:30], b"", 2), (taken[:30], taken[:30], 1):
        requests, responses, tap = run(job(begun, tmp_path / str(filtered)))
        assert requests == frame(asked[0])
        assert responses == said
        assert (tap.stats.broken_off, tap.stats.filtered_frames) == (1, filtered)


def test_apis_are_given_by_name_or_key_and_others_are_refused(tmp_path: Path) -> None:
    assert {parse_api(one) for one in ("12", "heartbeat", "Heartbeat")} == {"Heartbeat"}
    command = ["tap", "--upstream", "b:1", "--out", str(tmp_path), "--only-api", "Hartbeat"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code != 0
    wording = "expected the name or key of an API: no API 'Hartbeat'; did you mean 'Heartbeat'?"
    assert wording in str(result.exception)
