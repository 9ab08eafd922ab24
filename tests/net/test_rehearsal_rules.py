"""A rehearsal's rules decide about each request and each list of versions, without a connection."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.capture.files.comments import ALL_FRAMES, CaptureFilter
from flexwire.codec import message
from flexwire.errors import ArgumentError, FlexwireError, UnknownMessageError
from flexwire.protocol import Conversation, parse_request
from flexwire.protocol.audit.evidence import offered_versions, role_of, stable_versions
from flexwire.schema.catalog import catalog
from flexwire.tap.forwarding import ForwardedRequests
from flexwire.tap.log_limit import LogLimiter
from flexwire.tap.metrics import TapStatistics
from flexwire.tap.rehearsal import (
    Rehearsal,
    RehearsalPlan,
    RehearsingForwarder,
    log,
    missing_apis,
    narrow,
    translate,
)
from tests.each import each
from tests.net.releases import (
    API_VERSIONS,
    FEATURES,
    NEWER,
    OLDER,
    REAL,
    asks,
    produce,
    versions_answer,
    versions_list,
)
from tests.net.test_relay import PRODUCE
from tests.protocol.payloads import frame, make, request_payload, response_payload

FINAL = catalog().final_releases[-8:]
PLAN = RehearsalPlan(NEWER, read=stable_versions(API_VERSIONS, REAL))
FETCH = 1


def forwarder(plan: RehearsalPlan = PLAN) -> tuple[RehearsingForwarder, Rehearsal, TapStatistics]:
    rehearsal, statistics = Rehearsal(plan, ALL_FRAMES), TapStatistics()
    passing = RehearsingForwarder(rehearsal, "10.0.0.9", statistics, LogLimiter(log))
    return passing, rehearsal, statistics


def in_both(body: Any, release: str) -> list[tuple[int, int, int]]:
    """Return the versions of a list that a release offers, computed independently."""
    kept = []
    for one in body.api_keys:
        own = offered_versions(one.api_key, release)
        low, high = max(own.lowest, one.min_version), min(own.highest, one.max_version)
        if own and low <= high:
            kept.append((one.api_key, low, high))
    return kept


@each("real", FINAL)
def test_a_list_has_the_versions_of_both_releases_and_all_else_as_it_was(real: str) -> None:
    for release in FINAL:
        for version in stable_versions(API_VERSIONS, real):
            request = parse_request(asks(version))
            sent = versions_answer(real, request)
            told = narrow(sent, version, version, release)
            assert told[:4] == sent[:4]
            kind: Any = message("ApiVersionsResponse")
            old, new = kind.decode(sent[4:], version), kind.decode(told[4:], version)
            found = [(one.api_key, one.min_version, one.max_version) for one in new.api_keys]
            assert found == in_both(old, release)
            new.api_keys = old.api_keys
            assert new.encode(version) == sent[4:]
            assert narrow(told, version, version, release) == told
            if real == release:
                assert told == sent


def test_produce_is_offered_from_0_although_4_0_reads_it_from_3() -> None:
    sent = versions_answer(REAL, parse_request(asks(4)))
    body: Any = message("ApiVersionsResponse").decode(narrow(sent, 4, 4, NEWER)[4:], 4)
    (offer,) = [one for one in body.api_keys if one.api_key == PRODUCE]
    assert (offer.min_version, offer.max_version) == (0, 11)
    assert stable_versions(PRODUCE, NEWER).lowest == 3


@given(
    unknown=st.dictionaries(st.integers(10, 2**31 - 1), st.binary(max_size=20), max_size=4),
    rest=st.binary(max_size=9),
    correlation_id=st.integers(-(2**31), 2**31 - 1),
)
def test_tags_that_nobody_knows_and_what_follows_stay(
    unknown: dict[int, bytes], rest: bytes, correlation_id: int
) -> None:
    body = versions_list(REAL, **FEATURES)
    body.unknown_tagged_fields = unknown
    sent = response_payload(API_VERSIONS, 4, body, correlation_id=correlation_id) + rest
    told = narrow(sent, 4, 4, NEWER)
    kind: Any = message("ApiVersionsResponse")
    new, end = kind.decode_prefix(told, 4, 4)
    assert told[:4] == sent[:4]
    assert told[end:] == rest
    new.api_keys = body.api_keys
    assert new == body


@given(st.binary(max_size=60))
def test_any_bytes_are_a_list_or_refused(payload: bytes) -> None:
    for version in (0, 2, 3, 4):
        try:
            told = narrow(payload, version, version, NEWER)
        except FlexwireError:
            continue
        assert narrow(told, version, version, NEWER) == told


def test_a_request_in_a_version_that_the_broker_lacks_goes_on_in_its_highest() -> None:
    body = make(
        "ApiVersionsRequest",
        client_software_name="librdkafka",
        client_software_version="2.6.1",
        cluster_id="c",
        node_id=3,
        unknown_tagged_fields={77: b"x"},
    )
    sent = request_payload(API_VERSIONS, 5, body, correlation_id=-9, client_id="ä")
    told = translate(sent, parse_request(sent), 4)
    body.cluster_id, body.node_id = None, make("ApiVersionsRequest").node_id
    assert told == request_payload(API_VERSIONS, 4, body, correlation_id=-9, client_id="ä")


@each("api_key", catalog().api_keys())
def test_exactly_what_the_release_does_not_read_is_refused(api_key: int) -> None:
    if api_key == API_VERSIONS or role_of({api_key}) != "client":
        return
    for version in range(20):
        passing, rehearsal, statistics = forwarder()
        payload = request_payload(api_key, version)
        turn = Conversation().request(payload)
        passed = passing.requests([payload], [turn])
        if rehearsal.over:
            # Some versions are sent only by brokers.
            assert (passed.outgoing, passed.answers) == (frame(payload), {})
        elif version in stable_versions(api_key, NEWER):
            assert (passed.outgoing, passed.answers) == (frame(payload), {}), (api_key, version)
            assert statistics == TapStatistics()
        else:
            assert (passed.outgoing, passed.answers) == (b"", {0: None}), (api_key, version)
            assert statistics.rehearsed_closed == 1
            assert passing.rest(b"more") == b""
            assert passing.requests([payload], [turn]).outgoing == b""


@each("api_key", catalog().api_keys())
def test_a_rehearsal_ends_where_the_api_is_one_of_brokers(api_key: int) -> None:
    if role_of({api_key}) == "client":
        return
    passing, rehearsal, _ = forwarder()
    for payload in (request_payload(api_key, 0), produce(2)):
        turn = Conversation().request(payload)
        assert passing.requests([payload], [turn]) == ForwardedRequests(frame(payload), [b""], {})
    assert rehearsal.over is not None
    assert "10.0.0.9 sent" in rehearsal.over


def test_a_rehearsal_ends_where_a_replica_fetches_and_not_where_a_consumer_does() -> None:
    for version in range(4, 18):
        for replica in (-1, 0, 2):
            passing, rehearsal, _ = forwarder()
            body = make("FetchRequest")
            if version < 15:
                body.replica_id = replica
            else:
                body.replica_state.replica_id = replica
            payload = request_payload(FETCH, version, body)
            passed = passing.requests([payload], [Conversation().request(payload)])
            assert passed.outgoing == frame(payload)
            assert (rehearsal.over is not None) is (replica >= 0)


@pytest.mark.parametrize(("partitions", "is_over"), [(8_000, False), (60_000, True)])
def test_a_fetch_too_long_to_look_into_may_be_a_replicas(partitions: int, *, is_over: bool) -> None:
    kind: Any = message("FetchRequest")
    body = kind.of(topics=[{"partitions": [{"partition": one} for one in range(partitions)]}])
    payload = request_payload(FETCH, 17, body)
    assert len(payload) > 200_000
    passing, rehearsal, _ = forwarder()
    assert passing.requests([payload], [Conversation().request(payload)]).outgoing == frame(payload)
    assert (rehearsal.over is not None) is is_over


def test_lists_that_are_never_answered_are_forgotten() -> None:
    passing, _, _ = forwarder()
    conversation = Conversation()
    for number in range(1200):
        payload = asks(4, number)
        passing.requests([payload], [conversation.request(payload)])
    assert len(passing._asked) == 1000


def test_an_older_broker_of_the_cluster_says_so_in_version_0() -> None:
    only = {"api_key": API_VERSIONS, "min_version": 0, "max_version": 3}
    kind: Any = message("ApiVersionsResponse")
    body = kind.of(error_code=35, api_keys=[only])
    sent = response_payload(API_VERSIONS, 4, body, body_version=0)
    assert narrow(sent, 5, 4, NEWER) == sent


def test_a_list_that_kafka_would_not_write_so_is_refused() -> None:
    sent = versions_answer(REAL, parse_request(asks(4)))
    # The number of APIs takes one byte more than necessary.
    assert sent[6] < 0x80
    longer = sent[:6] + bytes([sent[6] | 0x80, 0]) + sent[7:]
    with pytest.raises(FlexwireError):
        narrow(longer, 4, 4, NEWER)


def test_a_share_is_of_clients_and_the_same_everywhere() -> None:
    plan = RehearsalPlan(NEWER, share=0.05)
    first, second = Rehearsal(plan, ALL_FRAMES), Rehearsal(plan, ALL_FRAMES)
    clients = [(f"10.0.{one % 50}.1", f"client-{one}") for one in range(4000)]
    taken = [first.takes(*client) for client in clients]
    assert taken == [second.takes(*client) for client in clients]
    assert 150 < sum(taken) < 250
    # A larger share includes the clients of a smaller one.
    larger = Rehearsal(RehearsalPlan(NEWER, share=0.5), ALL_FRAMES)
    assert all(larger.takes(*client) for client, is_in in zip(clients, taken, strict=True) if is_in)
    only = Rehearsal(PLAN, CaptureFilter(client_ids=("billing-*",)))
    assert only.takes("h", "billing-1")
    assert not only.takes("h", "orders")
    assert not only.takes("h", None)


def test_a_plan_is_of_a_final_release_and_its_numbers_are_checked() -> None:
    assert RehearsalPlan("4.0").release == OLDER
    with pytest.raises(UnknownMessageError):
        RehearsalPlan("9.9")
    wrong: list[dict[str, Any]] = [
        {"share": 0},
        {"share": 1.5},
        {"seconds": 0},
        {"most_failed": -1},
        {"most_failed": True},
    ]
    for given_fields in wrong:
        with pytest.raises(ArgumentError):
            RehearsalPlan(NEWER, **given_fields)


def test_what_brokers_cannot_act_out_is_named() -> None:
    offered = [key for key in catalog().api_keys() if stable_versions(key, REAL)]
    missing = missing_apis(NEWER, offered)
    assert {"ShareFetch", "StreamsGroupHeartbeat"} <= set(missing)
    assert not {"Produce", "ConsumerGroupHeartbeat", "Vote"} & set(missing)
