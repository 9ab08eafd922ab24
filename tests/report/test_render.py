"""The page is complete, well-formed and self-contained, and is safe whatever the facts contain."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import vl_convert

from flexwire.facts import units
from flexwire.facts.audit import Audit
from flexwire.facts.captures import SampledCaptures
from flexwire.facts.facts import (
    ApiFacts,
    Latency,
    Timeline,
    TimelineBucket,
    least_of,
)
from flexwire.report import Facts, charts, render, tables
from tests.report.filled import CALM, HOSTILE, filled
from tests.report.page import Page
from tests.report.sample import EMPTY, SAMPLE, START, big

if TYPE_CHECKING:
    from collections.abc import Iterator


@cache
def rendered(name: str) -> str:
    facts = {"sample": SAMPLE, "empty": EMPTY, "big": big(), "hostile": filled(HOSTILE)}[name]
    return render(facts)


PAGES = pytest.mark.parametrize("name", ["sample", "empty", "big", "hostile"])


@pytest.mark.slow
@PAGES
def test_a_page_is_well_formed(name: str) -> None:
    page = Page(rendered(name))
    assert page.tags[0] == "html"
    ids = Counter(page.values("id"))
    assert [value for value, times in ids.items() if times > 1] == []


@pytest.mark.slow
@PAGES
def test_a_page_needs_nothing_else(name: str) -> None:
    text = rendered(name)
    page = Page(text)
    assert "http:" not in text
    assert "https:" not in text
    assert all(value.startswith("#") for value in page.values("href"))
    assert page.values("src") == []
    assert not {"link", "img", "iframe", "object", "base", "image", "use"} & set(page.tags)
    assert "@import" not in "".join(page.raw["style"])
    assert all(url.startswith("url(#") for url in re.findall(r"url\([^)]*", text))


@PAGES
def test_links_and_labels_lead_to_places_on_the_page(name: str) -> None:
    page = Page(rendered(name))
    ids = set(page.values("id"))
    assert {value[1:] for value in page.values("href")} <= ids
    assert set(page.values("aria-labelledby")) <= ids
    assert "versions" in ids


def test_hostile_text_is_shown_and_never_run() -> None:
    page, calm = Page(rendered("hostile")), Page(render(filled(CALM)))
    assert page.shape() == calm.shape()
    assert "<img src=x onerror=alert(2)>" in page.words()
    assert "{{ 7*7 }}" in page.words()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b", r"a\u0000b"),
        ("a\ud800b", r"a\ud800b"),
        ("a\u202eb", r"a\u202eb"),
        ("a\nb", r"a\u000ab"),
        ("\x1b[31m", r"\u001b[31m"),
        ("\U0001f600", "\U0001f600"),
    ],
)
def test_characters_that_do_not_print_are_written_out(text: str, shown: str) -> None:
    page = render(filled(text))
    page.encode("utf-8")
    assert shown in Page(page).words()
    if text != shown:
        assert text not in page


@pytest.mark.slow
def test_a_very_long_name_says_how_much_of_it_is_left_out() -> None:
    page = render(filled("x" * 40_000))
    assert len(page) < 200_000
    assert "x" * 1100 not in page
    # 40000 characters, less the 1024 that any text of the page may have.
    assert "(+38,976 characters)" in page


# These are not shown as figures: times, numbers within runs ("7 to 9"), numbers only in a picture,
# and the difference between shown and named entries.
UNNUMBERED = {
    "api_key", "version", "versions", "tag", "magic", "releases", "utf8_share", "is_id",
    "asked", "topic_count", "may_wait",
}  # fmt: skip
PICTURED = {"timeline", "histogram"}


def numbered(value: Any, numbers: Iterator[int]) -> Any:
    """Return facts with a different number in every field, so that a missing one is noticed."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {
            field.name: numbered(getattr(value, field.name), numbers)
            for field in dataclasses.fields(value)
            if field.name not in UNNUMBERED | PICTURED and not field.name.endswith("_us")
        }
        return dataclasses.replace(value, **changed)
    if isinstance(value, tuple):
        return tuple(numbered(item, numbers) for item in value)
    if isinstance(value, int | float):
        return type(value)(next(numbers))
    return value


