"""Arguments that several commands share, and functions that read bytes from users."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import sys
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click

from flexwire.arguments import DEFAULT_MEMORY, DEFAULT_ZONE
from flexwire.cli.completion import message_names, release_names
from flexwire.cli.terminal import note
from flexwire.errors import FlexwireError, short
from flexwire.versions import HIGHEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.codec import Message
    from flexwire.schema.parse import Mode
    from flexwire.wire.encoding import Encoding


MOST_INPUT_BYTES: Final = 512 * 1024 * 1024
"""The maximum size of a file, of standard input, or of a line. A hex dump of 100 MiB of data, as
hexdump prints it, is smaller than this limit.
"""


class InputError(FlexwireError):
    """An argument or a file that the command cannot use as requested."""


class Notation(StrEnum):
    """The notations in which bytes can be written."""

    AUTO = "auto"
    HEX = "hex"
    BASE64 = "base64"
    RAW = "raw"


class Format(StrEnum):
    """The output formats of a command."""

    TEXT = "text"
    JSON = "json"


def _use_catalog(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    from flexwire.schema.catalog import VARIABLE, use_catalog

    use_catalog(Path(value).absolute())
    old_value = os.environ.get(VARIABLE)
    # Processes that the command starts, especially Spark, must also use this catalog.
    os.environ[VARIABLE] = str(Path(value).absolute())
    context.find_root().call_on_close(partial(_restore_catalog, old_value))


def _restore_catalog(old_value: str | None) -> None:
    from flexwire.schema.catalog import VARIABLE, use_catalog

    if old_value is None:
        del os.environ[VARIABLE]
    else:
        os.environ[VARIABLE] = old_value
    use_catalog(Path(old_value) if old_value else None)


catalog_option = click.option(
    "--catalog",
    type=click.Path(exists=True, file_okay=False),
    expose_value=False,
    is_eager=True,
    callback=_use_catalog,
    help="Use the catalog of message specs that 'schema import' wrote to this directory.",
)
message_argument = click.argument("message", shell_complete=message_names)


class _Version(click.ParamType):  # type: ignore[type-arg]  # generic only for mypy
    """A message version, or "latest" for the newest version of the message."""

    name = "N|latest"

    def convert(
        self, value: int | str, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        if value == LATEST or isinstance(value, int):
            return value
        if not re.fullmatch(r"\d{1,5}", value) or int(value) > HIGHEST:
            self.fail(
                f"{value!r} is not a version: expected 0 to {HIGHEST}, or {LATEST}", param, ctx
            )
        return int(value)


LATEST = "latest"
version_option = click.option(
    "-V",
    "--version",
    type=_Version(),
    required=True,
    help="The message version; latest is the newest version of MESSAGE.",
)
stable_version_option = click.option(
    "-V",
    "--version",
    type=_Version(),
    help="The message version; latest is the newest version of MESSAGE. The default is the newest "
    "stable version.",
)
release_option = click.option(
    "--release",
    shell_complete=release_names,
    help="Use the layout of this Kafka release. The default is the newest release that contains "
    "the version.",
)
optional_version_option = click.option(
    "-V",
    "--version",
    type=_Version(),
    help='The message version; "latest" is the newest version of MESSAGE. Omit this option for a '
    "request frame, because the frame contains the version.",
)
_specs_option = click.option(
    "--specs",
    metavar="PATH",
    multiple=True,
    help="Look up MESSAGE in other specs: a file, a directory, a jar, a source tree, REV:PATH in "
    "git, release:NAME, or - for standard input.",
)
_specs_mode_option = click.option(
    "--specs-mode",
    type=click.Choice(["strict", "legacy", "kip", "draft"]),
    default="strict",
    show_default=True,
    help="Which specs to accept: those that Kafka's generator reads (strict), those plus specs "
    "from old releases (legacy), specs that follow KIP-482 (kip), or specs that follow the first "
    "draft of KIP-482 (draft).",
)

# This option is for commands that also write specs. The choice ``draft`` is missing, because specs
# of the first draft cannot be written.
read_mode_option = click.option(
    "--specs-mode",
    type=click.Choice(["strict", "legacy", "kip"]),
    default="strict",
    show_default=True,
    help="Which specs to accept: those that Kafka's generator reads (strict), those plus specs "
    "from old releases (legacy), or specs that follow KIP-482 (kip).",
)


def _to_encoding(_context: click.Context, _option: click.Parameter, value: str) -> Encoding:
    from flexwire.wire.encoding import Encoding

    return Encoding(value)


# The values of `flexwire.wire.encoding.Encoding`. The values are repeated so that --help does not
# import `flexwire.wire.encoding`.
ENCODINGS = ["kafka", "interleaved", "optional-buffers", "fixed", "flexible"]
encoding_option = click.option(
    "--encoding",
    type=click.Choice(ENCODINGS),
    default="kafka",
    show_default=True,
    callback=_to_encoding,
    help="The encoding: Kafka's own (kafka), the encoding in the second draft (interleaved) or "
    "first draft (optional-buffers) of KIP-482, or Kafka's own with every version treated as not "
    "flexible (fixed) or as flexible (flexible).",
)
lenient_option = click.option(
    "--lenient", is_flag=True, help="Accept any input that Kafka's Java code accepts."
)
notation_option = click.option(
    "--as",
    "notation",
    type=click.Choice(Notation, case_sensitive=False),
    default=Notation.AUTO,
    show_default="auto",
    help=(
        "The notation of the bytes. auto recognizes hex and hex dumps, and reads other text as "
        "base64 and other files as raw bytes."
    ),
)
format_option = click.option(
    "--format",
    "output",
    type=click.Choice(Format, case_sensitive=False),
    default=Format.TEXT,
    show_default="text",
    help="What to print.",
)


class _MemorySize(click.ParamType):  # type: ignore[type-arg]  # generic only for mypy
    """A memory size in Java's notation, large enough for Spark or a worker to start."""

    name = "size"

    def __init__(self, least_mib: int) -> None:
        self._least_mib = least_mib

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        match = re.fullmatch(r"(\d{1,6})([mg])", value.lower())
        if match is None:
            self.fail(f"{value!r} is not a size such as 512m or 4g", param, ctx)
        if int(match[1]) * (1024 if match[2] == "g" else 1) < self._least_mib:
            self.fail(f"{value} is too little; Spark needs at least {self._least_mib}m", param, ctx)
        return match[0]


