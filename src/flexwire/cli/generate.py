"""`flexwire generate`: generate random messages from specs, for tests and fuzzers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from flexwire.cli.options import (
    Format,
    find_message,
    message_argument,
    release_option,
    specs_options,
    stable_version_option,
    version_or_stable,
)
from flexwire.cli.standard_input import spec_name, takes_standard_input
from flexwire.cli.terminal import print_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.codec import Message
    from flexwire.schema.parse import Mode

_MOST: Final = 10_000_000
_NAME_LETTERS: Final = 16


@click.command("generate")
@message_argument
@stable_version_option
@click.option(
    "--count",
    type=click.IntRange(1, _MOST),
    default=1,
    show_default=True,
    help="How many messages to generate.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="The random seed. The same seed generates the same messages.",
)
@click.option(
    "--hostile",
    is_flag=True,
    help=(
        "Damage each message in one place, for example with a missing end, a wrong length, a null, "
        "an overlong varint, repeated tags, a flipped bit or another version."
    ),
)
@click.option(
    "--frame",
    is_flag=True,
    help=(
        "Generate whole frames of a request or response: length, header and body. With --hostile, "
        "half of the frames are damaged in the length or the header."
    ),
)
@click.option(
    "--corpus",
    type=click.Path(file_okay=False, path_type=Path),
    help=(
        "Write each message to its own file in this directory, in the format that libFuzzer and "
        "atheris read. Existing files are kept."
    ),
)
@click.option(
    "--format",
    "output",
    type=click.Choice(Format, case_sensitive=False),
    default=Format.JSON,
    show_default="json",
    help="The output format of each message: a line of JSON, or text that shows the message's "
    "bytes in hex.",
)
@release_option
@specs_options
@takes_standard_input(specs=spec_name)
def generate(
    *,
    message: str,
    version: int | str | None,
    count: int,
    seed: int,
    hostile: bool,
    frame: bool,
    corpus: Path | None,
    output: Format,
    release: str | None,
    specs: tuple[str, ...],
    specs_mode: Mode,
) -> None:
    """Generate random messages of one version, valid or nearly valid.

    A valid message contains random values in every field, and unknown tagged fields. Each JSON line
    contains the message, the version, the bytes as hex, and the JSON form as body. With --frame,
    the line also contains the header. With --hostile, the line contains no body and no header.
    Instead, the line contains a description of the damage, and the error from flexwire's strict
    decoder. The error is null if the decoder accepts the bytes.
    """
    from flexwire.atomic_files import write_together
    from flexwire.facts.units import plural

    message_class = find_message(message, release, specs, specs_mode)
    number = version_or_stable(message_class, version)
    make = _MAKERS[frame, hostile]
    samples = (make(message_class, number, place) for place in range(seed, seed + count))
    if corpus is None:
        for data, facts in samples:
            print(
                data.hex() if output is Format.TEXT else _line(message_class, number, data, facts)
            )
        return
    written = 0
    for data, _ in samples:
        # Fuzzers use such file names to recognize files that they already have.
        name = hashlib.sha256(data).hexdigest()[:_NAME_LETTERS]
        if not (corpus / name).exists():
            write_together(corpus, {name: data})
            written += 1
    print_line(f"wrote {plural(written, 'file')} to {corpus}")


_Sample = tuple[bytes, dict[str, Any]]
"""The bytes of a message or frame, and the fields of its output line."""


def _valid(message_class: type[Message], version: int, seed: int) -> _Sample:
    from flexwire.codec.samples import random_message

    sample = random_message(message_class, version, seed, batches=True, nan=True)
    return sample.encode(version), {"body": sample.to_json(version)}


def _hostile(message_class: type[Message], version: int, seed: int) -> _Sample:
    from flexwire.codec.hostile import hostile_bytes

    sample = hostile_bytes(message_class, version, seed)
    return sample.data, {"damage": sample.damage, "error": sample.error}


def _valid_frame(message_class: type[Message], version: int, seed: int) -> _Sample:
    from flexwire.protocol.sample_frames import random_frame

    sample = random_frame(message_class, version, seed)
    return sample.data, {
        "headerVersion": sample.header_version,
        "header": sample.header.to_json(sample.header_version),
        "body": sample.body.to_json(version),
    }


def _hostile_frame(message_class: type[Message], version: int, seed: int) -> _Sample:
    from flexwire.protocol.sample_frames import hostile_frame

    sample = hostile_frame(message_class, version, seed)
    return sample.data, {"damage": sample.damage, "error": sample.error}


# The functions for --frame and --hostile.
_MAKERS: Final[dict[tuple[bool, bool], Callable[[type[Message], int, int], _Sample]]] = {
    (False, False): _valid,
    (False, True): _hostile,
    (True, False): _valid_frame,
    (True, True): _hostile_frame,
}


def _line(message_class: type[Message], version: int, data: bytes, facts: dict[str, Any]) -> str:
    name = message_class.entry.name
    return json.dumps({"message": name, "version": version, "hex": data.hex(), **facts})
