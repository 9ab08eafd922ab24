"""`flexwire schema breaking` has the documented inputs, outputs and exit codes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.errors import SpecError
from flexwire.schema.catalog import catalog
from flexwire.schema.editions import Edition
from flexwire.schema.error_tags import tag_errors
from flexwire.schema.parse import parse_spec
from flexwire.schema.text import SpecText
from flexwire.schema.write import write_spec
from flexwire.specs.breaking.changes import breaking_rules, find_changes

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

OLD = """// A comment.
{
  "apiKey": 500, "type": "request", "name": "PingRequest",
  "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [
    { "name": "Text", "type": "string", "versions": "0+" },
    { "name": "At", "type": "int64", "versions": "0+" }
  ]
}
"""
TOLD = "At was int64 and is now int32, in version 1; add a field in a new version instead"
NEW = OLD.replace('"int64"', '"int32"').replace('"0-1"', '"1"')


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    for name, text in (("old", OLD), ("new", NEW)):
        Path(name).mkdir()
        Path(name, "PingRequest.json").write_text(text, encoding="utf-8")

    def invoke(*arguments: str) -> Any:
        given = ["schema", "breaking", *arguments]
        return CliRunner().invoke(app, given)

    return invoke


def test_findings_stand_in_the_new_spec_and_exit_with_100(run: Callable[..., Result]) -> None:
    done = run("new", "--against", "old")
    assert done.exit_code == 100
    assert done.output.splitlines() == [
        "new/PingRequest.json:2:1: VERSION_REMOVED version 0 is no longer valid in PingRequest",
        "  2 | {",
        "    | ^",
        "",
        f"new/PingRequest.json:7:5: FIELD_TYPE_CHANGED {TOLD}",
        '  7 |     { "name": "At", "type": "int32", "versions": "0+" }',
        "    |     ^",
        "",
        "2 findings in 1 of 1 file; 'flexwire schema breaking --explain RULE' explains a rule",
    ]


def test_nothing_breaks_what_did_not_change(run: Callable[..., Result]) -> None:
    done = run("old", "--against", "old")
    assert (done.exit_code, done.output) == (0, "1 file, no findings\n")


def test_messages_that_are_gone_are_told_by_their_old_name(run: Callable[..., Result]) -> None:
    Path("new/PingRequest.json").write_text(OLD.replace("500", "501").replace("Ping", "Pong"))
    done = run("new", "--against", "old", "--format", "json")
    [told] = json.loads(done.output)
    assert (told["rule"], told["message"][:23]) == ("MESSAGE_REMOVED", "PingRequest was removed")


@pytest.mark.parametrize("form", ["json", "github-actions", "junit", "sarif"])
def test_every_format_tells_the_rules(run: Callable[..., Result], form: str) -> None:
    done = run("new", "--against", "old", "--format", form)
    assert done.exit_code == 100
    assert "FIELD_TYPE_CHANGED" in done.output
    assert "VERSION_REMOVED" in done.output


def test_rules_and_categories_are_chosen(run: Callable[..., Result]) -> None:
    def told(*arguments: str) -> list[str]:
        done = run("new", "--against", "old", "--format", "json", *arguments)
        return [one["rule"] for one in json.loads(done.output)]

    assert told("--use", "WIRE") == ["FIELD_TYPE_CHANGED"]
    assert told("--except", "WIRE") == ["VERSION_REMOVED"]
    Path("flexwire.toml").write_text(
        '[lint]\nuse = ["SYNTAX"]\n[breaking]\nignore = { SUPPORT = ["new/*"] }\n', encoding="utf-8"
    )
    assert told() == ["FIELD_TYPE_CHANGED"]
    Path("flexwire.toml").write_text('[breaking]\nexept = ["WIRE"]\n', encoding="utf-8")
    done = run("new", "--against", "old")
    assert done.exit_code == 2
    assert "unknown key 'exept'; did you mean 'except'?" in done.output


def test_git_revisions_and_ranges_are_compared(run: Callable[..., Result]) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)

    git("init", "-q")
    Path("specs").mkdir()
    for text in (OLD, NEW):
        Path("specs/PingRequest.json").write_text(text, encoding="utf-8")
        git("add", "specs")
        git("commit", "-qm", "specs")
    for arguments in (
        ("HEAD~1..HEAD:specs",),
        ("HEAD:specs", "--against", "HEAD~1:specs"),
        ("specs", "--against", "HEAD~1:specs"),
    ):
        done = run(*arguments)
        assert done.exit_code == 100, done.output
        assert "2 findings in 1 of 1 file" in done.output
    assert run("HEAD..HEAD:specs").exit_code == 0


@pytest.mark.long
@pytest.mark.slow
def test_releases_of_the_catalog_are_compared(run: Callable[..., Result]) -> None:
    given = ["release:3.7", "--against", "release:3.6.2", "--use", "WIRE", "--format", "json"]
    assert json.loads(run(*given).output) == []  # In 3.6, the heartbeat request was unstable.
    told = json.loads(run(*given, "--unstable").output)
    assert {one["message"].split()[0] for one in told} >= {"SubscribedTopicRegex"}
    done = run("release:4.4.0", "--against", "release:3.9.2", "--use", "SUPPORT")
    assert "versions 0-3 are no longer valid in FetchRequest" in done.output
    failed = run("new", "--against", "release:9.9").exception
    assert isinstance(failed, SpecError)
    assert str(failed).startswith("release:9.9: no release '9.9'")


def test_two_sides_are_needed_and_pages_are_told(run: Callable[..., Result]) -> None:
    assert run("new").exit_code == 2
    assert run("--against", "old").exit_code == 2
    assert run("new", "--against", "old", "--use", "TAG_REUSD").exit_code == 2
    page = run("--explain", "TAG_REUSED").output
    assert page.startswith(
        "TAG_REUSED (WIRE: a reader misinterprets the bytes of an existing version)\n"
    )
    assert "Tag numbers must never be reused" in page
    listed = run("--explain", "ALL").output.splitlines()
    assert len(listed) == len(breaking_rules())


@pytest.mark.long
@pytest.mark.slow
def test_kip_636_breaks_no_byte_of_any_released_version() -> None:
    texts = [
        SpecText(write_spec(entry.spec(entry.current_versions.highest)), f"{name}.json")
        for name in catalog().names()
        if (entry := catalog().entry(name)).api_key is not None and entry.current_versions
    ]
    told = {
        (change.rule.id, change.reason.partition(" had ")[0].rpartition(".")[2])
        for done in tag_errors(texts, mode="kip")
        for change in find_changes(
            Edition(done.spec),
            Edition(parse_spec(done.text, mode="kip")),
            breaking_rules().values(),
        )
    }
    # A null can be left out only if it is the default, so null becomes the default.
    assert told == {("DEFAULT_CHANGED", "ErrorMessage")}
