"""The examples of docs/lint.md produce the findings shown, and its tables list every rule."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.specs.lint.config import read_config
from flexwire.specs.lint.rules import rules
from tests.check.pages import findings
from tools.pages.files import between
from tools.pages.lint import BEGIN, END, LINT

pytestmark = pytest.mark.slow

TEXT = LINT.read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_every_rule_is_in_one_table() -> None:
    tables = between(TEXT, BEGIN, END)
    assert sorted(re.findall(r"^\| `([A-Z_]+)` \|", tables, re.MULTILINE)) == sorted(rules())


def test_the_example_is_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = blocks("console")
    _, spec, shown = re.split(r"^\$ .*\n", block, flags=re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "FooRequest.json").write_text(spec, encoding="utf-8")
    done = CliRunner().invoke(app, ["schema", "lint", "specs/FooRequest.json"])
    assert (done.exit_code, done.output) == (100, shown)


def test_the_configuration_is_one(tmp_path: Path) -> None:
    (block,) = blocks("toml")
    path = tmp_path / "flexwire.toml"
    path.write_text(block, encoding="utf-8")
    config = read_config(path)
    assert config.rules == rules().keys() - {"NAME_LOWERCASE"}
    assert len(config.ignored) == 2


def test_the_comment_allows_what_the_page_says() -> None:
    (block,) = blocks("json")
    assert findings({"FooRequest.json": block}) == ()
    without = re.sub(r"^ *//.*\n", "", block, flags=re.MULTILINE)
    assert [one.rule for one in findings({"FooRequest.json": without})] == ["TAG_SKIPPED"]
    (line,) = (line for line in TEXT.splitlines() if "`ALLOW_WITHOUT_REASON`," in line)
    assert "`ALLOW_UNKNOWN`, `ALLOW_UNUSED`" in line


@pytest.mark.long
def test_the_commands_of_the_examples_do_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    spec = tmp_path / "specs" / "F.json"
    good = '{"name": "F", "type": "data", "validVersions": "0", "flexibleVersions": "0+"}'
    spec.write_text(good, encoding="utf-8")
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "x", "--no-gpg-sign"]):
        subprocess.run(["git", *identity, *arguments], check=True, cwd=tmp_path)
    reference = ["update-ref", "refs/remotes/origin/main", "HEAD"]
    subprocess.run(["git", *reference], check=True, cwd=tmp_path)
    commands = [
        line.replace("${{ github.base_ref }}", "main")
        for block in blocks("yaml")
        for line in re.findall(r"(?:entry|run): (flexwire .*)", block)
    ]
    assert len(commands) == 4

    def exits() -> list[int]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return [
            subprocess.run(
                ["sh", "-ec", command],
                cwd=tmp_path,
                env=os.environ | {"PATH": path},
                stdout=subprocess.DEVNULL,
                check=False,
            ).returncode
            for command in commands
        ]

    # For the last command, a finding is not a failure.
    assert exits() == [0, 0, 0, 0]
    spec.write_text(good.replace('"0+"', '"0"').replace('"0",', '"1",', 1), encoding="utf-8")
    assert exits() == [100, 100, 100, 0]
    (sarif,) = json.loads((tmp_path / "lint.sarif").read_text(encoding="utf-8"))["runs"]
    assert [one["ruleId"] for one in sarif["results"]] == ["FLEXIBLE_VERSIONS_CLOSED"]
    spec.unlink()
    assert exits() == [1, 1, 1, 1]
