"""The badge shows exactly the result of the run, and needs no other files."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from flexwire.conformance import Asking, CaseVerdict, ConformanceRun, conform
from flexwire.conformance.badge import to_badge
from flexwire.protocol.apis import api_key_of
from tests.cli.test_messages import Run, run
from tests.conformance.brokers import RELEASE, a_byte_too_many, kafka_like

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["run"]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def ran() -> ConformanceRun:
    with kafka_like() as (address, _):
        return conform(address, Asking(RELEASE, frozenset((api_key_of("DescribeCluster"),))))


def texts(badge: str) -> list[str | None]:
    return [one.text for one in ET.fromstring(badge).iter(f"{SVG}text")]  # noqa: S314 - our own


def test_it_says_the_release_and_the_counts(ran: ConformanceRun) -> None:
    badge = to_badge(ran)
    counted = f"answers as Apache Kafka 4.4.0 in {ran.as_kafka} of {ran.judged} cases"
    assert texts(badge) == ["Kafka protocol", counted]
    assert ran.summary == f"{ran.address} {counted}"
    assert "certif" not in badge.lower()
    # The badge names no broker, and is the same for each run with the same result.
    assert ran.address not in badge
    assert to_badge(replace(ran, address="other:9092")) == badge


def test_it_is_green_only_if_all_that_was_judged_is_as_kafka(ran: ConformanceRun) -> None:
    colours = {}
    for verdict in CaseVerdict:
        results = (replace(ran.results[0], verdict=verdict), *ran.results[1:])
        root = ET.fromstring(to_badge(replace(ran, results=results)))  # noqa: S314 - our own
        colours[verdict] = [rect.get("fill") for rect in root.iter(f"{SVG}rect")][1]
    whole = {CaseVerdict.AS_KAFKA, CaseVerdict.QUIRK, CaseVerdict.NOT_JUDGED}
    green = colours[CaseVerdict.AS_KAFKA]
    assert {verdict for verdict, colour in colours.items() if colour == green} == whole
    nothing = ET.fromstring(to_badge(replace(ran, results=())))  # noqa: S314 - our own
    assert [rect.get("fill") for rect in nothing.iter(f"{SVG}rect")][1] != green


def test_a_release_of_somebodys_catalog_is_escaped(ran: ConformanceRun) -> None:
    badge = to_badge(replace(ran, release='4.4<script>alert("&")</script>\x1b]'))
    told = texts(badge)[1] or ""
    assert told.startswith('answers as Apache Kafka 4.4<script>alert("&")</script>\\u001b] in')
    assert "<script" not in badge


def test_it_loads_nothing_and_runs_nothing(ran: ConformanceRun) -> None:
    root = ET.fromstring(to_badge(ran))  # noqa: S314 - our own
    assert {one.tag.removeprefix(SVG) for one in root.iter()} == {
        "svg",
        "title",
        "rect",
        "g",
        "text",
    }
    attributes = {name for one in root.iter() for name in one.attrib}
    assert not {name for name in attributes if name.startswith("on") or "href" in name}
    places = [(int(one.get("x", 0)), int(one.get("width", 0))) for one in root.iter(f"{SVG}rect")]
    # The two parts fill the picture.
    assert places[0][1] == places[1][0]
    assert sum(width for _, width in places) == int(root.get("width", 0))


def test_the_command_writes_it(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "badge.svg"
    with kafka_like(a_byte_too_many) as (address, _):
        told = run("conform", address, "--apis", "Metadata", "--badge", str(out))
    assert (told.code, told.err) == (100, f"wrote {out}\n")
    assert told.out.splitlines()[-1].endswith(texts(out.read_text(encoding="utf-8"))[1] or "-")
    assert (
        texts(out.read_text(encoding="utf-8"))[1]
        == "answers as Apache Kafka 4.4.0 in 55 of 59 cases"
    )
