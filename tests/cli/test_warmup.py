"""`warmup` reports which kernels exist, and stores Spark's classes or explains why not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.spark import archive


def warmup(*options: str) -> str:
    return CliRunner().invoke(app, ["warmup", *options], catch_exceptions=False).output


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevent an archive from being written."""
    monkeypatch.setattr(archive, "make_archive", lambda _: Path("kept"))


def test_it_says_which_kernels_there_are_and_keeps_the_classes_of_spark() -> None:
    first, second = warmup().splitlines()
    assert first.startswith("kernels compiled by Cython: built for cpython-3")
    assert second.startswith("Spark's classes: ")


def test_a_java_that_keeps_no_classes_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "make_archive", lambda _: None)
    assert warmup().splitlines()[-1].startswith("Spark's classes: not stored, because this Java")


def test_without_spark_there_are_no_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flexwire.cli.warmup.find_spec", lambda _: None)
    assert len(warmup().splitlines()) == 1


def test_without_kernels_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEXWIRE_KERNELS", "off")
    assert warmup().splitlines()[0] == "no kernels: FLEXWIRE_KERNELS=off"
    assert json.loads(warmup("--format", "json"))["kernels"] == {
        "compiledBy": "nothing",
        "level": None,
        "isCompiled": False,
        "reason": "FLEXWIRE_KERNELS=off",
    }
