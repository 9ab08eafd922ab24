"""Whole frames for `decode` and `explain`: the options that say what they are, and reading them."""

from __future__ import annotations

import re
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.completion import message_names
from flexwire.cli.loudness import note
from flexwire.cli.options import LATEST, InputError, read_bytes, version_of
from flexwire.cli.standard_input import capture_name, kept_input
from flexwire.errors import DecodeError, FrameError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.cli.options import Notation
    from flexwire.codec import Message
    from flexwire.protocol.whole_frames import WholeFrame
    from flexwire.wire.encoding import Encoding


@dataclass(frozen=True, slots=True)
class Framing:
    """The options that say of which kind a frame is, and where it stands."""

    frame: bool
    api: str | None
    request: str | None
    frame_number: int | None

    @property
    def is_asked(self) -> bool:
        """Whether whole frames are meant, and not the bytes of a message."""
        return bool(self.frame or self.api or self.request) or self.frame_number is not None

    @contextmanager
    def hinting(self) -> Iterator[None]:
        """Say what to try where a frame inside is not the request that it was taken for."""
        try:
            yield
        except (DecodeError, FrameError):
            if not (self.api or self.request or self.frame_number is not None):
                note(
                    "this was read as a request; of a response name the API, --api API --version "
                    "N, or give the request that it answers, --request DATA"
                )
            raise


@dataclass(frozen=True, slots=True)
class Shown:
    """A frame to show; ``withheld``: without credentials, as it comes from a capture."""

    frame: WholeFrame
    withheld: bool = False
    where: str | None = None


_OPTIONS = (
    click.option(
        "--frame",
        is_flag=True,
        help="DATA is a whole frame, header and body, with its length or without: a request, or "
        "with --api or --request a response.",
    ),
    click.option(
        "--api",
        metavar="API",
        help="The frame is a response of this API, a name such as Metadata or a key; of the "
        "version that --version says.",
    ),
    click.option(
        "--request",
        metavar="DATA",
        help="The frame is the response to this request, given as DATA is.",
    ),
    click.option(
        "--frame-number",
        type=click.IntRange(min=1),
        metavar="N",
        help="DATA is a pcap or pcapng file; show the frames that end in its packet N, as "
        "Wireshark numbers them. Credentials are withheld.",
    ),
)


def framing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `Framing`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


words_argument = click.argument(
    "words", nargs=-1, required=True, metavar="[MESSAGE] DATA", shell_complete=message_names
)


def named(words: tuple[str, ...], framing: Framing) -> tuple[str | None, str]:
    """The message and the data that the words of a command line name."""
    if framing.is_asked:
        if len(words) != 1:
            raise click.UsageError(
                "a frame says which message it is: give DATA alone; a packet of a capture is "
                "--frame-number N"
            )
        return None, words[0]
    if len(words) == 1:
        raise click.UsageError(
            "give MESSAGE and DATA, --frame for a whole frame, or --frame-number N for packet N of "
            "a capture"
        )
    if len(words) > len(("MESSAGE", "DATA")):
        raise click.UsageError(f"got {words[2]!r} after DATA; text with spaces needs quotes")
    return words[0], words[1]


def read_frames(
    data: str, notation: Notation, framing: Framing, version: int | str | None
) -> list[Shown]:
    """The frames that are meant: one, or those of a packet. Raises `FlexwireError`s."""
    if framing.frame_number is not None:
        if framing.frame or framing.api or framing.request:
            raise click.UsageError("--frame-number knows what a frame is; leave out the others")
        with kept_input(capture_name) if data == "-" else nullcontext(Path(data)) as path:
            return _of_capture(path, framing.frame_number)
    raw = read_bytes(data, notation)
    if not raw:
        raise InputError("DATA is empty; a frame is a header and a body")
    return [Shown(_read_frame(raw, notation, framing, version))]


