"""`flexwire generate` prints decodable messages, and damaged ones with a description."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner

from flexwire import message
from flexwire.cli.app import app
from flexwire.errors import ArgumentError
from flexwire.schema.catalog import catalog

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["generate", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_line_has_the_bytes_and_the_json_form_of_a_message() -> None:
    lines = run("FetchRequest", "-V", "13", "--count", "20", "--seed", "7").splitlines()
    assert len(lines) == 20
    kind = message("FetchRequest")
    for line in map(json.loads, lines):
        assert (line["message"], line["version"]) == ("FetchRequest", 13)
        decoded = kind.decode(bytes.fromhex(line["hex"]), 13)
        assert decoded.to_json(13) == line["body"]


def test_a_seed_repeats_and_the_next_one_goes_on() -> None:
    both = run("MetadataRequest", "-V", "latest", "--count", "2", "--seed", "3", "--format", "text")
    assert both.splitlines()[1:] == [
        run("MetadataRequest", "-V", "latest", "--seed", "4", "--format", "text").strip()
    ]


def test_a_damaged_message_says_what_is_wrong() -> None:
    lines = run("MetadataResponse", "-V", "12", "--count", "50", "--hostile").splitlines()
    damages = [json.loads(line) for line in lines]
    assert all(line["damage"] for line in damages)
    assert sum(line["error"] is not None for line in damages) > 40


def test_a_corpus_has_a_file_for_each_message(tmp_path: Path) -> None:
    printed = run("HeartbeatRequest", "-V", "4", "--count", "30", "--corpus", str(tmp_path / "c"))
    files = [*(tmp_path / "c").iterdir()]
    assert printed == f"wrote {len(files)} files to {tmp_path / 'c'}\n"
    kind = message("HeartbeatRequest")
    assert all(kind.decode(file.read_bytes(), 4) for file in files)


def test_files_that_a_corpus_has_stay(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"mine")
    first = run("HeartbeatRequest", "--count", "5", "--corpus", str(tmp_path))
    files = {*tmp_path.iterdir()}
    assert first == f"wrote {len(files) - 1} files to {tmp_path}\n"
    assert run("HeartbeatRequest", "--count", "5", "--corpus", str(tmp_path)).startswith("wrote 0")
    assert {*tmp_path.iterdir()} == files


def test_the_version_is_by_default_the_newest_stable_one() -> None:
    [unstable] = [
        (name, entry.versions.highest)
        for name in catalog().names()
        if (entry := catalog().entry(name)).spec(entry.versions.highest).latest_version_unstable
    ]
    assert json.loads(run(unstable[0]))["version"] == unstable[1] - 1
    assert json.loads(run(unstable[0], "-V", "latest"))["version"] == unstable[1]
    assert json.loads(run("Fetch"))["version"] == catalog().entry("FetchRequest").versions.highest
    assert json.loads(run("Fetch", "--release", "3.0"))["version"] == 12


def test_a_frame_is_read_by_decode_and_has_the_same_body() -> None:
    framed = json.loads(run("MetadataRequest", "-V", "12", "--seed", "5", "--frame"))
    assert framed["body"] == json.loads(run("MetadataRequest", "-V", "12", "--seed", "5"))["body"]
    result = CliRunner().invoke(app, ["decode", "--frame", framed["hex"]])
    decoded = json.loads(result.stdout)
    assert (decoded["header"], decoded["version"]) == (framed["header"], 12)


def test_a_damaged_frame_says_what_is_wrong() -> None:
    lines = run("MetadataResponse", "--count", "50", "--hostile", "--frame").splitlines()
    damages = [json.loads(line) for line in lines]
    assert any("header" in line["damage"] for line in damages)
    assert sum(line["error"] is not None for line in damages) > 40


def test_a_message_without_a_header_is_in_no_frame() -> None:
    result = CliRunner().invoke(app, ["generate", "RequestHeader", "--frame"])
    assert isinstance(result.exception, ArgumentError)
    assert not result.stdout
