"""Pages are well-formed, need no network, are reproducible, and are safe for any specs."""

from __future__ import annotations

import dataclasses
import itertools
import json
import posixpath
import re
from functools import cache
from typing import Any
from urllib.parse import unquote

import pytest

from flexwire.schema.catalog import catalog
from flexwire.specs.guide import MARK, own_messages, render
from flexwire.specs.guide.messages import bundled_messages
from flexwire.specs.guide.traffic import GuideTraffic, Senders, VersionTraffic
from tests.each import each
from tests.guide.built import messages, page_of, site, tables
from tests.guide.specs import edition
from tests.report.filled import HOSTILE
from tests.report.page import Page
from tests.report.test_style import TEXT, contrast

EVIL = f"{HOSTILE}\u202e\x00"
# Everything that a page may load. Links that a reader follows are not included.
LOADED = {"guide.css", "guide.js", "search.js"}


def html() -> list[str]:
    return [path for path in site() if path.endswith(".html")]


PAGES = each("path", html)


@cache
def read(path: str) -> Page:
    return Page(site()[path])


@pytest.mark.long
def test_every_file_begins_with_the_mark_that_it_is_ours() -> None:
    for path, text in site().items():
        assert MARK in text[:200], path


@pytest.mark.long
@pytest.mark.slow
def test_the_same_messages_give_the_same_files() -> None:
    bundled = catalog()
    title = f"Kafka {bundled.newest_release}"
    again = render(bundled_messages(bundled), title, bundled.releases)
    assert list(again) == list(site())
    assert again == site()
    backwards = render(list(messages().values())[::-1], title, bundled.releases)
    assert backwards == site()


def test_a_message_is_on_one_page_and_every_page_is_one_of_a_message() -> None:
    pages = {page_of(name) for name in messages()} | {"index.html"}
    assert set(html()) == pages


def test_the_guide_is_of_a_size_to_send() -> None:
    sizes = {path: len(text.encode()) for path, text in site().items()}
    assert sum(sizes.values()) < 6_000_000
    assert max(sizes.values()) < 600_000


@pytest.mark.long
@pytest.mark.slow
@PAGES
def test_a_page_is_well_formed_and_asks_nothing_of_a_network(path: str) -> None:
    page = read(path)
    for tag, name, value in page.attributes:
        if name in {"src", "href", "action", "srcset", "poster", "data"}:
            assert "//" not in value, value
            assert not re.match(r"[a-z]+:|/", value), value
        if tag in {"script", "link"} and name in {"src", "href"}:
            assert posixpath.basename(value) in LOADED
        assert not name.startswith("on"), name
    ids = page.values("id")
    assert len(ids) == len(set(ids))


def test_style_and_scripts_ask_nothing_of_a_network() -> None:
    for path in LOADED:
        text = site()[path]
        assert not re.search(r"https?:|url\(|@import|@font-face|fetch\(|XMLHttp|import\(", text)
    # No text becomes markup.
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text)


@pytest.mark.long
@PAGES
def test_every_link_leads_somewhere(path: str) -> None:
    for tag, name, value in read(path).attributes:
        if name not in {"href", "src"}:
            continue
        target, _, place = value.partition("#")
        file = (
            posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
        )
        assert file in site(), (tag, value)
        if place:
            assert unquote(place) in read(file).values("id"), (tag, value)


@PAGES
def test_a_page_can_be_read_without_eyes(path: str) -> None:
    """Headings are in order, elements without text have labels, and tables have
    captions or labels.
    """
    page = read(path)
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    ids = set(page.values("id"))
    for name in ("aria-labelledby", "aria-controls"):
        assert set(page.values(name)) <= ids
    assert ("html", "lang", "en") in page.attributes
    assert page.tags.count("main") == 1
    assert page.tags.count("input") == 1
    assert any("Search" in value for value in page.values("aria-label"))
    regions = page.values("role").count("region")
    assert regions == page.values("tabindex").count("0") == page.tags.count("table")


def test_a_page_with_one_version_offers_no_comparison() -> None:
    assert 'id="compare"' not in site()[page_of("AbortTransactionRecord")]
    page = read(page_of("FetchRequest"))
    assert page.tags.count("select") == 2
    assert page.tags.count("option") == 2 * 19


def test_the_index_tells_of_every_api() -> None:
    text = site()["index.html"]
    (row,) = re.findall(
        r'<tr>\n<td class="number">1</td>\n(.*?)</tr>', text.split("Removed APIs")[0], re.DOTALL
    )
    cells = [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.split(r"</t[hd]>", row)]
    assert cells[:6] == ["Fetch", "4-18", "0-3", "v12", "broker, controller", "4.4.0"]
    keys = [int(key) for key in re.findall(r'<tr>\n<td class="number">(\d+)</td>', text)]
    apis = {one.title: one for one in messages().values() if one.is_api}
    assert sorted(keys) == sorted(one.api_key for one in apis.values() if one.api_key is not None)
    # A long name may break at the beginning of each of its words.
    removed = text.split("Removed APIs")[1].split("Other messages")[0].replace("<wbr>", "")
    for one in apis.values():
        gone = one.api_key is not None and not catalog().entry(one.name).current_versions
        assert (f">{one.title}<" in removed) == gone, one.title


def test_an_api_key_that_changed_its_name_is_told_on_both_pages() -> None:
    assert '<a href="../api/AlterPartition.html">' in site()["api/AlterIsr.html"]
    assert '<a href="../api/AlterIsr.html">' in site()["api/AlterPartition.html"]
    assert "The same api key" not in site()["api/Fetch.html"]