def one_frame(raw: bytes, notation: Notation, framing: Framing, version: int | str | None) -> Shown:
    """One frame of bytes, whose kind the options say."""
    if framing.frame_number is not None:
        raise click.UsageError("--frame-number is of a capture, and not of --lines")
    return Shown(_read_frame(raw, notation, framing, version))


def _read_frame(
    raw: bytes, notation: Notation, framing: Framing, version: int | str | None
) -> WholeFrame:
    from flexwire.protocol import read_request
    from flexwire.protocol.whole_frames import read_request_frame, read_response_frame

    if framing.request is not None:
        if framing.api is not None or version is not None:
            raise click.UsageError("--request says API and version; leave out --api and --version")
        asked = read_request(read_request_frame(read_bytes(framing.request, notation)).payload)
        found = read_response_frame(raw, asked.api_key, asked.api_version)
        if found.header.correlation_id != asked.correlation_id:
            raise InputError(
                f"the response has correlation id {found.header.correlation_id}, and the request "
                f"{asked.correlation_id}: it answers another"
            )
        return found
    if framing.api is None:
        if version is not None:
            raise click.UsageError("a request says its version; --version goes with --api")
        return read_request_frame(raw)
    return read_response_frame(raw, *_api(framing.api, version))


def _api(api: str, version: int | str | None) -> tuple[int, int]:
    """The key and version that ``--api`` and ``--version`` say."""
    from flexwire.protocol.apis import request_entries
    from flexwire.schema.catalog import catalog

    if re.fullmatch(r"\d{1,5}", api):
        key = int(api)
        entries = request_entries(key)
        if not entries:
            raise InputError(f"--api: no Kafka release in the catalog has api key {key}")
        entry = entries[0]
    else:
        name = re.sub(r"(Request|Response)$", "", api)
        entry = catalog().entry(f"{name}Request")
    if version is None:
        raise click.UsageError("--api needs --version, that of the request which is answered")
    if entry.api_key is None:
        raise InputError(f"--api: {entry.name} has no api key")
    return entry.api_key, entry.versions.highest if version == LATEST else int(version)


def _of_capture(path: Path, number: int) -> list[Shown]:
    from flexwire.capture.frame_lookup import frames_of_packet
    from flexwire.protocol import parse_response
    from flexwire.protocol.whole_frames import WholeFrame

    shown = []
    for frame, turn in frames_of_packet(path, number):
        where = f"{frame.connection}, {frame.direction} {frame.index} of the connection"
        if turn.kind == "token":
            raise InputError(f"{where}: a token of SASL, which is withheld")
        if turn.error is not None or frame.error is not None:
            raise InputError(f"{where}: {frame.error or turn.error}")
        if turn.request is None:
            raise InputError(f"{where}: the capture does not have the request that it answers")
        if turn.kind == "request":
            found = WholeFrame(frame.payload, True, turn.request, turn.request.api_version)
        else:
            asked = turn.request
            header = parse_response(frame.payload, asked.api_key, asked.api_version)
            found = WholeFrame(frame.payload, True, header, header.body_version)
        shown.append(Shown(found, withheld=True, where=where))
    return shown


def needed_version(made: type[Message], version: int | str | None) -> int:
    """The number of the version that a message without its header needs to be told."""
    if version is None:
        raise click.UsageError(
            "--version is missing: it says of which version the message is, --version 12 or latest"
        )
    return version_of(made, version)


def refuse_for_frames(
    release: str | None, specs: tuple[str, ...], encoding: Encoding, *, lenient: bool
) -> None:
    """Refuse what says how a message is read, where frames are read."""
    if release is not None or specs or lenient or encoding.value != "kafka":
        raise click.UsageError(
            "a frame is read as Kafka's releases write it; leave out --release, --specs, "
            "--encoding and --lenient"
        )


def hint(raw: bytes) -> str | None:
    """What to try where bytes are no message: they may be a whole frame."""
    from flexwire.protocol.frames import begins_with_length

    if not begins_with_length(raw):
        return None
    return (
        "these bytes begin with their own length, as a frame does: try --frame for a request, and "
        "--frame --api API for a response"
    )
