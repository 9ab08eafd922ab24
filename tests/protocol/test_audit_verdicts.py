"""Each kind of evidence leads to its own verdict, and to no other."""

from __future__ import annotations

from typing import Any

import pytest

from flexwire.errors import UnknownMessageError
from flexwire.protocol.audit import VERDICTS, Conduct, Party, Use, judge
from flexwire.schema.catalog import catalog
from flexwire.versions import Versions

PRODUCE, FETCH, LIST_OFFSETS, METADATA, LEADER_AND_ISR, JOIN_GROUP, API_VERSIONS = (
    0, 1, 2, 3, 4, 11, 18,
)  # fmt: skip
CONSUMER_HEARTBEAT, PUSH_TELEMETRY, SHARE_FETCH = 68, 72, 78
NAMELESS = Party("billing", "10.0.0.9")
ALL, OLD = Versions(0, 17), Versions(0, 3)


def use(api_key: int, version: int, **evidence: Any) -> Use:
    told = {"requests": 7, "first_us": 10, "last_us": 20, "asked": "here", **evidence}
    return Use(api_key, version, **told)


def verdicts(*uses: Use, release: str = "4.0.2", brokers: tuple[str, ...] = ()) -> list[Any]:
    return judge(NAMELESS, Conduct("client", uses), release, brokers=brokers)


NEVER, UNSEEN, ELSEWHERE = {"asked": "never"}, {"asked": "unseen"}, {"asked": "elsewhere"}
# api key, version, evidence, the possible releases of the brokers, verdict, evidence
CASES = [
    # The version is refused, and the connection closed without an answer.
    (FETCH, 3, {"closed": True, "offered": Versions(4, 17)}, (), "broke", "closed"),
    (FETCH, 3, {"closed": True, **NEVER}, (), "broke", "closed"),
    (FETCH, 3, {"closed": True, **UNSEEN}, (), "broke", "closed"),
    (FETCH, 99, {"closed": True, "offered": ALL, **NEVER}, (), "broke", "closed"),
    # A broker might not read all versions that it advertises: 4.x lists Produce 0-13, but closes
    # the connection on 2.
    (PRODUCE, 2, {"closed": True, "offered": Versions(0, 13)}, ("4.3.1",), "broke", "closed"),
    # A broker that reads the version closed the connection for another reason; an unknown release
    # may do so too.
    (PRODUCE, 2, {"closed": True, "offered": Versions(0, 11)}, ("3.9.2",), "will break", "offered"),
    (PRODUCE, 2, {"closed": True, "offered": Versions(0, 11)}, (), "will break", "offered more"),
    # The client's own limit, or a setting that pins a version.
    (FETCH, 3, {"offered": ALL}, (), "will break", "offered more"),
    (FETCH, 3, {"offered": ALL, **ELSEWHERE}, (), "will break", "offered more"),
    (FETCH, 3, {"offered": ALL, **UNSEEN}, (), "will break", "offered more"),
    (FETCH, 3, {"offered": ALL, **NEVER}, (), "will break", "never asked"),
    (FETCH, 3, NEVER, (), "will break", "never asked"),
    (FETCH, 3, {"offered": OLD, **NEVER}, (), "will break", "never asked"),
    (FETCH, 3, {"offered": Versions.NONE}, (), "will break", "not offered"),
    (LEADER_AND_ISR, 7, {"offered": Versions(0, 7)}, (), "will break", "API removed"),
    (FETCH, 99, NEVER, (), "will break", "never asked"),
    # The broker offered no higher version, or the capture contains no list of versions.
    (FETCH, 3, {"offered": OLD}, (), "cannot say", "offered no more"),
    (FETCH, 3, {"offered": OLD, **ELSEWHERE}, (), "cannot say", "offered no more"),
    (FETCH, 3, {"offered": OLD, **UNSEEN}, (), "cannot say", "offered no more"),
    (FETCH, 3, {}, (), "cannot say", "range not seen"),
    (FETCH, 3, UNSEEN, (), "cannot say", "range not seen"),
    (FETCH, 99, UNSEEN, (), "cannot say", "asking not seen"),
    # The release lacks the API, and it is not known how the client reacts.
    (999, 0, UNSEEN, (), "cannot say", "API missing"),
    (999, 0, {}, (), "cannot say", "API missing"),
    (999, 0, NEVER, (), "will break", "API missing"),
    (SHARE_FETCH, 1, {}, (), "will break", "API missing"),
    (SHARE_FETCH, 0, {}, (), "cannot say", "early access"),
    # Versions that the release reads, and versions that a negotiating client lowers.
    (FETCH, 4, NEVER, (), "nothing seen against it", ""),
    (FETCH, 4, {"closed": True, **NEVER}, (), "nothing seen against it", ""),
    (METADATA, 0, NEVER, (), "nothing seen against it", ""),
    (FETCH, 18, {"offered": Versions(4, 18)}, (), "nothing seen against it", ""),
    (FETCH, 18, ELSEWHERE, (), "nothing seen against it", ""),
    (CONSUMER_HEARTBEAT, 1, {}, (), "nothing seen against it", ""),
    (PUSH_TELEMETRY, 0, {}, (), "nothing seen against it", ""),
    (API_VERSIONS, 99, NEVER, (), "nothing seen against it", ""),
    (API_VERSIONS, 99, {"closed": True, **NEVER}, (), "nothing seen against it", ""),
]  # fmt: skip