def index_of(text: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = json.loads(text.split("window.flexwireGuide = ")[1].rstrip(";\n"))
    return found


@pytest.mark.long
@pytest.mark.slow
def test_the_search_index_has_every_page_and_every_field() -> None:
    index = index_of(site()["search.js"])
    paths = [page[3] for page in index["pages"]]
    assert sorted(paths) == sorted(set(html()) - {"index.html"})
    for title, kind, key, path, versions, names in index["pages"]:
        first = messages()[names[0]]
        assert (title, path) == (first.title, page_of(first.name))
        assert kind == ("api" if first.is_api else first.type.value)
        assert key == (-1 if first.api_key is None else first.api_key)
        assert versions == str(catalog().entry(first.name).versions)
    found = {}
    for path, type_, page, place in index["fields"]:
        shown = tables(paths[page])[place]
        assert shown.cells[:2] == [path.rpartition(".")[2], type_]
        assert place.endswith(f"-{path}")
        found[paths[page], place.split("-")[1], path, type_] = int(place.split("-")[0][1:])
    for name, message in messages().items():
        for version in message.versions:
            for row in version.rows:
                side = message.type.value.split("-")[0]
                highest = found[page_of(name), side, row.path, row.type]
                assert highest >= version.number


@cache
def given(text: str, client_id: str | None = None) -> dict[str, str]:
    """Build a guide with the same text wherever foreign text may occur, including client ids."""
    field = {
        "name": "Text",
        "type": "string",
        "versions": "0+",
        "default": text,
        "about": text,
    }
    made = edition(
        "EvilRequest",
        "request",
        apiKey=9999,
        fields=[field, {**field, "name": "Other", "versions": "1+"}],
    )
    senders = Senders(((text if client_id is None else client_id, 2),), 1)
    sent = GuideTraffic({("EvilRequest", 0): VersionTraffic(3, senders, {"Text": senders})})
    return render(own_messages(made), text, (text,), sent)


def test_a_very_long_client_id_is_cut_as_it_stands_in_every_row() -> None:
    short, long = (given("x", "\x00" * length)["api/Evil.html"] for length in (120, 32_767))
    assert re.search(r"\(\+[0-9,]+ characters\)", long)
    assert len(long) < len(short) + 1000


@each("path", ["index.html", "api/Evil.html", *sorted(LOADED)])
def test_foreign_text_is_escaped_everywhere(path: str) -> None:
    text, calm = given(EVIL)[path], given("y" * len(EVIL))[path]
    assert not {"\u202e", "\x00"} & set(text)
    if path in LOADED:
        assert text == calm
        return
    assert Page(text).shape() == Page(calm).shape()
    assert "alert(1)" in Page(text).words()


def test_the_data_of_a_page_cannot_end_its_element() -> None:
    """No parser accepts such a name, but the page does not rely on that."""
    (calm,) = own_messages(edition("Note", "data"))
    evil = dataclasses.replace(calm, name="</script><b>")
    text = render([evil], "x", ("x",))["message/</script><b>.html"]
    (data,) = re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert json.loads(data)[0]["name"] == "</script><b>"
    assert "<" not in data
    assert "b" not in Page(text).tags


def test_what_a_spec_says_about_a_field_is_shown() -> None:
    fields = [{"name": "A", "type": "int8", "versions": "0+", "about": "Less < more."}]
    made = render(own_messages(edition("M", "data", fields=fields)), "x", ("1",))
    assert "<small>Less &lt; more.</small>" in made["message/M.html"]
    assert "<small>" not in site()[page_of("FetchRequest")]


def test_a_guide_to_one_side_of_an_api_says_so() -> None:
    given = edition("PingRequest", "request", apiKey=9999) | edition(
        "PingResponse", "response", apiKey=9999, validVersions="1-2"
    )
    page = render(own_messages(given), "x", ("1",))["api/Ping.html"]
    assert "PingResponse has no version 0." in page
    alone = render(own_messages(edition("PingRequest", "request", apiKey=9999)), "x", ("1",))
    assert "PingResponse" not in alone["api/Ping.html"]
    assert Page(alone["index.html"]).tags[0] == "html"


def themes(style: str) -> list[dict[str, str]]:
    blocks = re.findall(r":root \{(.*?)\}", style, flags=re.DOTALL)
    return [dict(re.findall(r"--([\w-]+): (#\w+);", block)) for block in blocks]


@pytest.mark.parametrize("theme", range(3), ids=["light", "dark", "paper"])
@pytest.mark.parametrize(
    ("ink", "back"),
    [
        ("ink", "surface"),
        ("muted", "surface"),
        ("muted", "page"),
        ("ink", "soft"),
        ("muted", "soft"),
        ("link", "surface"),
        ("link", "page"),
        ("surface", "accent"),
        ("ok-ink", "ok-back"),
        ("bad-ink", "bad-back"),
        ("warn-ink", "warn-back"),
        ("odd-ink", "odd-back"),
    ],
)
def test_contrast_is_enough(theme: int, ink: str, back: str) -> None:
    colours = themes(site()["guide.css"])[theme]
    assert contrast(colours[ink], colours[back]) >= TEXT


def test_the_look_is_the_report_s() -> None:
    """The page has no colors of its own: it uses the report's, which has three for every name."""
    style = site()["guide.css"]
    own = style[style.rindex("@media print {\n  :root") :].partition("\n}\n")[2]
    assert set(re.findall(r"var\(--([\w-]+)\)", own)) <= set(themes(style)[0])
    assert not re.search(r"#[0-9a-f]{3,6}\b", own)
