"""The hooks in `.pre-commit-hooks.yaml` run, and pass or fail as they should.

The tests need no YAML parser: the file is flat and its lists are also JSON, which this test checks.
pre-commit itself has validated the file and run the hooks by hand.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app

ROOT = Path(__file__).parents[2]
GOOD = (
    '{ "name": "Foo", "type": "data", "validVersions": "0", "flexibleVersions": "0+", "fields": ['
    ' { "name": "A", "type": "int8", "versions": "0+", "tag": 0, "taggedVersions": "0+" } ] }'
)


def hooks(text: str) -> list[dict[str, Any]]:
    """Read a list of mappings from keys to words, booleans and lists, with one key on each line."""
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        match = re.fullmatch(r"(- |  )([a-z_]+): (.+)", line)
        assert match, line
        if match[1] == "- ":
            found.append({})
        value = match[3]
        # All other values are YAML's plain scalars, which must not mean anything but text.
        assert value[0] in "[tf" or not re.search(r"""[#{}&*!|>'"%@`]|: """, value), line
        is_json = value[0] == "[" or value in {"true", "false"}
        found[-1][match[2]] = json.loads(value) if is_json else value
    return found


HOOKS = {one["id"]: one for one in hooks((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))}


def test_the_hooks_are_these_and_have_what_pre_commit_asks_for() -> None:
    assert list(HOOKS) == ["flexwire-lint", "flexwire-breaking"]
    for one in HOOKS.values():
        assert {"id", "name", "entry", "language", "files"} <= one.keys()
        assert one["language"] == "python"
        assert re.search(one["files"], "specs/FooRequest.json")
        assert not re.search(one["files"], "specs/FooRequest.json.md")
        # Each hook checks all files, even if a commit only removes specs.
        assert (one["pass_filenames"], one["always_run"]) == (False, True)


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_passes_and_fails(
    hook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> int:
        command = [*shlex.split(HOOKS[hook]["entry"]), *HOOKS[hook]["args"]]
        assert command[0] == "flexwire"
        return CliRunner().invoke(app, command[1:]).exit_code

    monkeypatch.chdir(tmp_path)
    Path("Foo.json").write_text(GOOD, encoding="utf-8")
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "x", "--no-gpg-sign"]):
        subprocess.run(["git", *identity, *arguments], check=True)
    assert run() == 0
    Path("Foo.json").write_text(GOOD.replace('"tag": 0', '"tag": 1'), encoding="utf-8")
    assert run() == 100


def test_the_page_uses_hooks_that_there_are() -> None:
    page = (ROOT / "docs" / "lint.md").read_text("utf-8").partition("repo: local")[0]
    assert set(re.findall(r"- id: (flexwire-[a-z-]+)", page)) == HOOKS.keys()