@pytest.mark.parametrize(("api_key", "version", "evidence", "brokers", "verdict", "rule"), CASES)
def test_evidence_gives_its_verdict(
    api_key: int,
    version: int,
    evidence: dict[str, Any],
    brokers: tuple[str, ...],
    verdict: str,
    rule: str,
) -> None:
    (found,) = verdicts(use(api_key, version, **evidence), brokers=brokers)
    assert found.verdict == verdict, found
    assert rule in found.evidence
    assert found.reason
    about_version = (api_key, version) if rule else (None, None)
    assert (found.api_key, found.version) == about_version


def test_the_cases_have_every_verdict_about_versions() -> None:
    about_software = {"known to break", "documented as unsupported", "not judged"}
    about_software |= {"will do nothing"}  # The configuration has no effect.
    assert {case[4] for case in CASES} == set(VERDICTS) - about_software


def test_a_version_is_one_finding_with_the_gravest_of_its_evidence() -> None:
    closed = use(FETCH, 3, closed=True, requests=1, first_us=5, offered=Versions(4, 17))
    told = use(FETCH, 3, offered=ALL, last_us=99)
    unknown = use(FETCH, 3, asked="unseen")
    for order in ((closed, told, unknown), (unknown, told, closed)):
        (found,) = verdicts(*order)
        assert found.verdict == "broke"
        assert (found.requests, found.first_us, found.last_us) == (15, 5, 99)


def test_the_gravest_finding_comes_first_and_nothing_seen_stands_alone() -> None:
    found = verdicts(use(FETCH, 3), use(LIST_OFFSETS, 0, asked="never"), use(METADATA, 9))
    assert [(one.verdict, one.api_key) for one in found] == [
        ("will break", LIST_OFFSETS),
        ("cannot say", FETCH),
    ]


def test_a_patch_release_is_judged_by_itself() -> None:
    join = use(JOIN_GROUP, 1, offered=Versions(0, 9))
    (refused,) = verdicts(join, release="4.0.0")
    assert (refused.verdict, refused.last_accepting, refused.first_refusing) == (
        "will break", "3.9.2", "4.0.0",
    )  # fmt: skip
    assert "4.0.2" in refused.remedy
    for release in ("3.9.2", "4.0.2", "4.4.0"):
        assert verdicts(join, release=release)[0].verdict == "nothing seen against it"


def test_where_the_refusal_began_is_told_for_every_later_release() -> None:
    for release in catalog().releases:
        (found,) = verdicts(use(FETCH, 3, offered=ALL), release=release)
        refused = int(release.partition(".")[0]) >= 4
        assert found.verdict == ("will break" if refused else "nothing seen against it")
        began = ("3.9.2", "4.0.0") if refused else (None, None)
        assert (found.last_accepting, found.first_refusing) == began


def test_the_remedy_names_the_settings_that_pin() -> None:
    pinned = Conduct("client", (use(FETCH, 3, asked="never"),))
    (anybody,) = judge(NAMELESS, pinned, "4.0.2")
    for setting in ("api_version of kafka-python", "api.version.request=false", "Config.Version"):
        assert setting in anybody.remedy
    assert "Fetch 4-17" in anybody.remedy
    (sarama,) = judge(Party("a", None, None, "sarama", "1.40.0"), pinned, "4.0.2")
    assert "Config.Version" in sarama.remedy
    assert "kafka-python" not in sarama.remedy


def test_nothing_seen_says_in_what_nothing_was_seen() -> None:
    hours = 3_600_000_000
    uses = (use(METADATA, 9), use(FETCH, 13, first_us=0, last_us=3 * hours))
    (found,) = judge(NAMELESS, Conduct("client", uses, connections=4), "4.0.2")
    assert "2 APIs" in found.reason
    assert "4 connections in 3 hours" in found.reason


@pytest.mark.parametrize(
    ("microseconds", "told"),
    [
        (0, "less than a second"),
        (999_000, "less than a second"),
        (1_000_000, "1 second"),
        (59_940_000, "59.9 seconds"),
        (59_999_999, "1 minute"),
        (60_000_000, "1 minute"),
        (5_400_000_000, "1.5 hours"),
        (3_599_999_999, "1 hour"),
        (86_399_999_999, "1 day"),
        (2 * 86_400_000_000, "2 days"),
        (1_234 * 86_400_000_000, "1234 days"),
    ],
)
def test_how_long_a_client_was_seen_is_said_in_a_unit_that_fits(
    microseconds: int, told: str
) -> None:
    seen = Conduct("client", (use(FETCH, 13, first_us=0, last_us=microseconds),), connections=1)
    (found,) = judge(NAMELESS, seen, "4.0.2")
    assert found.reason.endswith(f"; 1 connection in {told}")


@pytest.mark.parametrize("role", ["broker", "controller"])
def test_brokers_and_controllers_never_break(role: Any) -> None:
    conduct = Conduct(role, (use(LEADER_AND_ISR, 7, closed=True), use(FETCH, 3, asked="never")))
    (found,) = judge(Party("1", "10.0.0.1", None, "librdkafka", "1.0.0"), conduct, "4.0.2")
    assert (found.verdict, found.evidence, found.api_key) == ("not judged", role, None)


def test_a_release_that_there_is_not_is_an_error() -> None:
    with pytest.raises(UnknownMessageError, match=r"no release '4\.0\.9'"):
        judge(NAMELESS, Conduct("client", (use(FETCH, 3),)), "4.0.9")
