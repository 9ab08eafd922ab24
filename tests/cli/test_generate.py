"""`flexwire generate` prints messages that decode, and damaged ones with what is wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner

from flexwire import message
from flexwire.cli.app import app

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
