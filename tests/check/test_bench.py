"""`schema bench` reports all differences between two sets of specs, and nothing else."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from flexwire.cli.app import app
from flexwire.codec import message_of
from flexwire.schema.catalog import catalog
from flexwire.schema.parse import parse_spec
from flexwire.specs.bench import compare_specs
from flexwire.specs.bench.formats import to_html, to_json, to_markdown
from flexwire.specs.cost.vectors import read_vectors

if TYPE_CHECKING:
    from pathlib import Path

# A change like KIP-1313's: a new version with another header.
OLD = """{
  "apiKey": 47, "type": "request", "name": "OffsetDeleteRequest", "listeners": ["broker"],
  "validVersions": "0", "flexibleVersions": "none", "headerVersions": {"0+": "1"},
  "fields": [
    {"name": "GroupId", "type": "string", "versions": "0+", "about": "The <b>group</b>."},
    {"name": "Topics", "type": "[]Topic", "versions": "0+", "about": "The topics.", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true, "about": "A name."}
    ]}
  ]
}"""
NEW = (
    OLD.replace('"validVersions": "0"', '"validVersions": "0-1"')
    .replace('"flexibleVersions": "none"', '"flexibleVersions": "1+"')
    .replace('{"0+": "1"}', '{"0": "1", "1+": "3"}')
)


def write(directory: Path, text: str) -> str:
    directory.mkdir()
    (directory / "OffsetDeleteRequest.json").write_text(text, encoding="utf-8")
    return str(directory)


@pytest.fixture
def sides(tmp_path: Path) -> tuple[str, str]:
    return write(tmp_path / "old", OLD), write(tmp_path / "new", NEW)


def bench(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["schema", "bench", *arguments])


@pytest.mark.slow
def test_a_new_version_is_compared_with_the_one_before(sides: tuple[str, str]) -> None:
    comparison = compare_specs(*sides)
    [message] = comparison.messages
    assert (message.old, message.new) == ("0", "0-1")
    assert (message.old_headers, message.new_headers) == ("1 in 0", "1 in 0, 3 in 1")
    [change] = message.changes
    assert (change.version, change.beside) == (1, 0)
    assert ("Request header", "1", "3") in change.facts
    assert {field.only_wire for field in change.fields} == {True}
    assert not comparison.breaks


@pytest.mark.slow
def test_a_released_version_that_changes_breaks(sides: tuple[str, str], tmp_path: Path) -> None:
    changed = NEW.replace('{"0": "1", "1+": "3"}', '{"0+": "2"}').replace('"1+",', '"0+",')
    done = bench(sides[0], write(tmp_path / "changed", changed))
    assert done.exit_code == 100
    assert "**Compared with " in done.stdout
    assert "the change is breaking: " in done.stdout
    assert "Version 0, which already exists:" in done.stdout
    assert "VERSION\\_FLEXIBILITY\\_CHANGED" in done.stdout
    # The releases of the catalog also include version 0.
    newest = compare_specs(sides[0], str(tmp_path / "changed")).releases[-1]
    assert newest.release == catalog().final_releases[-1]
    assert newest.findings


@pytest.mark.slow
def test_equal_specs_have_nothing_to_say(sides: tuple[str, str]) -> None:
    comparison = compare_specs(sides[0], sides[0])
    assert not comparison.messages
    assert not comparison.breaking
    assert comparison.lint == ()
    done = bench(sides[0], sides[0])
    assert done.exit_code == 0
    assert "Both sides have the same messages." in done.stdout


@pytest.mark.slow
def test_a_changed_word_is_no_changed_version(sides: tuple[str, str], tmp_path: Path) -> None:
    words = write(tmp_path / "words", OLD.replace("The topics.", "The names of topics."))
    [message] = compare_specs(sides[0], words).messages
    assert message.only_text
    assert "1 changed only in descriptions" in bench(sides[0], words).stdout


@pytest.mark.slow
def test_lint_shows_what_the_change_brings(sides: tuple[str, str], tmp_path: Path) -> None:
    wrong = write(tmp_path / "wrong", NEW.replace('{"0": "1", "1+": "3"}', '{"0": "1", "2+": "3"}'))
    comparison = compare_specs(sides[0], wrong)
    assert comparison.lint is not None
    assert {finding.rule for finding in comparison.lint} >= {"HEADER_VERSIONS_INCOMPLETE"}
    # Findings that also occur in the old specs are only counted; here, the request has no response.
    assert comparison.lint_as_before == 1


@pytest.mark.slow
def test_vectors_and_examples_are_what_the_specs_write(
    sides: tuple[str, str], tmp_path: Path
) -> None:
    [message] = compare_specs(*sides).messages
    kind = message_of(parse_spec(NEW, "new"))
    for line in map(json.loads, message.vectors):
        decoded = kind.decode(bytes.fromhex(line["hex"]), line["version"])
        assert decoded.to_json(line["version"]) == line["json"]
    assert message.before is not None
    assert message.after is not None
    old, new = (json.loads(side.body) for side in (message.before, message.after))
    assert old == new
    assert len(message.after.data) < len(message.before.data)
    file = tmp_path / "vectors.jsonl"
    file.write_text("\n".join(message.vectors), encoding="utf-8")
    assert [sent.version for sent in read_vectors(file)] == [1, 1]


@pytest.mark.slow
def test_the_page_is_one_file_and_escapes_what_specs_say(
    sides: tuple[str, str], tmp_path: Path
) -> None:
    page = tmp_path / "bench.html"
    done = bench(*sides, "--out", str(page))
    assert done.exit_code == 0, done.output
    html = page.read_text(encoding="utf-8")
    assert "<b>group" not in html
    assert not re.findall(r'(?:src|href)="(?!#)', html)
    assert "Version 1, compared with version 0" in html
    assert html.count('class="bytes"') == 2


@pytest.mark.slow
def test_json_has_what_markdown_has(sides: tuple[str, str]) -> None:
    done = bench(*sides, "--format", "json")
    document = json.loads(done.stdout)
    assert document == json.loads(to_json(compare_specs(*sides)))
    [message] = document["messages"]
    [change] = message["changes"]
    assert (change["version"], change["comparedWith"], change["exists"]) == (1, 0, False)
    assert "Request header: 1 → 3" in change["lines"]


@pytest.mark.long
@pytest.mark.slow
def test_each_release_beside_the_next_one_names_every_version_that_is_new() -> None:
    for old, new in pairwise(catalog().final_releases):
        comparison = compare_specs(f"release:{old}", f"release:{new}", releases=())
        named = {
            (message.name, change.version)
            for message in comparison.messages
            for change in message.changes
            if change.beside is not None
        }
        for name in catalog().names():
            releases = catalog().entry(name).releases
            if old in releases and new in releases:
                fresh = {*releases[new]} - {*releases[old]}
                # A version is compared with the previous one, unless it is the first.
                fresh -= {releases[new].lowest}
                assert fresh == {version for who, version in named if who == name}, (name, new)
        assert to_markdown(comparison).startswith(f"## release:{new}")
        assert to_html(comparison).endswith("</html>\n")