@pytest.mark.slow
def test_every_figure_of_the_facts_is_on_the_page() -> None:
    drawn: list[int] = []

    def numbers() -> Iterator[int]:
        for number in itertools.count(1_000_003, 7_001):
            drawn.append(number)
            yield number

    # audit.csv contains all figures of the audit, and the page contains the important ones.
    facts = dataclasses.replace(SAMPLE, audit=Audit())
    page = Page(render(numbered(facts, numbers())))
    shown = " ".join([page.words(), *page.values("title")])
    assert len(drawn) > 250
    assert [number for number in drawn if f"{number:,}" not in shown] == []
    assert "2026-10-28T10:20:00.000000Z to 2026-10-28T10:22:27.310220Z" in shown


def test_every_name_of_the_facts_is_on_the_page() -> None:
    words = Page(rendered("sample")).words()
    names = [entry.client.client_id for entry in SAMPLE.clients if entry.client.client_id]
    names += [api.name for api in SAMPLE.apis if api.name]
    names += [topic.topic for topic in SAMPLE.topics]
    names += [use.codec for topic in SAMPLE.topics for use in topic.compression]
    names += [header.key for header in SAMPLE.record_headers]
    names += [use.message for use in SAMPLE.tagged_fields]
    names += [use.name or "unknown" for use in SAMPLE.tagged_fields]
    names += [failure.reason for failure in SAMPLE.failures]
    names += [use.reason for use in SAMPLE.lenient_uses]
    names += [f"{use.message} v{use.version}" for use in SAMPLE.lenient_uses]
    names += [source.path for source in SAMPLE.sources]
    names += [f"{one.source}: {one.reason}" for one in SAMPLE.unreadable]
    names += [f"{other.client} > {other.broker}" for other in SAMPLE.connections.others]
    names += [other.looks_like or "unknown" for other in SAMPLE.connections.others]
    names += [other.evidence for other in SAMPLE.connections.others]
    names += list(SAMPLE.releases)
    assert [name for name in names if name not in words] == []


def test_a_report_of_nothing_says_so_in_every_section() -> None:
    page = Page(rendered("empty"))
    words = page.words()
    assert "No frame was captured" in words
    assert "Nothing was audited." in words
    assert page.values("class").count("empty") == 10
    assert {"table", "svg"}.isdisjoint(page.tags)


def test_a_large_report_stays_small_and_counts_what_it_leaves_out() -> None:
    page = rendered("big")
    words = Page(page).words()
    assert len(page) < 1_200_000
    assert "and 440 more clients not shown here: 12 will break, 428 read" in words
    assert "and 20 more APIs not shown here: 20 will break" in words
    assert f"and {72 * 60 - 200:,} more rows not shown here" in words
    assert "and 300 more rows not shown here" in words
    assert "and 800 more rows not shown here" in words
    assert "486 more clients" in words
    assert "46 more APIs" in words


def test_failures_beyond_the_sample_are_counted() -> None:
    totals = dataclasses.replace(SAMPLE.totals, decode_failures=41)
    words = Page(render(dataclasses.replace(SAMPLE, totals=totals))).words()
    assert "41 frames of 32,405 did not decode" in words
    assert "and 40 more rows not shown here" in words


def test_batches_beyond_a_bound_are_counted() -> None:
    for batches, told in (
        (0, ""),
        (1, "1 record batch exceeds a limit when decompressed, and no record of this batch"),
        (7, "7 record batches exceed a limit when decompressed, and no record of these batches"),
    ):
        totals = dataclasses.replace(SAMPLE.totals, batches_beyond_bounds=batches)
        words = Page(render(dataclasses.replace(SAMPLE, totals=totals))).words()
        assert (f"In these frames, {told} was read." in words) == bool(told)
        assert ("a limit when decompressed" in words) == bool(told)


def test_captures_of_a_part_are_said_before_everything_else() -> None:
    some = (SampledCaptures(0.001, 1), SampledCaptures(0.5, 3, "topics a"))
    page = render(dataclasses.replace(SAMPLE, sampled=some))
    words = Page(page).words()
    assert "These captures contain only part of the traffic." in words
    assert "1 file: 0.1 % of all connections. 3 files: 50 % of all connections, and" in words
    assert "and in these connections only the frames of topics a. All counts" in words
    assert page.index("contain only part") < page.index('class="figures"')
    assert "contain only part" not in Page(render(SAMPLE)).words()


