"""docs/vectors.md, the reports of bugs that vectors found, and the table of codecs are correct."""

from __future__ import annotations

import json
import shutil
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.vectors import Outcome, Vector, Verdict
from flexwire.vectors.judging import Direction
from flexwire.vectors.package import Expected, Manifest
from flexwire.vectors.results import CodecResults
from tests.codec_vectors.kept import FEW, KEPT
from tests.house.test_readme import blocks, check
from tools.maven import ROOT
from tools.pages.codecs import KEPT as FOUND
from tools.vectors_codecs import CODECS, EXAMPLES, kinds

if TYPE_CHECKING:
    from pathlib import Path

import msgspec

PAGE = ROOT / "docs" / "vectors.md"


@pytest.mark.slow
def test_every_block_does_what_it_shows(tmp_path: Path) -> None:
    shutil.copytree(FEW, tmp_path / "vectors")
    program, *others = blocks(PAGE.read_text(encoding="utf-8"))
    assert program.reason is not None
    (tmp_path / "my_codec.py").write_text(program.text, encoding="utf-8")
    for block in others:
        check(block, tmp_path)
    assert [one.language for one in others] == ["console", "python"]


def test_the_page_counts_the_cases_of_the_whole_package() -> None:
    manifest = msgspec.json.decode((KEPT / "manifest.json").read_bytes(), type=Manifest)
    cases = sum(one.cases for one in manifest.files)
    assert f"contains {cases:,} cases for Apache Kafka {manifest.kafka}" in PAGE.read_text()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_kafka_python_reads_a_string_that_is_cut_off(tmp_path: Path) -> None:
    page = ROOT / "docs" / "upstream" / "kafka-python-cut.md"
    [block] = blocks(page.read_text(encoding="utf-8"))
    check(block, tmp_path)


def test_each_codec_was_tested_in_the_version_that_is_pinned() -> None:
    found = json.loads(FOUND.read_text(encoding="utf-8"))
    assert list(found) == list(CODECS)
    for name, codec in CODECS.items():
        row = found[name]
        assert (row["library"], row["version"]) == (codec.library, codec.version)
        assert (EXAMPLES / row["program"]).is_file()
        assert sum(row["counts"].values()) >= 16_059
    cargo = tomllib.loads((EXAMPLES / "rust" / "Cargo.toml").read_text(encoding="utf-8"))
    pinned = cargo["dependencies"]["kafka-protocol"]["version"]
    assert pinned == f"={CODECS['rust'].version}"
    assert f"kmsg v{CODECS['go'].version}\n" in (EXAMPLES / "go" / "go.mod").read_text()
    assert f"kio=={CODECS['kio'].version} " in (EXAMPLES / "python" / "kio.lock").read_text()
    package = json.loads((EXAMPLES / "javascript" / "package.json").read_text(encoding="utf-8"))
    javascript = CODECS["javascript"]
    assert package["dependencies"] == {javascript.library: javascript.version}
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert f"kafka-python=={CODECS['kafka-python'].version} " in lock


def test_kafkas_own_codec_does_what_kafka_does() -> None:
    row: dict[str, Any] = json.loads(FOUND.read_text(encoding="utf-8"))["java"]
    assert row["counts"]["passed"] > 10_000
    for outcome in ("failed", "refusedWrongly", "takenWrongly", "notAsked"):
        assert row["counts"][outcome] == 0


def test_deviations_are_summed_up_by_kind_and_hold_no_words_of_the_codec() -> None:
    results = CodecResults(["codec"])
    for case, outcome, reason in (
        ("M/0/hostile/cut-1", Outcome.TAKEN, "x"),
        ("M/1/hostile/cut-0", Outcome.TAKEN, "y"),
        (
            "M/1/full",
            Outcome.FAILED,
            "the codec exited with status 1; its standard error: a secret",
        ),
        ("M/1/random-0", Outcome.STRICTER, "z"),
        ("records/magic-2-none-3", Outcome.FAILED, "batches[0].magic: missing"),
    ):
        vector = Vector(case=case, expected=Expected.TAKE, hex="")
        results.add(Verdict(vector, Direction.DECODE, outcome, reason))
    rows = [(one["kind"], one["outcome"], one["fault"], one["cases"]) for one in kinds(results)]
    assert rows == [
        ("hostile/cut", "taken wrongly", "", 2),
        ("full", "failed", "the codec exited with status 1", 1),
        ("records", "failed", "", 1),
        ("random", "stricter than Kafka", "", 1),
    ]
