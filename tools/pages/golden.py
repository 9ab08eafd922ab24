"""tests/golden: the source that the codec generates for three messages, for reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.codec import Encoding, message
from flexwire.codec.decoder_source import emit_decoder_source
from flexwire.codec.encoder_source import emit_encoder_source
from tools.pages.files import ROOT, write_files

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.codec.definition import Definition

GOLDEN = ROOT / "tests" / "golden"
_CASES = [("RequestHeader", 2), ("ApiVersionsResponse", 3), ("FetchRequest", 17)]


def files() -> dict[Path, str]:
    """Return the source of a decoder and an encoder for each case."""
    return {
        GOLDEN / f"{name}_v{version}_{kind}.py.txt": text
        for name, version in _CASES
        for kind, text in generated_source(message(name).definition, version).items()
    }


def generated_source(
    definition: Definition, version: int, encoding: Encoding = Encoding.KAFKA
) -> dict[str, str]:
    """Return the generated code of one version: the source of "decode" and of "encode"."""
    schema, classes = definition.schema(version, encoding), definition.classes
    return {
        "decode": emit_decoder_source(schema, classes, "decode").text(),
        "encode": emit_encoder_source(schema, classes, "encode").text(),
    }


if __name__ == "__main__":
    write_files(files())