memory_option = click.option(
    "--memory",
    type=_MemorySize(512),
    default=DEFAULT_MEMORY,
    show_default=True,
    help="The amount of memory for the Java process that runs the analysis; on a cluster, for the "
    "driver.",
)
worker_memory_option = click.option(
    "--worker-memory",
    type=_MemorySize(1024),
    help="The address-space limit for each Python worker (one worker runs on each processor). By "
    "default, there is no limit.",
)
batch_mib_option = click.option(
    "--batch-mib",
    "max_inflated",
    type=click.IntRange(min=1),
    callback=lambda _context, _option, value: None if value is None else value << 20,
    help=(
        "Decompress a record batch to at most this many MiB (max_inflated), by default 128. "
        "flexwire counts larger batches but does not read them."
    ),
)
master_option = click.option(
    "--master",
    metavar="URL",
    help="Where Spark runs: local[4], spark://HOST:7077, yarn, k8s://…, or sc://HOST:15002 for "
    "Spark Connect. The default is the master that spark-submit sets, or else this machine, with "
    "all its processors.",
)

labels_option = click.option(
    "--labels",
    metavar="FILE",
    help=(
        "A CSV file with the header line client_id,team. The audit then shows the team of each "
        "client, as does every answer that has one row for each client."
    ),
)


timezone_option = click.option(
    "--timezone",
    metavar="ZONE",
    default=DEFAULT_ZONE,
    show_default=True,
    help='For request logs: the time zone for times without a zone, such as "Europe/Berlin" or '
    '"+02:00".',
)


