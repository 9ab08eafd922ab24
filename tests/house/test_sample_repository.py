"""examples/message-specs works as a separate repository, and its pull requests are reviewed.

GitHub is not available here. Each step of the action runs with the inputs of the sample's workflow.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.house.test_actions import ACTION, ROOT, _run, _script, _steps

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SAMPLE = ROOT / "examples" / "message-specs"
WORKFLOW = SAMPLE / ".github" / "workflows" / "specs.yml"
STEPS = ("Lint", "Breaking changes", "Review", "Comment")
# A version 2 of the response, with a field that states how often a client has asked.
NEW_VERSION = (
    '"validVersions": "0-1"',
    '"validVersions": "0-2"',
    '"about": "The text of the request." }',
    (
        '"about": "The text of the request." },\n    { "name": "Count", "type": "int32", '
        '"versions": "2+", "about": "How many requests this client has sent." }'
    ),
)
OTHER_TYPE = ('"name": "Text", "type": "string"', '"name": "Text", "type": "bytes"')


def git(directory: Path, *arguments: str) -> None:
    author = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")
    subprocess.run(["git", *author, *arguments], cwd=directory, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Clone the sample on a branch, as actions/checkout does."""
    shutil.copytree(SAMPLE, tmp_path / "origin")
    git(tmp_path / "origin", "init", "-q", "-b", "main")
    git(tmp_path / "origin", "add", "-A")
    git(tmp_path / "origin", "commit", "-q", "-m", "specs")
    git(tmp_path, "clone", "-q", "origin", "clone")
    git(tmp_path / "clone", "switch", "-q", "-c", "change")
    return tmp_path / "clone"


def change(checkout: Path, *texts: str) -> None:
    """Replace strings in both specs, and commit."""
    for path in (checkout / "specs").iterdir():
        text = path.read_text(encoding="utf-8")
        for old, new in zip(texts[::2], texts[1::2], strict=True):
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    git(checkout, "commit", "-q", "-a", "-m", "change")


def review(checkout: Path) -> tuple[dict[str, int], str, str]:
    """Run the action's steps; return their exit codes, their output, and the comment."""
    [step] = [one for one in _steps(WORKFLOW) if "flexwire" in one.get("uses", "")]
    given = {
        name: re.sub(r"\$\{\{ github\.base_ref \}\}", "main", value)
        for name, value in step["with"].items()
    }
    inputs = yaml.safe_load(ACTION.read_text(encoding="utf-8"))["inputs"]
    assert given.keys() <= inputs.keys()
    assert "${{" not in "".join(given.values())
    place = checkout.parent
    commented = place / "commented.md"
    gh = place / "bin" / "gh"
    gh.parent.mkdir(exist_ok=True)
    gh.write_text(f'#!/bin/sh\ntest "$1 $2" = "pr comment" && cp "$5" {commented}\n')
    gh.chmod(0o755)
    variables = {
        "SPECS": given["specs"],
        "AGAINST": given["against"],
        "RUNNER_TEMP": str(place),
        "GITHUB_STEP_SUMMARY": str(place / "summary.md"),
        "GH_TOKEN": "none",
        "URL": "https://example.org/pull/1",
        "PATH": f"{gh.parent}{os.pathsep}{os.environ['PATH']}",
    }
    codes, printed = {}, ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", variables.pop("PATH"))
        for name in STEPS:
            done = _run(_script(ACTION, name), checkout, **variables)
            codes[name], printed = done.returncode, printed + done.stdout + done.stderr
    return codes, printed, commented.read_text(encoding="utf-8")


def test_a_change_that_breaks_nothing_passes(checkout: Path) -> None:
    change(checkout, *NEW_VERSION)
    codes, printed, comment = review(checkout)
    assert codes == dict.fromkeys(STEPS, 0), printed
    assert "::error" not in printed
    assert "PingResponse" in comment
    assert "the change is breaking" not in comment


@pytest.mark.long
def test_a_change_that_breaks_fails_and_the_comment_says_what(checkout: Path) -> None:
    change(checkout, *OTHER_TYPE)
    codes, printed, comment = review(checkout)
    assert codes == {"Lint": 0, "Breaking changes": 100, "Review": 0, "Comment": 0}, printed
    assert re.search(r"::error .*file=specs/PingRequest\.json.*FIELD_TYPE_CHANGED", printed)
    assert "Compared with origin/main:specs, the change is breaking: 2 findings." in comment


def test_the_sample_takes_the_action_of_this_repository() -> None:
    [uses] = [one["uses"] for one in _steps(WORKFLOW) if "flexwire" in one.get("uses", "")]
    where = re.fullmatch(r"OWNER/flexwire/(.*)@REVISION", uses)
    assert where is not None
    assert ROOT / where[1] == ACTION.parent
