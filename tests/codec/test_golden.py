"""Three outputs of the generator, so that a review shows what a change to it writes.

Write them anew with ``python -m tests.codec.test_golden``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flexwire.codec import message
from flexwire.codec.emit_decode import emit_decoder_source
from flexwire.codec.emit_encode import emit_encoder_source

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = [("RequestHeader", 2), ("ApiVersionsResponse", 3), ("FetchRequest", 17)]


def generated(name: str, version: int) -> str:
    definition = message(name).definition
    schema, classes = definition.schema(version), definition.classes
    decoder = emit_decoder_source(schema, classes, "decode").text()
    return decoder + "\n" + emit_encoder_source(schema, classes, "encode").text()


@pytest.mark.parametrize(("name", "version"), CASES)
def test_generated_source_is_as_reviewed(name: str, version: int) -> None:
    golden = GOLDEN / f"{name}_v{version}.py.txt"
    assert generated(name, version) == golden.read_text(encoding="utf-8")


if __name__ == "__main__":
    for a_name, a_version in CASES:
        target = GOLDEN / f"{a_name}_v{a_version}.py.txt"
        target.write_text(generated(a_name, a_version), encoding="utf-8")
