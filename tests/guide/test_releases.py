"""Pages name the releases that support a version, or, for your own specs, have the same bytes."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest

from flexwire.schema.catalog import catalog
from flexwire.schema.editions import released_editions
from flexwire.schema.resolve import resolve
from flexwire.schema.spec import MessageType
from flexwire.specs.guide import own_messages, render
from flexwire.specs.guide.messages import _in_a_row
from flexwire.versions import Versions
from tests.each import each
from tests.guide.built import messages, page_of, site
from tests.guide.specs import edition
from tests.searching import in_parts

pytestmark = pytest.mark.slow

NAMES = catalog().names()
RELEASES = catalog().releases
# Keys of internal topics once used their type as the version, so a higher version is not newer.
CURRENT = [
    name
    for name in NAMES
    if (valid := catalog().entry(name).releases.get(RELEASES[-1]))
    and max(valid) == max(catalog().entry(name).versions)
]


def spread(told: str) -> set[str]:
    """Return the catalog's releases in a range such as "2.4.1 to 3.8.1, 4.4.0"."""
    found: set[str] = set()
    for run in told.split(", "):
        first, _, last = run.partition(" to ")
        found.update(RELEASES[RELEASES.index(first) : RELEASES.index(last or first) + 1])
    return found


def test_supporting_releases_are_those_of_the_catalog() -> None:
    for name in NAMES:
        entry = catalog().entry(name)
        for version in messages()[name].versions:
            having = [one for one, valid in entry.releases.items() if version.number in valid]
            assert list(version.support.releases) == having
            current = version.number in entry.current_versions
            assert ("removed" in version.marks) == (not current)


def test_a_page_tells_the_releases_of_every_version() -> None:
    for name in NAMES:
        entry = catalog().entry(name)
        text = site()[page_of(name)]
        for number in entry.versions:
            (heading,) = re.findall(rf"<h3>{name} v{number}</h3>(.*?)</dl>", text, re.DOTALL)
            (told,) = re.findall(r"<dt>Releases</dt><dd>(.*?)</dd>", heading, re.DOTALL)
            known = spread(unescape(told.strip()))
            modules = {entry.module, *entry.former_modules}
            for release in RELEASES:
                if modules & set(catalog().release_modules[release]):
                    has = number in entry.releases.get(release, ())
                    assert (release in known) == has, (number, release)


@pytest.mark.parametrize("part", in_parts(3))
def test_releases_that_lay_a_version_out_otherwise_are_told(part: int) -> None:
    for name in NAMES[part::3]:
        entry = catalog().entry(name)
        for version in messages()[name].versions:
            otherwise = {
                release
                for release, valid in entry.releases.items()
                if version.number in valid
                and resolve(entry.spec(version.number, release), version.number).layout()
                != resolve(entry.spec(version.number), version.number).layout()
            }
            told = {one for layout in version.support.otherwise for one in layout.releases}
            assert told == otherwise


def test_a_version_that_came_back_is_told_in_two_runs() -> None:
    """A release in between could have supported the version."""
    assert _in_a_row(["1", "2", "3", "4"], {"1", "2", "4"}) == (("1", "2"), ("4",))
    assert _in_a_row(["1", "2"], set()) == ()


@pytest.mark.parametrize("release", ["2.4.1", "3.8.1", "4.4.0"])
def test_a_release_supports_its_own_specs(release: str) -> None:
    """The specs are read as a user's own, without any information about their origin."""
    editions = released_editions(release)
    for message in own_messages(editions):
        for version in message.versions:
            assert release in version.support.releases, (message.name, version.number)
            assert release not in [
                one for layout in version.support.otherwise for one in layout.releases
            ]


def test_a_request_is_known_by_its_api_key_and_other_messages_by_their_names() -> None:
    fetch = released_editions("3.8.1")["FetchRequest"]
    renamed = replace(fetch, spec=replace(fetch.spec, name="PullRequest"), by_version={})
    unknown = replace(fetch, spec=replace(fetch.spec, api_key=9999), by_version={})
    (told,) = own_messages({"PullRequest": renamed})
    assert "3.8.1" in told.versions[-1].support.releases
    (told,) = own_messages({"FetchRequest": unknown})
    assert told.versions[-1].support.releases == ()
    header = released_editions("3.8.1")["RequestHeader"]
    (told,) = own_messages({"RequestHeader": header})
    assert "2.4.1" in told.versions[0].support.releases
    other = replace(header, spec=replace(header.spec, name="Other"), by_version={})
    (told,) = own_messages({"Other": other})
    assert told.versions[0].support.releases == ()


def test_a_version_with_other_bytes_is_no_support_and_is_told() -> None:
    """Heartbeat v0 consists of a group id, a generation and a member id; here, only of a number."""
    made = own_messages(edition("HeartbeatRequest", "request", apiKey=12))
    (told,) = made
    assert told.versions[0].support.releases == ()
    assert [one.renamed for one in told.versions[0].support.otherwise] == [False]
    page = unescape(render(made, "t", RELEASES)["api/Heartbeat.html"])
    assert "no release in flexwire's catalog includes HeartbeatRequest v0 with this layout" in page
    assert f"A different layout in {RELEASES[0]} to {RELEASES[-1]}" in page


@pytest.mark.long
@each("message", CURRENT)
def test_a_version_above_those_of_the_newest_release_will_come_after_it(message: str) -> None:
    """All messages of the newest release are tried; they include every kind of message."""
    given = released_editions(RELEASES[-1])[message]
    valid = given.spec.valid_versions
    raised = replace(given.spec, valid_versions=Versions(valid.lowest, valid.highest + 1))
    (told,) = own_messages({message: replace(given, spec=raised, by_version={})})
    *released, new = told.versions
    assert new.support.latest == f"none yet: expected after {RELEASES[-1]}"
    for one in released:
        assert one.support.after == ""
        assert one.support.latest == RELEASES[-1]


def test_pages_say_which_release_will_be_the_first() -> None:
    given = released_editions(RELEASES[-1])["HeartbeatRequest"]
    raised = replace(given.spec, valid_versions=Versions(0, 5))
    pages = render(own_messages({"Heartbeat": replace(given, spec=raised)}), "t", RELEASES)
    assert f"none yet: expected after {RELEASES[-1]}" in unescape(pages["index.html"])
    page = unescape(pages["api/Heartbeat.html"])
    newest = f"{RELEASES[-1]} does not include HeartbeatRequest v5"
    assert f"none yet: {newest}, so a later release will introduce this version" in page


def test_messages_without_versions_are_left_out() -> None:
    assert own_messages(edition("Gone", "data", validVersions="none")) == []


def test_marks_are_what_specs_say() -> None:
    given = edition(
        "PingRequest", "request", apiKey=9999, deprecatedVersions="0-1", latestVersionUnstable=True
    )
    (told,) = own_messages(given)
    assert [one.marks for one in told.versions] == [("deprecated",), ("deprecated",), ("unstable",)]
    unstable = {
        entry.name
        for entry in map(catalog().entry, NAMES)
        if entry.type is MessageType.REQUEST and entry.all_specs()[0].latest_version_unstable
    }
    found = {
        name
        for name, message in messages().items()
        if any("unstable" in version.marks for version in message.versions)
    }
    assert found == unstable
