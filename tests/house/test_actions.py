"""Run the scripts of files under .github as GitHub would, because GitHub is not available here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
ACTION = GITHUB / "actions" / "specs" / "action.yml"
RELEASE = GITHUB / "workflows" / "release.yml"
SPEC = """{"name": "Ping", "type": "data", "validVersions": "0", "flexibleVersions": "none",
  "fields": [{"name": "SentAt", "type": "%s", "versions": "0+", "about": "When."}]}"""


def _steps(path: Path) -> list[dict[str, Any]]:
    read = yaml.safe_load(path.read_text(encoding="utf-8"))
    if "runs" in read:
        return list(read["runs"]["steps"])
    return [step for job in read["jobs"].values() for step in job["steps"]]


def _script(path: Path, name: str) -> str:
    return str(next(one["run"] for one in _steps(path) if one.get("name") == name))


def _run(script: str, directory: Path, **given: str) -> subprocess.CompletedProcess[str]:
    scripts = Path(sys.executable).parent
    path = f"{scripts}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=directory,
        env=os.environ | given | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize("path", [ACTION, RELEASE], ids=lambda path: path.name)
def test_no_script_holds_what_others_write(path: Path) -> None:
    """No script contains an expression, because a branch name in it could run as a command."""
    scripts = [one["run"] for one in _steps(path) if "run" in one]
    assert scripts
    assert not any("${{" in one for one in scripts)


@pytest.mark.parametrize(("type_", "code"), [("int64", 0), ("int65", 100)])
def test_the_action_lints(type_: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "Ping.json").write_text(SPEC % type_)
    done = _run(_script(ACTION, "Lint"), tmp_path, SPECS="specs")
    assert (done.returncode, done.stderr) == (code, "")
    assert bool(re.match(r"::error .*file=specs/Ping.json", done.stdout)) is (code == 100)


@pytest.mark.slow
def test_the_action_finds_what_breaks(tmp_path: Path) -> None:
    for side, type_ in (("old", "int64"), ("new", "int32")):
        (tmp_path / side).mkdir()
        (tmp_path / side / "Ping.json").write_text(SPEC % type_)
    script = _script(ACTION, "Breaking changes")
    assert _run(script, tmp_path, SPECS="old", AGAINST="old").returncode == 0
    done = _run(script, tmp_path, SPECS="new", AGAINST="old")
    assert done.returncode == 100
    assert "FIELD_TYPE_CHANGED" in done.stdout


@pytest.mark.slow
def test_the_action_reviews_what_breaks_too(tmp_path: Path) -> None:
    for side, type_ in (("old", "int64"), ("new", "int32")):
        (tmp_path / side).mkdir()
        (tmp_path / side / "Ping.json").write_text(SPEC % type_)
    summary = tmp_path / "summary.md"
    places = {"RUNNER_TEMP": str(tmp_path), "GITHUB_STEP_SUMMARY": str(summary)}
    done = _run(_script(ACTION, "Review"), tmp_path, SPECS="new", AGAINST="old", **places)
    assert (done.returncode, done.stdout) == (0, "")
    assert "**Compared with old, the change is breaking: 1 finding.**" in summary.read_text()
    done = _run(_script(ACTION, "Review"), tmp_path, SPECS="none", AGAINST="old", **places)
    assert done.returncode == 1


FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))
# What GitHub requires in the parts of a form.
PARTS = {"markdown": "value", "textarea": "label", "input": "label", "dropdown": "label"}


@pytest.mark.parametrize(
    "path", [path for path in FORMS if path.stem != "config"], ids=lambda path: path.stem
)
def test_a_form_of_an_issue_is_as_github_reads_it(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert form.keys() == {"name", "description", "labels", "body"}
    ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert ids
    assert len({*ids}) == len(ids)
    for part in form["body"]:
        assert part.keys() <= {"type", "id", "attributes", "validations"}
        assert part["attributes"][PARTS[part["type"]]].strip()
        assert part.get("validations", {}).keys() <= {"required"}
    for name in re.findall(r"[\w/]+\.md", path.read_text(encoding="utf-8")):
        assert (ROOT / name).is_file(), name


def test_each_form_is_there_once_and_blank_issues_stay() -> None:
    names = [yaml.safe_load(path.read_text(encoding="utf-8")).get("name") for path in FORMS]
    assert sorted(filter(None, names)) == ["Failure", "Proposal", "Wrong result"]
    config = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / "config.yml").read_text(encoding="utf-8"))
    assert config == {"blank_issues_enabled": True}


def test_the_wheels_of_a_release_are_for_each_platform_and_python_of_the_page() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pythons = project["tool"]["cibuildwheel"]["build"].split()
    assert pythons == ["cp311-*", "cp312-*", "cp313-*", "cp314-*", "cp314t-*"]
    assert project["project"]["requires-python"] == ">=3.11"
    page = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
    assert "wheels are for CPython 3.11 to 3.14, and for 3.14 without a GIL" in page
    # One machine builds for Linux with glibc and with musl, so neither build may be skipped.
    assert project["tool"]["cibuildwheel"]["skip"].split() == ["*_i686", "*-win32", "*-win_arm64"]
    machines = yaml.safe_load(RELEASE.read_text(encoding="utf-8"))["jobs"]["wheels"]["strategy"]
    built = {"ubuntu-latest": 2, "ubuntu-24.04-arm": 2, "macos-15": 1, "macos-15-intel": 1}
    built |= {"windows-2025": 1}
    assert machines["matrix"]["os"] == [*built]
    assert len(re.findall(r"^\| (?:Linux|macOS|Windows), ", page, re.MULTILINE)) == sum(
        built.values()
    )


def test_only_the_tag_of_the_version_is_released(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    script = _script(RELEASE, "The tag is the version")
    place = {"RUNNER_TEMP": str(tmp_path)}
    done = _run(script, ROOT, TAG=f"v{project['version']}", **place)
    assert (done.returncode, done.stderr) == (0, "")
    assert "- `flexwire decode`" in (tmp_path / "notes.md").read_text(encoding="utf-8")
    for tag in (f"v{project['version']}.1", project["version"], "v99.0.0", "main", ""):
        assert _run(script, ROOT, TAG=tag, **place).returncode == 1, tag


@pytest.mark.parametrize(
    ("job", "may"),
    [
        ("build", set()),
        ("wheels", set()),
        ("release", {"contents", "id-token", "attestations"}),
        ("publish", {"id-token"}),
    ],
)
def test_a_job_may_write_only_what_it_has_to(job: str, may: set[str]) -> None:
    workflow = yaml.safe_load(RELEASE.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    given = workflow["jobs"][job].get("permissions", {})
    assert {name for name, right in given.items() if right == "write"} == may
    assert ("environment" in workflow["jobs"][job]) is (job == "publish")


def test_what_is_published_is_what_was_attested() -> None:
    jobs = yaml.safe_load(RELEASE.read_text(encoding="utf-8"))["jobs"]
    assert jobs["publish"]["needs"] == "release"
    kept = [step["with"]["name"] for step in jobs["release"]["steps"] if "upload" in str(step)]
    taken = [step["with"]["name"] for step in jobs["publish"]["steps"] if "download" in str(step)]
    assert kept == taken == ["files"]


def test_the_action_installs_the_checkout_it_stands_in() -> None:
    where = re.search(r'"\$GITHUB_ACTION_PATH/(.*)"', _script(ACTION, "Install"))
    assert where is not None
    assert (ACTION.parent / where[1]).resolve() == ROOT
