"""`flexwire schema lint` works when a person runs it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from flexwire.cli.app import app
from flexwire.specs.lint.rules import rules

if TYPE_CHECKING:
    from pathlib import Path

GOOD = (
    '{"name": "Foo", "type": "data", "validVersions": "0", "flexibleVersions": "0+", "fields": []}'
)
BAD = GOOD.replace('"0+"', '"0"')
FIELD = '{"name": "A", "type": "int8", "versions": "0+"}'


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.json").write_text(GOOD, encoding="utf-8")
    (tmp_path / "bad.json").write_text(BAD, encoding="utf-8")
    field = GOOD.replace("[]", f"[{FIELD}]")
    (tmp_path / "Field.json").write_text(field, encoding="utf-8")
    return tmp_path


def lint(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["schema", "lint", *arguments])


def test_nothing_found_exits_with_0(specs: Path) -> None:
    assert specs.exists()
    done = lint("good.json")
    assert (done.exit_code, done.output) == (0, "1 file, no findings\n")


def test_findings_exit_with_100(specs: Path) -> None:
    assert specs.exists()
    done = lint("good.json", "bad.json")
    assert done.exit_code == 100
    repeated, closed = done.output.split("\n\n")[:2]
    assert closed.startswith(
        "bad.json:1:75: FLEXIBLE_VERSIONS_CLOSED flexible versions 0 have an upper limit"
    )
    assert repeated.startswith("bad.json:1:10: MESSAGE_REPEATED message Foo is already")
    assert "2 findings in 1 of 2 files" in done.output


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--mode", "x", "good.json"),
        ("--format", "x", "good.json"),
        ("--use", "x", "good.json"),
        ("--except", "x", "good.json"),
        ("--explain", "x"),
        ("--config", "none.toml", "good.json"),
        ("--config", "good.json", "good.json"),
    ],
)
def test_a_wrong_call_exits_with_2(specs: Path, arguments: tuple[str, ...]) -> None:
    assert specs.exists()
    assert lint(*arguments).exit_code == 2


def test_what_is_not_there_exits_with_1(specs: Path) -> None:
    command = [sys.executable, "-m", "flexwire", "schema", "lint", "none.json"]
    done = subprocess.run(
        command, cwd=specs, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "SpecError: none.json: no such file or directory, and no such REV:PATH in git\n"
    )


def test_options_go_over_the_configuration(specs: Path) -> None:
    assert lint("Field.json").exit_code == 0
    assert "ABOUT_MISSING" in lint("--use", "PEDANTIC", "Field.json").output
    (specs / "flexwire.toml").write_text('[lint]\nuse = ["ABOUT_MISSING"]\nmode = "draft"', "utf-8")
    assert lint("bad.json").exit_code == 0
    assert "ABOUT_MISSING" in lint("Field.json").output
    assert lint("--use", "DEFAULT", "--mode", "strict", "Field.json").exit_code == 0
    assert lint("--except", "PEDANTIC", "Field.json").exit_code == 0
    assert "KEY_UNKNOWN" in lint("--use", "DEFAULT", "bad.json").output
    assert "FLEXIBLE" in lint("--use", "DEFAULT", "--mode", "strict", "bad.json").output
    other = specs / "other.toml"
    other.write_text('[lint]\nignore = ["bad.json"]', encoding="utf-8")
    assert lint("--config", "other.toml", "bad.json").exit_code == 0


def test_a_mistaken_configuration_names_its_file(specs: Path) -> None:
    (specs / "flexwire.toml").write_text("[lint]\nusse = []", encoding="utf-8")
    done = lint("good.json")
    assert done.exit_code == 2
    assert "flexwire.toml: lint: unknown key 'usse'; did you mean 'use'?" in done.output


def test_every_format_is_written(specs: Path) -> None:
    assert specs.exists()
    wanted = "FLEXIBLE_VERSIONS_CLOSED"
    assert json.loads(lint("--format", "json", "bad.json").output)[0]["rule"] == wanted
    sarif = json.loads(lint("--format", "sarif", "bad.json").output)
    assert sarif["runs"][0]["results"][0]["ruleId"] == wanted
    junit = ET.fromstring(lint("--format", "junit", "bad.json").output)  # noqa: S314 - our own text
    assert [one.get("type") for one in junit.iter("failure")] == [wanted]
    actions = lint("--format", "github-actions", "bad.json").output
    assert actions.startswith(f"::error file=bad.json,line=1,col=75,title={wanted}::")
    for one in ("text", "json", "github-actions", "junit", "sarif"):
        assert lint("--format", one, "bad.json").exit_code == 100
        assert lint("--format", one, "good.json").exit_code == 0


def test_a_rule_is_explained_by_its_page() -> None:
    done = lint("--explain", "TAG_SKIPPED")
    assert done.exit_code == 0
    assert done.output.startswith("TAG_SKIPPED (GENERATOR: Kafka's generator rejects the spec)\n\n")
    assert done.output.endswith(f"{rules()['TAG_SKIPPED'].page}\n")
    listed = lint("--explain", "ALL").output.splitlines()
    assert [line.split()[0] for line in listed] == sorted(rules())
    assert "did you mean 'TAG_SKIPPED'?" in lint("--explain", "TAG_SKIPED").output


@pytest.mark.parametrize(("setting", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_has_colours_and_its_own_width(
    specs: Path,
    setting: dict[str, str],
    coloured: bool,  # noqa: FBT001 - the table of cases passes it
) -> None:
    command = [sys.executable, "-m", "flexwire", "schema", "lint", "bad.json"]
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    environment |= {"COLUMNS": "50"} | setting
    with subprocess.Popen(command, cwd=specs, stdout=theirs, env=environment) as process:
        os.close(theirs)
        shown = os.read(ours, 10000).decode()
        assert process.wait(300) == 100
    os.close(ours)
    assert ("\x1b[" in shown) is coloured
    plain = shown.splitlines()[0].replace("\x1b[0m", "").split("\x1b")[0]
    assert len(plain) <= 50
