"""A quirk excuses one rule in one API, in its versions and releases, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.codec import message
from flexwire.conformance import RULES, Asking, CaseVerdict, conform
from flexwire.conformance.rules import LISTS, QUIRKS, TAGS, find_quirk
from flexwire.protocol.apis import api_key_of
from flexwire.schema.catalog import catalog
from tests.conformance.brokers import SILENCE, kafka_like
from tests.protocol.payloads import frame

if TYPE_CHECKING:
    from flexwire.protocol import RequestFrame

BRIEF = 5.0


def test_a_quirk_is_found_by_all_that_it_says() -> None:
    [quirk] = [one for one in QUIRKS if one.api_name == "OffsetFetch"]
    assert find_quirk(LISTS, "OffsetFetch", 8, "3.9.2") is quirk
    assert find_quirk(LISTS, "OffsetFetch", 9, "4.0.2") is quirk
    for other in (
        (TAGS, "OffsetFetch", 8, "3.9.2"),
        (LISTS, "ListOffsets", 8, "3.9.2"),
        (LISTS, "OffsetFetch", 7, "3.9.2"),
        (LISTS, "OffsetFetch", 10, "4.0.2"),
        (LISTS, "OffsetFetch", 8, "4.4.0"),
    ):
        assert find_quirk(*other) is None


def test_every_quirk_is_one_of_releases_and_rules_that_there_are() -> None:
    for quirk in QUIRKS:
        assert quirk.rule in RULES
        assert api_key_of(quirk.api_name) in catalog().api_keys()
        for beginning in quirk.releases:
            assert any(name.startswith(beginning) for name in catalog().final_releases)
        assert quirk.reason.startswith(("KAFKA-", "measured: "))


def test_every_rule_has_a_name_of_its_own_and_a_source() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule.name.isupper()
        assert rule.sentence.endswith(".")
        assert rule.source


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "verdict"), [("4.0.2", CaseVerdict.QUIRK), ("4.4.0", CaseVerdict.DEVIATES)]
)
def test_a_quirk_counts_as_kafka_only_beside_its_release(
    release: str, verdict: CaseVerdict
) -> None:
    def silent(request: RequestFrame, payload: bytes, answer: bytes) -> bytes:
        if (request.api_name, request.api_version) != ("OffsetFetch", 9):
            return frame(answer)
        body = message("OffsetFetchRequest").decode(payload[request.body_offset :], 9)
        return frame(answer) if body.to_json(9)["groups"] else SILENCE

    with kafka_like(silent) as (address, _):
        asking = Asking(release, frozenset((api_key_of("OffsetFetch"),)))
        run = conform(address, asking, timeout=BRIEF)
    [found] = [one for one in run.results if one.verdict is not CaseVerdict.AS_KAFKA]
    [quirk] = [one for one in QUIRKS if one.api_name == "OffsetFetch"]
    assert (found.case.name, found.verdict) == ("OffsetFetch 9, empty lists", verdict)
    assert run.as_kafka == run.judged - (verdict is CaseVerdict.DEVIATES)
    assert found.remark == (quirk.reason if verdict is CaseVerdict.QUIRK else "")
