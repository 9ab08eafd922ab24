"""Verdicts about groups and the consumer protocol: each obstacle alone; the gravest wins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flexwire.protocol.audit.consumer_protocol import (
    GROUP_VERDICTS,
    SUPPORT,
    GroupTraits,
    judge_group,
)
from flexwire.protocol.nested_messages import read_versioned
from tests.protocol.payloads import make

JAVA = ("apache-kafka-java", "4.1.0")
PLAIN = GroupTraits("consumer", (JAVA,), (("range", "cooperative-sticky"),), (45_000,), False)


def test_a_java_consumer_with_its_defaults_moves_as_it_is() -> None:
    judgement = judge_group(PLAIN)
    assert judgement.verdict == "moves as it is"
    assert "from 5.0.0 on" in judgement.reason
    assert "KIP-1274" in judgement.source


@pytest.mark.parametrize(
    ("change", "verdict", "words"),
    [
        ({"uses_it": True}, "uses it already", "ConsumerGroupHeartbeat"),
        ({"uses_it": True, "is_refused": True}, "uses it already", "ConsumerGroupHeartbeat"),
        ({"is_refused": True}, "blocked", "GROUP_ID_NOT_FOUND"),
        ({"is_refused": True, "has_user_data": True}, "blocked", "user data"),
        ({"protocol_type": "connect"}, "blocked", "protocol type is connect"),
        ({"has_user_data": True}, "blocked", "user data"),
        ({"software": (("apache-kafka-java", "3.9.2"),)}, "blocked", "early access"),
        ({"software": (("librdkafka", "2.6.1"),)}, "blocked", "preview"),
        ({"software": ((None, None),)}, "cannot say", "does not name its software"),
        ({"software": ()}, "cannot say", "no member names"),
        ({"software": (("sarama", "1.46.0"),)}, "cannot say", "sarama"),
        ({"software": (("apache-kafka-java", None),)}, "cannot say", "version"),
        ({"assignors": (("sticky",),)}, "moves after a setting", "partition.assignment.strategy"),
        ({"session_timeouts_ms": (6000,)}, "moves after a setting", "session.timeout.ms is set"),
        ({"software": (("librdkafka", "2.12.0"),)}, "moves after a setting", "by default"),
        ({"software": (("kgo", "v1.22.2"),)}, "moves after a setting", "by default"),
        # Bindings name the library inside. Their assignors are no settings of a Java client.
        (
            {
                "software": (("confluent-kafka-python", "2.12.1-rdkafka-2.12.1"),),
                "assignors": (("range", "roundrobin"),),
            },
            "moves after a setting",
            "librdkafka",
        ),
    ],
)
def test_each_trait_alone(change: dict[str, object], verdict: str, words: str) -> None:
    judgement = judge_group(replace(PLAIN, **change))  # type: ignore[arg-type]
    assert judgement.verdict == verdict
    assert words in judgement.reason
    assert judgement.remedy or verdict in {"uses it already", "cannot say"}


def test_both_settings_are_named_and_the_remedy_names_them_too() -> None:
    judgement = judge_group(
        replace(PLAIN, assignors=(("roundrobin",),), session_timeouts_ms=(6000,))
    )
    names = "partition.assignment.strategy and session.timeout.ms"
    assert judgement.reason.startswith(f"{names} are set")
    assert f"remove {names}" in judgement.remedy


def test_the_gravest_verdict_of_a_group_with_several_libraries_wins() -> None:
    mixed = replace(PLAIN, software=(JAVA, ("librdkafka", "2.13.0"), ("librdkafka", "2.3.0")))
    assert judge_group(mixed).verdict == "blocked"
    unknown = replace(PLAIN, software=(JAVA, (None, None)))
    assert judge_group(unknown).verdict == "cannot say"
    assert GROUP_VERDICTS[0] == "blocked"


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
