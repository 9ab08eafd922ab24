"""Known facts about software are reported only for that software, its versions and releases."""

from __future__ import annotations

from typing import Any

import pytest

from flexwire.protocol.audit import PINS, Conduct, Party, Use, judge
from flexwire.protocol.audit.software import _FACTS
from flexwire.schema.catalog import catalog
from flexwire.versions import Versions

KERBEROS = frozenset({"GSSAPI"})


def told(party: Party, release: str, *uses: Use, **conduct: Any) -> dict[str, str]:
    """Return the verdicts that do not depend on a version, by their evidence."""
    used = uses or (Use(3, 9, 1, 0, 0, "here"),)
    found = judge(party, Conduct("client", used, **conduct), release)
    return {one.evidence: one.verdict for one in found if one.api_key is None}


def client(name: str | None, version: str | None, client_id: str = "rdkafka") -> Party:
    return Party(client_id, "10.0.0.9", None, name, version)


@pytest.mark.parametrize(
    ("name", "version", "breaks"),
    [
        ("librdkafka", "2.10.1", True),
        ("librdkafka", "1.4.0", True),
        ("librdkafka", "2.11.0", False),
        ("librdkafka", "2.16.1", False),
        ("confluent-kafka-python", "2.6.1-librdkafka-2.6.1", True),
        ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0", False),
        ("confluent-kafka-python", "2.6.1-rdkafka-2.6.1", True),
        ("apache-kafka-java", "2.4.0", False),
        (None, None, False),
    ],
)
def test_kerberos_breaks_old_librdkafka_on_4_0_0_only(
    name: str | None, version: str | None, *, breaks: bool
) -> None:
    party = client(name, version)
    for release in catalog().releases:
        found = told(party, release, mechanisms=KERBEROS)
        assert ("KAFKA-19444" in found) == (breaks and release == "4.0.0"), release
    if breaks:
        assert told(party, "4.0.0", mechanisms=KERBEROS)["KAFKA-19444"] == "known to break"


def test_whether_kerberos_is_used_has_to_be_seen() -> None:
    party = client("librdkafka", "2.3.0")
    assert told(party, "4.0.0")["KAFKA-19444"] == "cannot say"
    assert told(party, "4.0.0", whole=True) == {"versions": "nothing seen against it"}
    assert "KAFKA-19444" not in told(party, "4.0.0", mechanisms=frozenset({"PLAIN"}))


@pytest.mark.parametrize(
    ("name", "version", "release", "evidence"),
    [
        ("librdkafka", "1.6.0", "4.0.2", "librdkafka-baseline"),
        ("librdkafka", "1.8.2", "4.0.2", None),
        ("sarama", "1.30.0", "4.4.0", "sarama-baseline"),
        ("sarama", "v1.43.3", "4.4.0", None),
        ("apache-kafka-java", "2.8.2", "4.4.0", "java-partly"),
        ("apache-kafka-java", "3.0.0", "4.4.0", None),
        ("apache-kafka-java", "2.8.2", "3.9.2", None),
        ("apache-kafka-java", "", "4.4.0", None),
    ],
)
def test_what_is_documented_is_a_remark_beside_the_verdict(
    name: str, version: str, release: str, evidence: str | None
) -> None:
    found = told(client(name, version), release)
    remarks = {evidence: "documented as unsupported"} if evidence else {}
    assert found == {**remarks, "versions": "nothing seen against it"}


def java(version: int, offered: int, client_id: str = "producer-1") -> dict[str, str]:
    use = Use(0, version, 5, 0, 0, "here", Versions(0, offered))
    return told(client(None, None, client_id), "4.3.1", use)


def test_a_nameless_client_with_a_java_client_id_is_remarked_on_by_its_own_limit() -> None:
    assert java(6, 11)["java-before-2.1"] == "documented as unsupported"
    assert java(6, 11, "consumer-readers-1")["java-before-2.1"] == "documented as unsupported"
    # Kafka 2.1 supports Produce 7; any client of a broker without higher versions is limited.
    assert "java-before-2.1" not in java(7, 11)
    assert "java-before-2.1" not in java(6, 6)
    assert "java-before-2.1" not in java(6, 11, "billing")


def test_each_fact_has_its_sources_and_a_remedy_and_they_are_told() -> None:
    for one in (*_FACTS["breaks"], *_FACTS["pins"]):
        assert one["sources"]
        assert one["remedy"]
    conduct = Conduct("client", (Use(3, 9, 1, 0, 0, "here"),), mechanisms=KERBEROS)
    found = judge(client("librdkafka", "2.3.0"), conduct, "4.0.0")[0]
    assert found.source.startswith("KAFKA-19444, ")
    assert found.source.endswith(f"looked at on {_FACTS['checked']}")
    assert "2.11.0" in found.remedy


def test_the_settings_that_pin_are_of_different_clients() -> None:
    assert len({pin.client for pin in PINS}) == len(PINS) >= 5
