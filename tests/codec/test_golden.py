"""What the generator writes: three outputs for a review, and how all of it is laid out.

Write them anew with ``python -m tests.codec.test_golden``.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexwire.codec import Encoding, message
from flexwire.codec.decoder_source import emit_decoder_source
from flexwire.codec.encoder_source import emit_encoder_source
from flexwire.codec.source import LONGEST_LINE
from flexwire.schema.catalog import catalog
from tests.codec.made_up import everything

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.codec.definition import Definition

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = [("RequestHeader", 2), ("ApiVersionsResponse", 3), ("FetchRequest", 17)]


def generated(
    definition: Definition, version: int, encoding: Encoding = Encoding.KAFKA
) -> dict[str, str]:
    schema, classes = definition.schema(version, encoding), definition.classes
    return {
        "decode": emit_decoder_source(schema, classes, "decode").text(),
        "encode": emit_encoder_source(schema, classes, "encode").text(),
    }


def golden() -> Iterator[tuple[Path, str]]:
    for name, version in CASES:
        for what, text in generated(message(name).definition, version).items():
            yield GOLDEN / f"{name}_v{version}_{what}.py.txt", text


def test_generated_source_is_as_reviewed() -> None:
    written = dict(golden())
    assert {path: path.read_text(encoding="utf-8") for path in GOLDEN.iterdir()} == written


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every module that the generator writes for the bundled messages, and for a made-up one."""
    place = tmp_path_factory.mktemp("generated")
    cases = [
        (message(name).definition, version, Encoding.KAFKA)
        for name in catalog().names()
        for version in catalog().entry(name).versions
    ]
    cases += [(everything().definition, *one) for one in itertools.product((0, 1), Encoding)]
    for definition, version, encoding in cases:
        for what, text in generated(definition, version, encoding).items():
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
    # Imports in order, none without use; no local, argument or comparison that does nothing.
    ruff("check", "--select", "E,W,F,I,B,PLR0124,SIM,RET", "--ignore", "F821", place=modules)


if __name__ == "__main__":
    for target, content in golden():
        target.write_text(content, encoding="utf-8")
