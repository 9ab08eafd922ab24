"""`schema docs` writes a website (tests/docs covers the Markdown)."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from flexwire.cli.app import app
from flexwire.cli.options import InputError
from flexwire.errors import FlexwireError, SpecError
from flexwire.schema.catalog import catalog
from flexwire.schema.write import write_spec
from flexwire.specs.guide.site import _environment
from tests.guide.built import site
from tests.guide.specs import spec_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# The path exists, but is not a file.
NO_FILES = [lambda path: path.symlink_to("elsewhere"), lambda path: path.mkdir(), os.mkfifo]


def docs(*arguments: object) -> Result:
    given = ["schema", "docs", *map(str, arguments)]
    return CliRunner().invoke(app, given, catch_exceptions=False)


def written(place: Path) -> dict[str, str]:
    return {
        path.relative_to(place).as_posix(): path.read_text(encoding="utf-8")
        for path in place.rglob("*")
        if path.is_file()
    }


def write(place: Path, name: str, kind: str, **members: Any) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{name}.json"
    path.write_text(spec_text(name, kind, **members), encoding="utf-8")
    return path


@pytest.mark.long
@pytest.mark.slow
def test_without_a_path_the_guide_is_to_all_bundled_messages(tmp_path: Path) -> None:
    out = tmp_path / "a" / "site"
    told = docs("--out", out)
    assert told.exit_code == 0
    pages = sum(path.endswith(".html") for path in site())
    assert told.output == f"wrote {pages} pages to {out}\n"
    assert written(out) == site()
    docs("--out", out)
    assert written(out) == site()


def test_a_guide_to_specs_of_one_s_own(tmp_path: Path) -> None:
    specs = tmp_path / "specs"
    write(specs, "PingRequest", "request", apiKey=9999)
    write(specs / "more", "PingResponse", "response", apiKey=9999)
    write(specs, "Note", "data")
    told = docs(specs, "--out", tmp_path / "site")
    assert told.output == f"wrote 3 pages to {tmp_path / 'site'}\n"
    made = written(tmp_path / "site")
    names = ["api/Ping.html", "guide.css", "guide.js", "index.html", "message/Note.html"]
    assert sorted(made) == [*names, "search.js"]
    assert "PingRequest v2" in made["api/Ping.html"]
    assert "PingResponse v2" in made["api/Ping.html"]


@pytest.mark.long
@pytest.mark.slow
def test_a_release_and_files_make_one_guide(tmp_path: Path) -> None:
    path = write(tmp_path, "PingRequest", "request", apiKey=9999)
    told = docs("release:3.8.1", path, "--out", tmp_path / "site")
    made = written(tmp_path / "site")
    assert told.exit_code == 0
    assert "api/Ping.html" in made
    assert "0-16" in made["api/Fetch.html"]
    assert "PingRequest v0" in made["api/Ping.html"]


@pytest.mark.long
@pytest.mark.slow
def test_bundled_specs_as_files_have_the_same_fields(tmp_path: Path) -> None:
    """The catalog's own specs produce the same tables if they are given as a user's specs."""
    specs = tmp_path / "specs"
    specs.mkdir()
    for name in ("HeartbeatRequest", "HeartbeatResponse"):
        text = write_spec(catalog().entry(name).all_specs()[0])
        (specs / f"{name}.json").write_text(text, encoding="utf-8")
    docs(specs, "--out", tmp_path / "site")
    made = (tmp_path / "site" / "api" / "Heartbeat.html").read_text(encoding="utf-8")
    rows = [line for line in site()["api/Heartbeat.html"].splitlines() if "data-path" in line]
    assert [line for line in made.splitlines() if "data-path" in line] == rows


def test_all_that_is_wrong_with_specs_is_told(tmp_path: Path) -> None:
    specs = tmp_path / "specs"
    write(specs, "BadRequest", "request", validVersions="0+")
    (specs / "Cut.json").write_text('{"name": ', encoding="utf-8")
    fields = [{"name": "A", "type": "int8", "versions": "0+", "default": "300"}]
    write(specs, "Deep", "data", fields=[*fields, {"name": "S", "type": "T", "versions": "0+"}])
    told = docs(specs, "--out", tmp_path / "site")
    assert told.exit_code == 1
    for rule in (
        "API_KEY_MISSING",
        "VALID_VERSIONS_OPEN",
        "TEXT_NOT_JSON",
        "DEFAULT_INVALID",
        "STRUCT_WITHOUT_FIELDS",
    ):
        assert rule in told.output
    assert "flexwire schema lint --explain RULE" in told.output
    assert not (tmp_path / "site").exists()


def test_a_habit_that_lint_warns_of_is_no_reason_to_refuse(tmp_path: Path) -> None:
    fields = [{"name": "number", "type": "int8", "versions": "0-9"}]
    write(tmp_path / "specs", "PingRequest", "request", apiKey=9999, fields=fields)
    lint = CliRunner().invoke(app, ["schema", "lint", "--use", "ALL", str(tmp_path / "specs")])
    assert lint.exit_code == 100
    assert docs(tmp_path / "specs", "--out", tmp_path / "site").exit_code == 0


def test_specs_of_old_releases_are_read_in_their_mode(tmp_path: Path) -> None:
    old = json.loads(spec_text("PingRequest", "request", apiKey=9999))
    del old["flexibleVersions"]
    path = tmp_path / "PingRequest.json"
    path.write_text(json.dumps(old), encoding="utf-8")
    told = docs(path, "--out", tmp_path / "site")
    assert told.exit_code == 1
    assert "FLEXIBLE_VERSIONS_MISSING" in told.output
    assert docs(path, "--specs-mode", "legacy", "--out", tmp_path / "site").exit_code == 0


def test_two_files_of_one_message_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a", "Note", "data")
    write(tmp_path / "b", "Note", "data")
    with pytest.raises(SpecError, match="message Note is already defined in"):
        docs(tmp_path / "a", tmp_path / "b", "--out", tmp_path / "site")


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such file or directory"):
        docs(tmp_path / "none", "--out", tmp_path / "site")
    with pytest.raises(SpecError, match="no release"):
        docs("release:1.0", "--out", tmp_path / "site")


def test_markdown_is_for_the_bundled_messages(tmp_path: Path) -> None:
    told = docs("release:3.8.1", "--format", "markdown", "--out", tmp_path)
    assert told.exit_code == 2
    assert "leave out PATH and --capture" in told.output


@pytest.mark.long
@pytest.mark.slow
def test_pages_of_an_earlier_run_go_and_files_of_others_stay(tmp_path: Path) -> None:
    write(tmp_path / "specs", "Note", "data")
    place = tmp_path / "site"
    docs("release:3.8.1", "--out", place)
    notes = place / "message" / "notes.html"
    notes.write_text("<p>Mine.</p>", encoding="utf-8")
    docs(tmp_path / "specs", "--out", place)
    assert sorted(path for path in written(place) if path.endswith(".html")) == [
        "index.html",
        "message/Note.html",
        "message/notes.html",
    ]
    assert notes.read_text(encoding="utf-8") == "<p>Mine.</p>"


@pytest.mark.parametrize("name", ["index.html", "guide.js", "message/Note.html"])
@pytest.mark.parametrize("content", ["<p>Mine.</p>", ""])
def test_a_file_of_somebody_else_s_is_never_replaced(
    tmp_path: Path, name: str, content: str
) -> None:
    write(tmp_path / "specs", "Note", "data")
    place = tmp_path / "site"
    foreign = place / name
    foreign.parent.mkdir(parents=True)
    foreign.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="choose another directory"):
        docs(tmp_path / "specs", "--out", place)
    assert written(place) == {name: content}


@pytest.mark.parametrize("make", NO_FILES)
@pytest.mark.parametrize("name", ["index.html", "message/Note.html"])
def test_a_link_a_directory_or_a_pipe_is_somebody_else_s(
    tmp_path: Path, name: str, make: Callable[[Path], object]
) -> None:
    write(tmp_path / "specs", "Note", "data")
    foreign = tmp_path / "site" / name
    foreign.parent.mkdir(parents=True)
    make(foreign)
    with pytest.raises(InputError, match="choose another directory"):
        docs(tmp_path / "specs", "--out", tmp_path / "site")
    assert not written(tmp_path / "site")
    assert not foreign.with_name("elsewhere").exists()


@pytest.mark.parametrize("make", NO_FILES)
def test_a_link_a_directory_or_a_pipe_beside_the_pages_stays(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    write(tmp_path / "specs", "Note", "data")
    beside = tmp_path / "site" / "message" / "beside.html"
    beside.parent.mkdir(parents=True)
    make(beside)
    # A page may be the target.
    for _ in range(2):
        docs(tmp_path / "specs", "--out", tmp_path / "site")
        shutil.copy(tmp_path / "site" / "index.html", beside.with_name("elsewhere"))
    assert os.path.lexists(beside)


def test_one_page_is_one_page(tmp_path: Path) -> None:
    write(tmp_path / "specs", "Note", "data")
    assert docs(tmp_path / "specs", "--out", tmp_path / "site").output.startswith("wrote 2 pages")
    write(tmp_path / "specs", "Note", "data", validVersions="none")
    assert docs(tmp_path / "specs", "--out", tmp_path / "site").output.startswith("wrote 1 page to")


def test_pages_have_names_that_any_system_takes_and_keeps_apart(tmp_path: Path) -> None:
    for name in ("Con", "Lpt1", "Config", "Note", "NOTE"):
        write(tmp_path / "specs" / name.swapcase(), name, "data")
    docs(*(tmp_path / "specs").iterdir(), "--out", tmp_path / "site")
    pages = sorted(path.stem for path in (tmp_path / "site" / "message").iterdir())
    assert pages == ["Con_", "Config", "Lpt1_", "NOTE", "Note_"]


@pytest.mark.slow
def test_without_jinja2_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A process that writes a guide has loaded the guide's templates.
    _environment.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(FlexwireError, match="pip install"):
        docs("--out", tmp_path / "site")
    assert not (tmp_path / "site").exists()
