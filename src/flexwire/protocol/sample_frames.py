"""Synthetic frames for tests and fuzzers: length, header and body, valid or damaged.

The messages come from `flexwire.codec.samples`, so the body of a valid frame is the message that
the same seed produces without a frame.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.arguments import refuse
from flexwire.codec import message
from flexwire.codec.hostile import HostileBytes, hostile_bytes
from flexwire.codec.samples import random_message
from flexwire.errors import DecodeError, FrameError
from flexwire.protocol.frames import FrameSplitter, to_frame
from flexwire.schema.header_versions import HEADER_NAMES
from flexwire.schema.spec import MessageType
from flexwire.wire.limits import INT16_MAX, INT32_MAX
from flexwire.wire.segment_layout import PREFIX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.codec import Message


class SampleFrame(NamedTuple):
    """A frame and its parts: a header in version ``header_version``, and a body."""

    data: bytes
    header: Message
    header_version: int
    body: Message


def random_frame(message_class: type[Message], version: int, seed: int) -> SampleFrame:
    """Return a frame of a request or response with random values.

    The same seed always results in the same frame.

    The header of a request contains the API key of that request. Raises `ArgumentError` for any
    other message, and `UnknownMessageError` for a version that is in no release.
    """
    body = random_message(message_class, version, seed, batches=True, nan=True)
    header, header_version = _header(message_class, version, seed)
    data = to_frame(header.encode(header_version) + body.encode(version))
    return SampleFrame(data, header, header_version, body)


def hostile_frame(message_class: type[Message], version: int, seed: int) -> HostileBytes:
    """Return a frame that is damaged in one place: in its body, its length or its header.

    The same seed always results in the same frame. ``error`` is the error that a strict reader
    reports if it expects this message and receives only these bytes. Raises the same errors as
    `random_frame`.

    >>> hostile_frame(message("HeartbeatRequest"), 4, 2).damage
    "the frame's length is -1 instead of 179"
    """
    source = random.Random(seed)  # noqa: S311 - test data needs no secret randomness
    seed_of_frame = source.getrandbits(32)
    header, header_version = _header(message_class, version, seed_of_frame)
    if source.random() < _BODIES:
        body = hostile_bytes(message_class, version, seed_of_frame)
        data, damage = to_frame(header.encode(header_version) + body.data), body.damage
    else:
        sample = random_frame(message_class, version, seed_of_frame)
        data, damage = source.choice(_DAMAGES)(sample, version, source)
    try:
        _read(message_class, version, data)
    except DecodeError as error:
        return HostileBytes(data, damage, error.reason)
    except FrameError as error:
        return HostileBytes(data, damage, str(error))
    return HostileBytes(data, damage, None)


_BODIES: Final = 0.5
"""The share of frames in which the body is damaged."""


def _header(message_class: type[Message], version: int, seed: int) -> tuple[Message, int]:
    """Return the header for a version of a message, and the version of this header."""
    spec = message_class.definition.served.entry.spec(version)
    if not spec.type.is_api or spec.api_key is None:
        raise refuse("message", "a request or response with an api key", spec.name)
    header_version = message_class.entry.header_versions.of(version)
    header: Any = random_message(message(HEADER_NAMES[spec.type]), header_version, seed)
    if spec.type is MessageType.REQUEST:
        header.request_api_key, header.request_api_version = spec.api_key, version
    return header, header_version


def _read(message_class: type[Message], version: int, data: bytes) -> None:
    """Read the frame of a message. Raises `FrameError` or `DecodeError`."""
    splitter = FrameSplitter()
    payloads = splitter.feed(data)
    if not payloads:
        announced = int.from_bytes(data[:PREFIX_LENGTH], "big", signed=True)
        here = len(data) - PREFIX_LENGTH
        raise FrameError(f"the frame's length is {announced}, but {here} bytes follow")
    entry = message_class.entry
    header_class = message(HEADER_NAMES[entry.type])
    header, end = header_class.decode_prefix(payloads[0], entry.header_versions.of(version))
    if entry.type is MessageType.REQUEST:
        fields: Any = header
        got = (fields.request_api_key, fields.request_api_version)
        if got != (entry.spec(version).api_key, version):
            raise FrameError(f"the header contains api key {got[0]} and version {got[1]}")
    message_class.decode(payloads[0][end:], version)
    if splitter.pending_length:
        raise FrameError(f"the frame ends here but {splitter.pending_length} bytes follow")


_Damaged = tuple[bytes, str]


def _lie(sample: SampleFrame, _version: int, source: random.Random) -> _Damaged:
    here = len(sample.data) - PREFIX_LENGTH
    number = source.choice([-1, 0, here - 1, here + 1, INT32_MAX])
    prefix = number.to_bytes(PREFIX_LENGTH, "big", signed=True)
    words = f"the frame's length is {number} instead of {here}"
    return prefix + sample.data[PREFIX_LENGTH:], words


def _cut(sample: SampleFrame, _version: int, source: random.Random) -> _Damaged:
    header = sample.header.encode(sample.header_version)
    return to_frame(header[: source.randrange(len(header))]), "the frame ends within its header"


def _other_header(sample: SampleFrame, version: int, source: random.Random) -> _Damaged:
    """Return a frame with a header of another version."""
    versions = {*type(sample.header).entry.versions} - {sample.header_version}
    other = source.choice(sorted(versions))
    # A version without tagged fields cannot contain them.
    sample.header.unknown_tagged_fields = {}
    payload = sample.header.encode(other) + sample.body.encode(version)
    return to_frame(payload), f"the header has version {other}"


def _other_number(sample: SampleFrame, version: int, source: random.Random) -> _Damaged:
    """Return a frame whose request header contains a version or API key that is in no release."""
    header: Any = sample.header
    if type(header).entry.name != HEADER_NAMES[MessageType.REQUEST]:
        return _lie(sample, version, source)
    number = source.choice([-1, INT16_MAX])
    what = source.choice(["version", "api key"])
    if what == "version":
        header.request_api_version = number
    else:
        header.request_api_key = number
    payload = header.encode(sample.header_version) + sample.body.encode(version)
    return to_frame(payload), f"the header names {what} {number}"


_DAMAGES: Final[tuple[Callable[[SampleFrame, int, random.Random], _Damaged], ...]] = (
    _lie,
    _cut,
    _other_header,
    _other_number,
)
