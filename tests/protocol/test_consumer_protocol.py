"""Each obstacle to the consumer protocol leads to its verdict; the most serious verdict wins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flexwire.protocol.audit.consumer_protocol import (
    GROUP_VERDICTS,
    REFUSALS,
    SUPPORT,
    UNSEEN,
    GroupMember,
    GroupTraits,
    judge_group,
)
from flexwire.protocol.error_codes import ERROR_NAMES
from flexwire.protocol.nested_messages import read_versioned
from tests.protocol.payloads import make

JAVA = GroupMember("apache-kafka-java", "4.1.0", ("range", "cooperative-sticky"), 45_000)
RDKAFKA = GroupMember("librdkafka", "2.12.0", ("range", "roundrobin"), 45_000)
FRANZ = GroupMember("kgo", "v1.22.2", ("cooperative-sticky",), 45_000)
PLAIN = GroupTraits("consumer", (JAVA,), has_user_data=False)
CODES = {name: code for code, name in ERROR_NAMES.items()}


def of(software: str | None, version: str | None) -> GroupMember:
    return GroupMember(software, version, JAVA.assignors, JAVA.session_timeout_ms)


def test_a_java_consumer_with_its_defaults_moves_as_it_is() -> None:
    judgement = judge_group(PLAIN)
    assert judgement.verdict == "moves as it is"
    assert "by default from 5.0.0 on" in judgement.reason
    assert "KIP-1274" in judgement.source


@pytest.mark.parametrize(
    ("change", "verdict", "words"),
    [
        ({"uses_it": True}, "uses it already", "ConsumerGroupHeartbeat"),
        ({"uses_it": True, "refusals": (69,)}, "uses it already", "ConsumerGroupHeartbeat"),
        ({"refusals": (69,), "has_user_data": True}, "blocked", "user data"),
        ({"protocol_type": "connect"}, "blocked", "protocol type is connect"),
        ({"has_user_data": True}, "blocked", "user data"),
        ({"is_unreadable": True}, "blocked", "is not in the consumer format"),
        ({"is_unreadable": True, "has_user_data": True}, "blocked", "user data"),
        ({"members": ()}, "cannot say", "no member reports"),
    ],
)
def test_each_trait_alone(change: dict[str, object], verdict: str, words: str) -> None:
    judgement = judge_group(replace(PLAIN, **change))  # type: ignore[arg-type]
    assert judgement.verdict == verdict
    assert words in judgement.reason
    assert judgement.remedy or verdict in {"uses it already", "cannot say"}


@pytest.mark.parametrize(
    ("member", "verdict", "words"),
    [
        (of("apache-kafka-java", "3.9.2"), "cannot say", "early access"),
        (of("apache-kafka-java", "3.6.2"), "blocked", "lacks the protocol"),
        (of("librdkafka", "2.6.1"), "cannot say", "preview"),
        (of("librdkafka", "2.3.0"), "blocked", "lacks the protocol"),
        (of("kgo", "1.18.1"), "blocked", "lacks the protocol"),
        (of(None, None), "cannot say", "does not report its client software"),
        (of("sarama", "1.46.0"), "cannot say", "sarama"),
        (of("apache-kafka-java", None), "cannot say", "version"),
        (replace(JAVA, assignors=("sticky",)), "moves after a setting", "partition.assignment"),
        (replace(JAVA, session_timeout_ms=6000), "moves after a setting", "session.timeout.ms is"),
        # The capture contains no JoinGroup.
        (GroupMember("apache-kafka-java", "4.1.0"), "moves as it is", "no obstacle was seen"),
        (RDKAFKA, "moves after a setting", "by default"),
        (replace(RDKAFKA, assignors=("roundrobin",)), "moves after a setting", "does not start"),
        (replace(RDKAFKA, session_timeout_ms=6000), "moves after a setting", "does not start"),
        (FRANZ, "moves after a setting", "by default"),
        (replace(FRANZ, session_timeout_ms=6000), "moves after a setting", "by default"),
        # The first balancer in the setting decides.
        (replace(FRANZ, assignors=("range", "own")), "moves after a setting", "by default"),
        (replace(FRANZ, assignors=("own", "range")), "moves after a setting", "keeps the"),
        # librdkafka's bindings name librdkafka in the version that they send.
        (
            replace(RDKAFKA, software="confluent-kafka-python", version="2.12.1-rdkafka-2.12.1"),
            "moves after a setting",
            "librdkafka",
        ),
    ],
)
def test_each_library_alone(member: GroupMember, verdict: str, words: str) -> None:
    judgement = judge_group(replace(PLAIN, members=(member,)))
    assert judgement.verdict == verdict
    assert words in judgement.reason
    assert judgement.remedy or verdict == "cannot say"
    assert "{" not in judgement.remedy


@pytest.mark.parametrize("code", REFUSALS)
def test_what_a_broker_refused_is_the_verdict(code: int) -> None:
    judgement = judge_group(replace(PLAIN, refusals=(code,)))
    assert judgement is REFUSALS[code]
    assert ERROR_NAMES[code] in judgement.reason
    assert judgement.verdict in GROUP_VERDICTS
    assert judgement.remedy
    assert judgement.source


def test_an_error_that_says_nothing_about_the_group_changes_nothing() -> None:
    loading = CODES["COORDINATOR_LOAD_IN_PROGRESS"]
    assert judge_group(replace(PLAIN, refusals=(loading,))) == judge_group(PLAIN)


def test_a_graver_verdict_stands_beside_a_refusal() -> None:
    refused = CODES["UNSUPPORTED_ASSIGNOR"]
    old = replace(PLAIN, members=(of("librdkafka", "1.8.2"),), refusals=(refused,))
    assert judge_group(old).verdict == "blocked"


def test_each_error_of_an_unseen_condition_has_a_verdict_afterwards() -> None:
    assert {one.error for one in UNSEEN} - {None} <= REFUSALS.keys()


def test_both_settings_are_named_and_the_remedy_names_them_too() -> None:
    both = replace(JAVA, assignors=("roundrobin",), session_timeout_ms=6000)
    judgement = judge_group(replace(PLAIN, members=(both,)))
    names = "partition.assignment.strategy and session.timeout.ms"
    assert judgement.reason.startswith(f"{names} are set")
    assert f"remove {names}" in judgement.remedy


def test_the_gravest_verdict_of_a_group_with_several_libraries_wins() -> None:
    mixed = replace(PLAIN, members=(JAVA, RDKAFKA, of("librdkafka", "2.3.0")))
    assert judge_group(mixed).verdict == "blocked"
    unknown = replace(PLAIN, members=(JAVA, of(None, None)))
    assert judge_group(unknown).verdict == "cannot say"
    assert GROUP_VERDICTS[0] == "blocked"


def test_the_assignors_of_one_library_are_no_setting_of_another() -> None:
    judgement = judge_group(replace(PLAIN, members=(JAVA, RDKAFKA)))
    assert judgement.reason.startswith("librdkafka")
    assert "partition.assignment.strategy" not in judgement.reason + judgement.remedy


def test_every_library_has_sources_and_a_day() -> None:
    for support in SUPPORT.values():
        assert support.sources
        assert "looked at on 20" in support.citation


def test_an_assignment_of_a_later_version_is_read_as_the_highest() -> None:
    body = make("ConsumerProtocolAssignment", user_data=b"x").encode(3)
    for version in (3, 9):
        data = version.to_bytes(2, "big") + body + b"more"
        read = read_versioned("ConsumerProtocolAssignment", data)
        assert getattr(read, "user_data") == b"x"  # noqa: B009 - the class has its fields when it runs
