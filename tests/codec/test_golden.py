"""Generated source is in ruff's format; `tests/golden` contains three outputs to review."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from flexwire.codec import Encoding, message
from flexwire.codec.source import LONGEST_LINE
from flexwire.schema.catalog import catalog
from tests.codec.made_up import everything
from tools.pages.golden import GOLDEN, files, generated_source

if TYPE_CHECKING:
    from pathlib import Path


def test_no_output_stays_that_nothing_writes() -> None:
    assert {*GOLDEN.iterdir()} == {*files()}


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the generated modules of the bundled messages and of an invented message."""
    place = tmp_path_factory.mktemp("generated")
    cases = [
        (message(name).definition, version, Encoding.KAFKA)
        for name in catalog().names()
        for version in catalog().entry(name).versions
    ]
    cases += [(everything().definition, *one) for one in itertools.product((0, 1), Encoding)]
    for definition, version, encoding in cases:
        for what, text in generated_source(definition, version, encoding).items():
            name = f"{definition.name}_{version}_{encoding.name}_{what}.py"
            (place / name).write_text(text, encoding="utf-8")
    return place


def ruff(*arguments: str, place: Path) -> None:
    command = [sys.executable, "-m", "ruff", *arguments, "--isolated", "--no-cache"]
    width = ["--line-length", str(LONGEST_LINE), "--target-version", "py311"]
    done = subprocess.run(
        [*command, *width, str(place)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]


def test_generated_source_is_formatted_as_ruff_formats(modules: Path) -> None:
    ruff("format", "--diff", place=modules)


def test_generated_source_has_no_long_line_and_nothing_unused(modules: Path) -> None:
    # Imports are in order and used; each local, argument and comparison has an effect.
    ruff("check", "--select", "E,W,F,I,B,PLR0124,SIM,RET", "--ignore", "F821", place=modules)
