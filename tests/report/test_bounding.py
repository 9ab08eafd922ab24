"""The page and its facts stay small for any capture, and count the entries that they leave out."""

from __future__ import annotations

import dataclasses
import json

import pytest

from flexwire.facts.answers import AnswerFacts, AnswerPicture, ShownColumn
from flexwire.facts.audit import Audit
from flexwire.facts.facts import (
    ApiFacts,
    CaptureFileFacts,
    ClientFacts,
    DecodeFailure,
    FailureCount,
    LenientUse,
    OtherConnection,
    RecordHeaderFacts,
    TaggedFieldUse,
    TopicFacts,
    UnreadableFile,
    VersionUse,
)
from flexwire.parties import Client, Party
from flexwire.report import Facts, limits, render
from flexwire.report.limits import FINDINGS, MOST, TOPICS_OF_A_KEY, bounded
from flexwire.report.render import LARGEST_BYTES
from tests.report.page import Page
from tests.report.sample import EMPTY, SAMPLE, START, finding

# Each of these takes six bytes on the page.
LONG = "\x01" * 2_000


def many(text: str, count: int) -> Facts:
    """Return facts with ``count`` entries of each kind, and ``text`` wherever text is allowed."""
    numbers = range(count)
    names = [f"{number}{text}" for number in numbers]
    clients = [Client(name, text, text) for name in names]
    told = [ShownColumn(f"c{number}", text, "text", is_about=True) for number in range(12)]
    answer = AnswerFacts(
        "longest", f"{text}?", text, text, (*told, ShownColumn("n", "n", "count")),
        AnswerPicture(text, "n"), count,
        tuple((*[name] * 12, number) for number, name in enumerate(names[:50])),
    )  # fmt: skip
    return dataclasses.replace(
        EMPTY,
        title=text,
        sources=tuple(CaptureFileFacts(name, 1, 1, 1) for name in names),
        apis=tuple(ApiFacts(number, name, 1, 1, 1, 1, 0, (*range(50),))
                   for number, name in enumerate(names)),
        clients=tuple(ClientFacts(client, 1, 1, 1, 1, 1) for client in clients),
        version_uses=tuple(VersionUse(client, key, f"{key}{text}", version, 1, "will break", text)
                           for client in clients[:70] for key in range(40) for version in range(2)),
        topics=tuple(TopicFacts(name, "fetch", 1, 1, 1, 1, 1) for name in names),
        record_headers=tuple(RecordHeaderFacts(name, tuple(names[:100]), 1) for name in names),
        tagged_fields=tuple(TaggedFieldUse(name, (1,), text, 1, text, 1) for name in names),
        failures=tuple(DecodeFailure(START, text, "request", text, 1, name, 1, text)
                       for name in names),
        failure_counts=tuple(FailureCount(name, 1) for name in names),
        lenient_uses=tuple(LenientUse(client, text, 1, text, 1) for client in clients),
        unreadable=tuple(UnreadableFile(name, text) for name in names[:100]),
        unreadable_files=count,
        audit=Audit(("4.4.0",), findings=tuple(
            finding(Party(name, text, text, text, text), verdict, "4.4.0", reason=text,
                    api_key=1, api_name=text, version=1, remedy=text, source=text,
                    groups=(text,) * 3, group_count=3, topics=(text,) * 3, topic_count=3)
            for name in names for verdict in ("will break", "nothing seen against it"))),
        connections=dataclasses.replace(EMPTY.connections, others=tuple(
            OtherConnection(name, text, START, 1, 1, text, text) for name in names)),
        answers=tuple(dataclasses.replace(answer, name=f"longest_{number}") for number in range(9)),
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
def test_no_page_is_larger_than_two_megabytes() -> None:
    page = render(many(LONG, 220))
    assert len(page.encode()) <= LARGEST_BYTES
    words = Page(page).words()
    assert "205 more rows not shown here" in words
    assert "contain all 220 rows, of which these are the first 15" in words


@pytest.mark.long
@pytest.mark.slow
def test_facts_keep_the_first_of_very_many_and_count_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most = dict.fromkeys(MOST, 2)
    monkeypatch.setattr(limits, "MOST", most)
    monkeypatch.setattr(limits, "MOST_FINDINGS", 3)
    facts = bounded(SAMPLE)
    for name in most:
        every, kept = getattr(SAMPLE, name), getattr(facts, name)
        assert len(kept) + facts.left_out.get(name, 0) == len(every)
    assert len(facts.audit.findings) + facts.left_out[FINDINGS] == len(SAMPLE.audit.findings)
    assert facts.audit.findings[0].verdict == "broke"
    assert [one.topic for one in facts.topics] == ["orders", "clicks"]
    assert [one.client for one in facts.clients] == [one.client for one in SAMPLE.clients[:2]]
    assert bounded(facts) == facts
    words = Page(render(Facts.from_json(json.loads(json.dumps(facts.to_json()))))).words()
    assert "and 12 more rows not shown here" in words  # of 14 APIs
    assert "The audit table and audit.csv contain 13 more" in words


def test_topics_of_a_record_header_key_are_counted() -> None:
    names = tuple(f"t{number:02}" for number in range(TOPICS_OF_A_KEY + 5))
    facts = dataclasses.replace(EMPTY, record_headers=(RecordHeaderFacts("k", names, 1),))
    (kept,) = bounded(facts).record_headers
    assert (len(kept.topics), kept.topic_count) == (TOPICS_OF_A_KEY, len(names))
    for one in (facts, bounded(facts)):
        assert "t00, t01, t02, and 22 more" in Page(render(one)).words()


def test_what_is_not_many_stays_as_it_is() -> None:
    assert bounded(SAMPLE) == SAMPLE