def test_what_could_not_be_read_stands_before_everything_else() -> None:
    page = render(SAMPLE)
    words = Page(page).words()
    assert "4 files could not be read. This report does not cover these files." in words
    assert "and 3 more files." in words
    assert page.index("could not be read") < page.index('class="figures"')
    one = dataclasses.replace(SAMPLE, unreadable_files=1)
    assert (
        "1 file could not be read. This report does not cover this file."
        in Page(render(one)).words()
    )
    none = dataclasses.replace(SAMPLE, unreadable=(), unreadable_files=0)
    assert "could not be read" not in Page(render(none)).words()
    assert "in 2 files." in Page(render(none)).words()
    assert "in 1 file." in Page(render(one)).words()


def test_what_decodes_only_leniently_is_no_failure() -> None:
    totals = dataclasses.replace(SAMPLE.totals, decode_failures=0)
    facts = dataclasses.replace(SAMPLE, totals=totals, failures=(), failure_counts=())
    words = Page(render(facts)).words()
    assert "Decode failures 0 every frame decoded, 11 only leniently" in words
    assert "No frame failed to decode." in words
    assert "11 frames violate their message spec" in words
    assert "Frames that decode only leniently" not in Page(rendered("empty")).words()


def test_a_topic_known_only_by_its_id_is_shown_as_an_id() -> None:
    words = Page(rendered("sample")).words()
    assert (
        "topic id rFgO_X8xRgGdXv0IhVb5Yw fetched; the capture does not contain the topic name"
        in words
    )
    assert "orders, topic id rFgO_X8xRgGdXv0IhVb5Yw" in words
    assert words.count("topic id") == words.count("rFgO_X8xRgGdXv0IhVb5Yw") == 2


