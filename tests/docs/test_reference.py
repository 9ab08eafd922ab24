"""docs/reference covers every message, and contains no page without a message."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.cli.schema_docs import pages
from flexwire.codec import message
from flexwire.protocol import request_header_version, response_header_version
from flexwire.schema.catalog import catalog
from tests.each import each
from tools.pages.reference import REFERENCE, files

if TYPE_CHECKING:
    from pathlib import Path

PAGES = pages(catalog())
# Each message's heading, and the text after it, from all pages.
MESSAGES = [
    part.partition("\n") for text in PAGES.values() for part in f"\n{text}".split("\n## ")[1:]
]


def test_no_page_stays_that_nothing_writes() -> None:
    assert {path for path in REFERENCE.rglob("*") if path.is_file()} == {*files()}


def test_the_reference_is_of_a_size_to_keep() -> None:
    assert sum(len(text.encode()) for text in PAGES.values()) < 1_000_000


@each("name", catalog().names())
def test_a_message_is_on_one_page_with_all_its_structures_and_fields(name: str) -> None:
    (told,) = [text for heading, _, text in MESSAGES if heading == name]
    sections = dict(re.findall(r"### (.+)\n\n((?:\|.*\n)*)", told))
    classes = message(name).definition.classes
    assert len(sections) == len(classes)
    for struct, made in classes.items():
        table = sections[name if struct == name else f"{name}.{struct}"]
        fields = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
        assert (*fields, "unknown_tagged_fields") == made.__struct_fields__


def test_the_index_leads_to_every_page() -> None:
    links = re.findall(r"\]\((.+?)\)", PAGES["README.md"])
    assert sorted(links) == sorted(set(PAGES) - {"README.md"})


def test_header_versions_are_those_of_the_protocol() -> None:
    for name in ("Fetch", "ApiVersions", "ControlledShutdown"):
        page = PAGES[f"clients/{name}.md"]
        for kind, version_of in (
            ("request", request_header_version),
            ("response", response_header_version),
        ):
            entry = catalog().entry(f"{name}{kind.capitalize()}")
            (told,) = re.findall(rf"Version of the {kind} header: (.+)\.", page)
            for header, lowest, highest in re.findall(r"(\d+) in (\d+)(?:-(\d+))?", told):
                for version in range(int(lowest), int(highest or lowest) + 1):
                    assert entry.api_key is not None
                    assert version_of(entry.api_key, version) == int(header)
    assert "Version of the response header: 0 in 0-5." in PAGES["clients/ApiVersions.md"]


def test_what_is_told_of_a_field() -> None:
    fetch = PAGES["clients/Fetch.md"]
    assert (
        "| `cluster_id` | `clusterId` | string | 12+ | 12+ | tag 0 in 12+ | `null` | ignorable |"
    ) in fetch
    assert "| `replica_id` | `replicaId` | int32 | 0-14 |  |  | `-1` |  |" in fetch
    assert "3.9.2: 0-17; 4.0.0 to 4.0.2: 4-17; 4.1.2 to 4.4.0: 4-18." in fetch
    assert (
        "Releases: 2.4.1 to 2.7.2: 0-5; 2.8.2 to 4.4.0: none." in (PAGES["clients/ListOffset.md"])
    )
    assert "3.9.2 to 4.0.2: 0." in PAGES["clients/ReadShareGroupStateSummary.md"]


def test_pages_that_no_message_has_any_more_are_removed(tmp_path: Path) -> None:
    stale, own = tmp_path / "clients" / "Old.md", tmp_path / "notes.md"
    stale.parent.mkdir()
    stale.write_text(PAGES["clients/Fetch.md"], encoding="utf-8")
    own.write_text("# Notes\n", encoding="utf-8")
    arguments = ["schema", "docs", "--format", "markdown", "--out", str(tmp_path)]
    told = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert told.output == f"wrote {len(PAGES)} pages to {tmp_path}\n"
    assert not stale.exists()
    assert own.exists()
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == PAGES["README.md"]