def specs_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options ``--specs`` and ``--specs-mode`` to a command, for `find_message`."""
    return _specs_option(_specs_mode_option(command))


def find_message(
    name: str, release: str | None, specs: tuple[str, ...], specs_mode: Mode
) -> type[Message]:
    """Return the class of a bundled message, or of a message in the given specs.

    The name of an API stands for the API's request, as in `flexwire call`.
    """
    from flexwire.codec import message
    from flexwire.schema.catalog import catalog

    if not specs:
        names, request = catalog().names(), f"{name}Request"
        if name not in names and request in names:
            note(f"{name} is read as {request}; to read its response, give {name}Response")
            name = request
        return message(name, release)
    if release is not None:
        raise click.UsageError("--release is for bundled messages; leave out --release or --specs")
    from flexwire.codec.spec_set import load_specs

    return load_specs(specs, mode=specs_mode).message(name)


def version_of(message_class: type[Message], version: int | str) -> int:
    """Return the number of a version. The user may have entered "latest" instead of a number."""
    return message_class.entry.versions.highest if version == LATEST else int(version)


def version_or_stable(message_class: type[Message], version: int | str | None) -> int:
    """Return the number of a version, or of the newest stable version if none is given.

    For a message without a stable version, the newest version is returned.
    """
    if version is not None:
        return version_of(message_class, version)
    versions = {
        number: spec.latest_version_unstable and number == spec.valid_versions.highest
        for spec, valid in message_class.definition.served.specs
        for number in valid
    }
    stable = [number for number, is_unstable in versions.items() if not is_unstable]
    return max(stable or versions)


def read_bytes(text: str, notation: Notation) -> bytes:
    """Return the bytes of an argument: text, a file, or standard input.

    With ``auto``, hex and hex dumps are recognized first, even if the text could also be base64 or
    the name of a file. The same is true for text in a file. Any other file is read as raw bytes. A
    string that could be base64 but begins like a directory is treated as the name of a file. Raises
    `InputError` for any other text.
    """
    if text == "-":
        return read_content(read_standard_input(), notation, "standard input")
    if notation is not Notation.RAW and notation is not Notation.BASE64:
        data = _from_hex(text)
        if data is not None:
            return data
    path = Path(text)
    if _exists(path):
        return read_content(_content(path), notation, text)
    # A slash is a character of base64, but at the start of a string it usually belongs to a path.
    if notation in {Notation.AUTO, Notation.BASE64} and not text.startswith(("/", "./", "../")):
        data = _from_base64(text)
        if data is not None:
            if notation is Notation.AUTO:
                _note_slip(text, "DATA", "base64")
            return data
    if re.search(r"[./]", text) and _slip(text) == "":
        raise InputError(f"there is no file {short(text)}, and the text does not encode bytes")
    expected = (
        "hex, base64 or a file" if notation is Notation.AUTO else f"{notation.value} or a file"
    )
    raise InputError(f"{short(text)} is not {expected}{_slip(text)}")


def read_line(line: bytes, notation: Notation) -> bytes:
    """Return the bytes in one line, which is hex or base64 and never the name of a file.

    Raises `InputError`.
    """
    text = line.decode("utf-8", "replace").strip()
    data = _from_base64(text) if notation is Notation.BASE64 else _from_hex(text)
    if data is None and notation is Notation.AUTO:
        data = _from_base64(text)
    if data is None:
        raise InputError(f"{short(text)} is not hex or base64{_slip(text)}")
    return data


def read_lines(source: str) -> Iterator[tuple[int, bytes]]:
    """Yield the non-blank lines of a file, or of standard input, each with its number.

    Raises `InputError` if the file cannot be read.
    """
    if source == "-":
        yield from _lines_of(standard_input(), "standard input")
        return
    try:
        with open(source, "rb") as file:  # noqa: PTH123 - any path that the system accepts is allowed
            yield from _lines_of(file, source)
    except (OSError, ValueError) as error:
        raise InputError(f"{source}: {getattr(error, 'strerror', None) or error}") from None


def _lines_of(file: IO[bytes], source: str) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := file.readline(MOST_INPUT_BYTES + 1):
        number += 1
        if len(line) > MOST_INPUT_BYTES:
            raise InputError(f"{source}: line {number} has more than {MOST_INPUT_BYTES} bytes")
        if line.strip():
            yield number, line


def standard_input() -> IO[bytes]:
    """Return standard input, with a note if it is a terminal.

    Raises `InputError` if it is closed.
    """
    if sys.stdin is None:
        raise InputError("standard input is closed")
    if sys.stdin.buffer.isatty():
        note("reading standard input until it ends (Ctrl-D)")
    return sys.stdin.buffer


def read_standard_input() -> bytes:
    """Return all bytes of standard input. Raises `InputError` if it is closed or does not end."""
    return _bounded(standard_input(), "standard input")


def _bounded(file: IO[bytes], source: str) -> bytes:
    """Return all bytes of a file.

    Raises `InputError` if a limit is exceeded, because a file such as a device may never end.
    """
    data = file.read(MOST_INPUT_BYTES + 1)
    if len(data) > MOST_INPUT_BYTES:
        raise InputError(
            f"{source} has more than {MOST_INPUT_BYTES} bytes, the limit for a message"
        )
    return data


def read_json(source: str) -> Any:
    """Return the JSON in an argument, a file, or standard input. Raises `InputError`."""
    if source.lstrip()[:1] in {"{", "["}:
        raw, name = source.encode("utf-8", "surrogateescape"), "the JSON given"
    elif source == "-":
        raw, name = read_standard_input(), "standard input"
    else:
        try:
            with open(source, "rb") as file:  # noqa: PTH123 - any path that the system accepts is allowed
                raw, name = _bounded(file, source), source
        except (OSError, ValueError) as error:
            raise InputError(f"{short(source)} is neither JSON nor a file: {error}") from None
    try:
        return json.loads(raw.decode())
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
    except RecursionError:
        raise InputError(f"{name}: nested too deeply") from None


def _from_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _from_hex(text: str) -> bytes | None:
    from flexwire.cli.dumps import read_dump

    return read_dump(text)


def read_content(content: bytes, notation: Notation, source: str) -> bytes:
    """Return the bytes that the text in a file describes.

    Raises `InputError` if the text does not describe bytes.

    ``source`` is the name of the file for error messages.
    """
    if notation is Notation.RAW:
        return content
    from flexwire.cli.dumps import MOST_LOOKED_AT

    if notation is Notation.AUTO:
        try:
            data = _from_hex(content.decode("ascii")) if content.strip() else None
        except UnicodeDecodeError:
            data = None
        if data is None:
            from flexwire.capture.files.reading import begins_as_capture

            if begins_as_capture(content):
                raise InputError(
                    f"{source} is a capture: select one of its packets with --frame-number N"
                )
            # A character takes at most four bytes, but a raw file may be large.
            begin = content[: 4 * (MOST_LOOKED_AT + 1)]
            _note_slip(begin.decode("utf-8", "replace"), source, "raw bytes")
        return content if data is None else data
    try:
        text = content.decode("ascii")
        if notation is Notation.BASE64:
            return base64.b64decode("".join(text.split()), validate=True)
    except (UnicodeDecodeError, binascii.Error) as error:
        raise InputError(f"{source} is not {notation.value}: {error}") from None
    data = _from_hex(text)
    if data is None:
        raise InputError(f"{source} is not hex: {short(text)}{_slip(text)}")
    return data


def _slip(text: str) -> str:
    """Return the text to append to an error about a string that is almost hex, or ""."""
    from flexwire.cli.dumps import slip_in_hex

    slip = slip_in_hex(text)
    return f"; {slip}" if slip else ""


def _note_slip(text: str, source: str, notation: str) -> None:
    """Print a note that a string that is almost hex was read in another way."""
    if slip := _slip(text):
        note(f"{source} is read as {notation}, but looks like hex{slip}")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        # The string is too long for a path, or contains a character that paths cannot contain.
        return False


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _bounded(file, str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def parse_percentage(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    """Return a percentage as a fraction. This is a callback for click."""
    if text is None:
        return None
    number = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)%", text)
    if number is None or not 0 < float(number[1]) <= 100:  # noqa: PLR2004  # the number is a percentage
        raise click.BadParameter(f"expected a percentage such as 5%, got {text!r}")
    return float(number[1]) / 100


_UNITS = {"s": 1, "m": 60, "h": 3600}


def parse_time(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    """Return the seconds in a time such as 90s, 10m or 2h. This is a callback for click."""
    if text is None:
        return None
    number = re.fullmatch(r"([0-9]{1,6})([smh])", text)
    if number is None or not int(number[1]):
        raise click.BadParameter(f"expected a time such as 90s, 10m or 2h, got {text!r}")
    return float(int(number[1]) * _UNITS[number[2]])
