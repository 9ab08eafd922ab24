"""The options for whole frames, and a reader of frames, for `decode` and `explain`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.completion import message_names
from flexwire.cli.options import LATEST, InputError, read_bytes, version_of
from flexwire.cli.standard_input import capture_name, save_input
from flexwire.cli.terminal import note
from flexwire.errors import CodecError, FlexwireError, FrameError, UnknownMessageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.capture.reassembly.connections import CapturedFrame
    from flexwire.cli.options import Notation
    from flexwire.codec import Message
    from flexwire.protocol import Turn
    from flexwire.protocol.frame_explanation import WholeFrame
    from flexwire.protocol.frame_input import InputFrame
    from flexwire.wire.encoding import Encoding


@dataclass(frozen=True, slots=True)
class FramingOptions:
    """The options that specify the kind and the place of a frame."""

    frame: bool
    api: str | None
    request: str | None
    frame_number: int | None
    no_length: bool

    @property
    def is_asked(self) -> bool:
        """True if the input consists of frames rather than the bytes of a message."""
        options = (self.frame, self.api, self.request, self.no_length)
        return any(options) or self.frame_number is not None

    @property
    def is_guessed(self) -> bool:
        """True if the frame is assumed to be a request, because no option specifies the kind."""
        return not (self.api or self.request) and self.frame_number is None


@dataclass(frozen=True, slots=True)
class ShownFrame:
    """A frame to show: a complete frame, or the readable ``part`` of an incomplete frame.

    If the frame comes from a capture, ``withheld`` is true, and the frame is shown without
    credentials.
    """

    frame: WholeFrame | None
    withheld: bool = False
    where: str | None = None
    part: InputFrame | None = None

    @property
    def error(self) -> FlexwireError | None:
        """The error of an incomplete frame.

        If there are several frames, the error also identifies the frame.
        """
        error = None if self.part is None else self.part.error
        return error if error is None or not self.where else FrameError(f"{self.where}: {error}")

    @property
    def is_read(self) -> bool:
        """True if any part of the frame can be shown."""
        header = None if self.part is None else self.part.header
        return self.part is None or (header is not None and bool(header.form))

    @property
    def is_believed(self) -> bool:
        """True if the fields that were read are probably correct.

        A request that does not decode may be a response, whose first bytes also look like an API.
        """
        part = self.part
        if part is None or part.kind == "response":
            return True
        client_id = "" if part.header is None else part.header.form.get("clientId")
        return part.is_cut and (client_id or "").isprintable()

    @property
    def is_surely_a_request(self) -> bool:
        """True if the first bytes are almost certainly the start of a request.

        A response begins with its correlation id. The first two bytes of an id below 65,536 are 0.
        An api key other than 0 therefore nearly always belongs to a request.
        """
        part = self.part
        if part is None or part.body is None or part.header is None:
            return part is None
        return part.is_cut and part.header.form["requestApiKey"] != 0


def raise_first(frames: list[ShownFrame], framing: FramingOptions) -> None:
    """Raise the error of the first incomplete frame.

    Print a hint first if the frame may be a response.
    """
    for frame in frames:
        if frame.error is None:
            continue
        if framing.is_guessed and not frame.is_surely_a_request:
            note(
                "the bytes were read as a request; if they are a response, add --api API "
                "--version N, or --request DATA with the bytes of the request"
            )
        raise frame.error


_OPTIONS = (
    click.option(
        "--frame",
        is_flag=True,
        help=(
            "Treat DATA as a frame: the header and body, with or without the length before them. "
            "With --api or --request, the frame is a response; without these options, it is a "
            "request. DATA can contain several frames, one after the other. The last frame may be "
            "cut off."
        ),
    ),
    click.option(
        "--api",
        metavar="API",
        help="Treat the frame as a response for this API (a name such as Metadata, or an api key), "
        "in the version given by --version.",
    ),
    click.option(
        "--request",
        metavar="DATA",
        help=(
            "Treat the frame as the response to this request. Supply the request's bytes in the "
            "same way as DATA."
        ),
    ),
    click.option(
        "--no-length",
        is_flag=True,
        help=(
            "Treat the frame as having no length before its header. By default, flexwire detects "
            "whether the frame begins with a length."
        ),
    ),
    click.option(
        "--frame-number",
        type=click.IntRange(min=1),
        metavar="N",
        help=(
            "Show the frames that end in packet N of DATA, which must be a pcap or pcapng file. N "
            "is the packet number in Wireshark. Credentials are withheld."
        ),
    ),
)


def framing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `FramingOptions` to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


words_argument = click.argument(
    "words", nargs=-1, metavar="[MESSAGE] DATA", shell_complete=message_names
)


def split_words(words: tuple[str, ...], framing: FramingOptions) -> tuple[str | None, str]:
    """Return the message (or None) and the data in the words of a command line."""
    if framing.is_asked:
        if len(words) != 1:
            raise click.UsageError(
                "a frame contains its api key and version, so give only DATA; to read a "
                "packet of a capture, use --frame-number N"
            )
        return None, words[0]
    if len(words) <= 1:
        raise click.UsageError(
            "give MESSAGE and DATA, --frame for a whole frame, or --frame-number N for packet N of "
            "a capture"
        )
    if len(words) > len(("MESSAGE", "DATA")):
        raise click.UsageError(f"got {words[2]!r} after DATA; quote text that contains spaces")
    return words[0], words[1]


def read_frames(
    data: str, notation: Notation, framing: FramingOptions, version: int | str | None
) -> list[ShownFrame]:
    """Return the frames in DATA or in a packet.

    Raises `FlexwireError` if there are no readable frames.
    """
    if framing.frame_number is not None:
        if framing.frame or framing.api or framing.request or framing.no_length:
            raise click.UsageError(
                "--frame-number finds the frame in a capture; leave out --frame, --api, "
                "--request and --no-length"
            )
        with save_input(capture_name) if data == "-" else nullcontext(Path(data)) as path:
            return frames_of_packet(path, framing.frame_number)
    frames = frames_of(read_bytes(data, notation), notation, framing, version)
    if not any(frame.is_read for frame in frames):
        raise_first(frames, framing)
    return frames


def frames_of(
    raw: bytes, notation: Notation, framing: FramingOptions, version: int | str | None
) -> list[ShownFrame]:
    """Return the frames in the given bytes. The options determine the kind of the frames."""
    if framing.frame_number is not None:
        raise click.UsageError("--frame-number reads a capture, so leave out --lines")
    if not raw:
        raise InputError("DATA is empty; expected a frame with a header and a body")
    request = None if framing.request is None else read_bytes(framing.request, notation)
    return read_frame_bytes(
        raw, version, api=framing.api, request=request, has_length=not framing.no_length
    )


def read_frame_bytes(
    raw: bytes,
    version: int | str | None,
    *,
    api: str | None,
    request: bytes | None,
    has_length: bool = True,
    withheld: bool = False,
) -> list[ShownFrame]:
    """Return the requests in the given bytes, or the responses to ``request`` or for an ``api``.

    Raises `click.UsageError` if a response for an API has no version, or if a version is given for
    any other frame.
    """
    input_frames = _read_input_frames(raw, version, api, request, has_length=has_length)
    return [
        ShownFrame(
            input_frame.whole,
            withheld=withheld,
            where=f"frame {number} of {len(input_frames)}, from byte {input_frame.at}"
            if input_frames[1:]
            else None,
            part=input_frame if input_frame.whole is None else None,
        )
        for number, input_frame in enumerate(input_frames, 1)
    ]


def _read_input_frames(
    raw: bytes,
    version: int | str | None,
    api: str | None,
    request: bytes | None,
    *,
    has_length: bool,
) -> list[InputFrame]:
    from flexwire.protocol.frame_input import (
        match_by_correlation_id,
        read_input_requests,
        read_input_responses,
    )

    if request is not None:
        if api is not None or version is not None:
            raise click.UsageError(
                "--request contains the API and the version; leave out --api and --version"
            )
        answered_request = match_by_correlation_id(read_input_requests(request))
        return read_input_responses(raw, answered_request, has_length=has_length)
    if api is None:
        if version is not None:
            raise click.UsageError("a request contains its version; use --version only with --api")
        return read_input_requests(raw, has_length=has_length)
    key_and_version = _api(api, version)
    return read_input_responses(raw, lambda _: key_and_version, has_length=has_length)


def _api(api: str, version: int | str | None) -> tuple[int, int]:
    """Return the api key and version from ``--api`` and ``--version``."""
    from flexwire.protocol.apis import find_api

    entry = find_api(api)
    if version is None:
        raise click.UsageError("--api needs --version, the version of the request")
    if entry.api_key is None:
        raise AssertionError  # every API has a key
    return entry.api_key, entry.versions.highest if version == LATEST else int(version)


def frames_of_packet(path: Path, number: int) -> list[ShownFrame]:
    """Return the frames of a packet without credentials.

    Raises `FlexwireError` if the packet has no frames.
    """
    from flexwire.capture.messages import find_packet_frames

    return [shown_frame(*found) for found in find_packet_frames(path, number)]


def shown_frame(frame: CapturedFrame, turn: Turn) -> ShownFrame:
    """Return a captured frame without credentials.

    Raises `InputError` if the frame is incomplete.
    """
    from flexwire.protocol import parse_response
    from flexwire.protocol.frame_explanation import WholeFrame

    where = f"{frame.connection}, {frame.direction} {frame.index} of the connection"
    if turn.kind == "token":
        raise InputError(f"{where}: the frame is a SASL token, which is withheld")
    if turn.error is not None or frame.error is not None:
        raise InputError(f"{where}: {frame.error or turn.error}")
    request = turn.request
    if request is None:
        raise InputError(f"{where}: the capture does not contain the request for this response")
    if turn.kind == "request":
        whole_frame = WholeFrame(frame.payload, True, request, request.api_version)
    else:
        header = parse_response(frame.payload, request.api_key, request.api_version)
        whole_frame = WholeFrame(frame.payload, True, header, header.body_version)
    return ShownFrame(whole_frame, withheld=True, where=where)


def needed_version(message_class: type[Message], version: int | str | None) -> int:
    """Return the version for a message without a header. Raise a usage error if there is none."""
    if version is None:
        raise click.UsageError(
            "--version is missing: give the version of the message, such as --version 12 or "
            "--version latest"
        )
    return version_of(message_class, version)


def body_and_version(
    message_class: type[Message], raw: bytes, version: int | str | None
) -> tuple[bytes, int]:
    """Return the bytes of a message and its version, which may be in the two bytes before them.

    If all bytes are a message of the requested version, there is no version before them.
    """
    from flexwire.protocol.nested_messages import SELF_VERSIONED, VERSION_BYTES, explain_versioned

    if message_class.__name__ not in SELF_VERSIONED:
        return raw, needed_version(message_class, version)
    number = None if version is None else version_of(message_class, version)
    if number is not None and _is_message(message_class, raw, number):
        return raw, number
    versioned = explain_versioned(message_class, raw)
    if versioned is not None and number in {None, versioned[1]}:
        return raw[VERSION_BYTES:], versioned[1]
    return raw, needed_version(message_class, version)


def _is_message(message_class: type[Message], raw: bytes, version: int) -> bool:
    try:
        message_class.decode(raw, version)
    except (CodecError, UnknownMessageError):
        return False
    return True


def refuse_for_frames(
    release: str | None, specs: tuple[str, ...], encoding: Encoding, *, lenient: bool
) -> None:
    """Refuse options that read a single message if the input consists of frames."""
    if release is not None or specs or lenient or encoding.value != "kafka":
        raise click.UsageError(
            "frames are read with Kafka's own specs; leave out --release, --specs, --encoding "
            "and --lenient"
        )


def hint(raw: bytes) -> str | None:
    """Return a hint if bytes that are not a message may be a frame or the start of a frame."""
    from flexwire.protocol.frame_input import read_input_requests
    from flexwire.protocol.frames import begins_with_length

    is_request = any(
        input_frame.announced and (input_frame.whole or input_frame.body)
        for input_frame in read_input_requests(raw)[:1]
    )
    if not (is_request or begins_with_length(raw)):
        return None
    return (
        "these bytes begin with a length, as a frame does: try --frame for a request, or --frame "
        "--api API for a response"
    )