@pytest.mark.slow
def test_the_same_facts_give_the_same_page(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn_again: Any = vl_convert.vegalite_to_svg
    monkeypatch.setattr(vl_convert, "vegalite_to_svg", drawn_again.__wrapped__)
    shuffled = dataclasses.replace(
        SAMPLE,
        apis=SAMPLE.apis[::-1],
        clients=SAMPLE.clients[::-1],
        version_uses=SAMPLE.version_uses[::-1],
        audit=dataclasses.replace(SAMPLE.audit, findings=SAMPLE.audit.findings[::-1]),
        topics=SAMPLE.topics[::-1],
        tagged_fields=SAMPLE.tagged_fields[::-1],
        record_headers=SAMPLE.record_headers[::-1],
        lenient_uses=SAMPLE.lenient_uses[::-1],
    )
    assert render(SAMPLE) == rendered("sample")
    assert render(shuffled) == rendered("sample")


def test_colour_is_never_the_only_carrier() -> None:
    page = rendered("sample")
    for verdict in ("will break", "cannot say"):
        name = verdict.replace(" ", "-")
        cells = re.findall(rf'<span class="v {name}".*?</td>', page)
        assert cells
        assert all(f'<span class="unseen"> {verdict}</span>' in cell for cell in cells)


def test_every_picture_says_what_it_shows() -> None:
    page = Page(rendered("sample"))
    pictures = page.values("role").count("img")
    assert pictures == page.tags.count("svg") == 12
    summaries = [value for value in page.values("aria-label") if value.startswith("Bytes per API")]
    assert len(summaries) == 2
    assert "Fetch 23.1 MB" in summaries[0]


def test_facts_survive_json() -> None:
    for facts in (SAMPLE, EMPTY, big(9, 5)):
        assert Facts.from_json(json.loads(json.dumps(facts.to_json()))) == facts


@pytest.mark.parametrize(
    ("obj", "place"),
    [
        (None, "expected"),
        ({}, "title"),
        ({**EMPTY.to_json(), "totals": {"frames": "many"}}, "$.totals.frames"),
        ({**EMPTY.to_json(), "version_uses": [{"verdict": "fine"}]}, "$.version_uses[0]"),
    ],
)
def test_json_that_is_not_facts_is_refused_with_the_place(obj: object, place: str) -> None:
    with pytest.raises(ValueError, match="not valid report facts") as error:
        Facts.from_json(obj)
    assert place.lower() in str(error.value).lower()


def test_a_capture_of_one_instant_can_be_drawn() -> None:
    latency = Latency(1, 0.0, 0.0, 0.0, 0.0, 0.0)
    api = ApiFacts(3, "Metadata", 1, 1, 10, 10, 0, (1,), latency)
    instant = dataclasses.replace(
        EMPTY,
        timeline=Timeline(1000, (TimelineBucket(START, 10, 10, 2),)),
        apis=(api, dataclasses.replace(api, latency=Latency(1, 2.0, 2.0, 2.0, 2.0, 2.0))),
    )
    assert "NaN" not in render(instant)


@pytest.mark.parametrize("count", [1, 2, 9, 10, 99, 100, 101])
def test_a_percentile_is_another_than_the_greatest_or_not_told(count: int) -> None:
    ranked = range(1, count + 1)
    p50, p90, p99 = (ranked[math.ceil(share * count) - 1] for share in (0.5, 0.9, 0.99))
    api = ApiFacts(
        3, "Metadata", count, count, 1, 1, latency=Latency(count, 1, p50, p90, p99, count)
    )
    facts = dataclasses.replace(EMPTY, apis=(api,))
    [row] = tables.latency_table(facts).rows
    for percent, cell, value in zip((90, 99), row[4:6], (p90, p99), strict=True):
        assert (cell.text == units.DASH) == (value == count) == (count < least_of(percent))
    chart = charts.latency_chart(facts)
    assert chart is not None
    assert (" at most" in chart.summary) == (count < 100)


def test_apis_that_may_wait_for_records_come_after_all_others() -> None:
    """APIs that may wait for records come last, however slow they are and however many pairs they
    have.
    """
    apis = []
    for key, name, count, slow, may_wait in (
        (1, "Fetch", 999, 500, True), (78, "ShareFetch", 998, 900, True),
        (0, "Produce", 300, 7, False), (3, "Metadata", 200, 8, False),
    ):  # fmt: skip
        latency = Latency(count, 1, slow, slow, slow, slow)
        apis.append(ApiFacts(key, name, 9, 9, 1, 1, latency=latency, may_wait=may_wait))
    for order in itertools.permutations(apis):
        facts = dataclasses.replace(EMPTY, apis=order)
        names = [row[0].text for row in tables.latency_table(facts).rows]
        assert [name.split()[0] for name in names] == ["Metadata", "Produce", "ShareFetch", "Fetch"]
        chart = charts.latency_chart(facts)
        assert chart is not None
        assert re.findall(r"[A-Z]\w+(?= [\d.]+ ms and)", chart.summary) == [
            "Produce", "Metadata", "Fetch", "ShareFetch",
        ]  # fmt: skip


def test_traffic_without_sizes_is_drawn_in_frames() -> None:
    buckets = tuple(TimelineBucket(START + second * 1_000_000, 0, 0, second) for second in (1, 9))
    client = dataclasses.replace(SAMPLE.clients[0], bytes_sent=0, bytes_received=0)
    api = dataclasses.replace(SAMPLE.apis[0], request_bytes=0, response_bytes=0)
    source = dataclasses.replace(SAMPLE.sources[0], bytes=0)
    unsized = dataclasses.replace(EMPTY, clients=(client,), apis=(api,), sources=(source,))
    facts = dataclasses.replace(unsized, timeline=Timeline(1_000_000, buckets))
    # A value that a request log lacks is not zero.
    for table in (tables.api_table(facts), tables.client_table(facts), tables.source_table(facts)):
        [row] = table.rows
        told = [cell.text for cell in row]
        assert units.DASH in told
        assert "0 B" not in told
    page = render(facts)
    assert "Frames over time in 2 slices of " in page
    assert "Bytes over time" not in page
    assert "<strong>Frames</strong>" in page
    assert "<strong>Frames</strong>" not in rendered("sample")


@pytest.mark.parametrize("days", [0.00001, 0.01, 1, 6, 400])
def test_a_capture_of_any_length_can_be_drawn(days: float) -> None:
    step = int(days * 86_400_000_000 / 2)
    buckets = tuple(TimelineBucket(START + step * place, 5, 5, 1) for place in range(3))
    page = render(dataclasses.replace(EMPTY, timeline=Timeline(1_000, buckets)))
    assert page.count("#000001") < 200
    assert "NaN" not in page


def test_figures_never_break_in_two() -> None:
    assert re.findall(r"\d[.,]?<wbr>[.,]?\d", rendered("sample")) == []
    assert "Api<wbr>Versions<wbr>Response" in rendered("sample")


def test_a_long_hex_sample_is_cut_with_its_count() -> None:
    failure = dataclasses.replace(SAMPLE.failures[0], sample_hex="0123456789abcdef" * 100)
    words = Page(render(dataclasses.replace(EMPTY, failures=(failure,)))).words()
    assert "0123 4567 89ab cdef … (+576 characters)" in words
