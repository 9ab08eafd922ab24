"""Make bytes that are almost a message: a valid message that is damaged in one place.

A decoder must expect each of these kinds of damage from an unknown sender: truncation, a wrong
length, a null where none is allowed, a varint that is longer than necessary, text that is not
UTF-8, repeated tagged fields, a flipped bit, and a message of another version. Some of the results
are still valid, for example a null in a nullable field. `HostileBytes.error` is the result of
flexwire's strict decoder.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.codec.explanation import explain
from flexwire.codec.samples import random_message
from flexwire.errors import DecodeError
from flexwire.wire.limits import INT16_MAX, INT32_MAX
from flexwire.wire.varint import write_unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.codec.explanation import Annotation
    from flexwire.codec.message import Message

    Damaged = tuple[bytes, str]
    Damage = Callable[[bytes, list[Annotation], random.Random], Iterator[Damaged]]


class HostileBytes(NamedTuple):
    """Damaged bytes of a message.

    ``damage`` describes the damage and where it is. ``error`` is the error of the strict decoder,
    or None if it accepts the bytes.
    """

    data: bytes
    damage: str
    error: str | None


def hostile_bytes(message: type[Message], version: int, seed: int) -> HostileBytes:
    """Return the bytes of a random message with damage in one place.

    The same seed always results in the same bytes. Raises `UnknownMessageError` for a version that
    is in no release.

    >>> from flexwire.codec import message
    >>> hostile_bytes(message("HeartbeatRequest"), 0, 3).error
    'the message ends here but 1 bytes follow'
    """
    source = random.Random(seed)  # noqa: S311 - test data needs no secret randomness
    seed_of_message = source.getrandbits(32)
    valid = _encoded(message, version, seed_of_message)
    places = [place for place in explain(message, valid, version).annotations if place.length]
    source.shuffle(places)
    damages = list(_damages(message, version).values())
    source.shuffle(damages)
    candidates = (
        damaged
        for damage in damages
        for damaged in damage(valid, places, source)
        if damaged[0] != valid
    )
    # A message without fields has no place to damage.
    damaged = next(candidates, (valid + b"\0", "a byte follows the message"))
    return _judged(message, version, damaged)


def hostile_kinds(message: type[Message], version: int, seed: int) -> dict[str, HostileBytes]:
    """Return the bytes of a random message with each possible kind of damage.

    The keys are ``cut``, ``appended``, ``length``, ``varint``, ``value``, ``tags``, ``flipped`` and
    ``version``, in that order. The same seed always results in the same bytes. Raises the errors of
    `hostile_bytes`.

    >>> from flexwire.codec import message
    >>> list(hostile_kinds(message("HeartbeatRequest"), 0, 3))
    ['cut', 'appended', 'length', 'value', 'flipped', 'version']
    """
    source = random.Random(seed)  # noqa: S311 - test data needs no secret randomness
    valid = _encoded(message, version, source.getrandbits(32))
    places = [place for place in explain(message, valid, version).annotations if place.length]
    source.shuffle(places)
    found = {}
    for kind, damage in _damages(message, version).items():
        damaged = (one for one in damage(valid, places, source) if one[0] != valid)
        first = next(damaged, None)
        if first is not None:
            found[kind] = _judged(message, version, first)
    return found


def _judged(message: type[Message], version: int, damaged: Damaged) -> HostileBytes:
    try:
        message.decode(damaged[0], version)
    except DecodeError as error:
        return HostileBytes(*damaged, error.reason)
    return HostileBytes(*damaged, None)


def _encoded(message: type[Message], version: int, seed: int) -> bytes:
    return random_message(message, version, seed, batches=True, nan=True).encode(version)


_COMPACT: Final = "COMPACT"
_SIZED: Final = ("STRING", "BYTES", "RECORDS", "ARRAY")
OVERLONG_VARINT: Final = b"\x80\x80\x80\x80\x80\x01"
"""These are six bytes, although a varint of 32 bits has at most five."""


def _cut(data: bytes, annotations: list[Annotation], source: random.Random) -> Iterator[Damaged]:
    for annotation in annotations:
        end = annotation.offset + source.randrange(annotation.length)
        yield data[:end], f"cut off within {annotation.path}"


def _append(data: bytes, annotations: list[Annotation], source: random.Random) -> Iterator[Damaged]:
    if annotations:
        yield data + source.randbytes(1), "a byte follows the message"


def _length(data: bytes, annotations: list[Annotation], source: random.Random) -> Iterator[Damaged]:
    """Yield bytes in which a length has been changed."""
    for annotation in annotations:
        width = prefix_width(annotation)
        if width is None:
            continue
        start = annotation.offset
        if annotation.type.startswith(_COMPACT):
            width = _varint_width(data, start)
            number = source.choice([0, INT32_MAX, 2**32 - 1, len(data) - start + 2])
            written = write_unsigned_varint(number)
            words = "null" if not number else f"{number - 1}"
        else:
            most = INT16_MAX if width == 2 else INT32_MAX  # noqa: PLR2004 - 2 is the size of an int16
            number = source.choice([-1, -2, most, min(most, len(data) - start)])
            written = number.to_bytes(width, "big", signed=True)
            words = "null" if number == -1 else f"{number}"
        yield (
            data[:start] + written + data[start + width :],
            f"{annotation.path} has length {words}",
        )


def _varint(data: bytes, annotations: list[Annotation], source: random.Random) -> Iterator[Damaged]:
    """Yield bytes in which a varint is longer than necessary."""
    for annotation in annotations:
        is_varint = annotation.type in _VARINTS or annotation.type.startswith(_COMPACT)
        if not is_varint:
            continue
        start = annotation.offset
        stop = start + _varint_width(data, start)
        if source.random() < 0.5:  # noqa: PLR2004 - the number is a probability
            yield (
                data[:start] + OVERLONG_VARINT + data[stop:],
                f"a varint of 6 bytes at {annotation.path}",
            )
            continue
        last = bytes([data[stop - 1] | 0x80, 0])
        yield (
            data[: stop - 1] + last + data[stop:],
            f"a varint with a byte more than it needs at {annotation.path}",
        )


def _value(data: bytes, annotations: list[Annotation], source: random.Random) -> Iterator[Damaged]:
    """Yield bytes in which a value is invalid for its type."""
    for annotation in annotations:
        start, stop = annotation.offset, annotation.offset + annotation.length
        if annotation.type == "BOOLEAN":
            number = source.choice([2, 0xFF])
            yield data[:start] + bytes([number]) + data[stop:], f"{annotation.path} is {number}"
        elif annotation.type.endswith("STRING") and annotation.value:
            yield data[: stop - 1] + b"\xff" + data[stop:], f"{annotation.path} is not UTF-8"


def _tags(data: bytes, annotations: list[Annotation], source: random.Random) -> Iterator[Damaged]:
    """Yield bytes in which tagged fields are repeated, out of order, or without an end."""
    for annotation in annotations:
        if annotation.type != TAG_COUNT or annotation.value:
            continue
        section, words = source.choice(LENIENT_TAG_SECTIONS + UNREADABLE_TAG_SECTIONS)
        start = annotation.offset
        yield data[:start] + section + data[start + 1 :], f"{words} at {annotation.path}"


def _flip(data: bytes, annotations: list[Annotation], source: random.Random) -> Iterator[Damaged]:
    for annotation in annotations:
        at, bit = annotation.offset + source.randrange(annotation.length), source.randrange(8)
        flipped = bytes([data[at] ^ 1 << bit])
        yield data[:at] + flipped + data[at + 1 :], f"a bit is flipped in {annotation.path}"


def _version(
    message: type[Message],
    version: int,
    _data: bytes,
    _annotations: list[Annotation],
    source: random.Random,
) -> Iterator[Damaged]:
    """Yield messages in other versions."""
    versions = (versions for _, versions in message.definition.served.specs)
    others = sorted({number for valid in versions for number in valid} - {version})
    source.shuffle(others)
    for other in others:
        data = _encoded(message, other, source.getrandbits(32))
        yield data, f"the message is one of version {other}"


TAG_COUNT: Final = "tagged field count"
"""The type of the annotation for the first byte of a tag section."""
_VARINTS: Final = frozenset({TAG_COUNT, "tag", "tagged field size"})
_TAG: Final = write_unsigned_varint(20_000)
_HIGHER_TAG: Final = write_unsigned_varint(20_001)
UNREADABLE_TAG_SECTIONS: Final = (
    (b"\x01" + _TAG + write_unsigned_varint(INT32_MAX), "a tagged field that does not end"),
    (write_unsigned_varint(INT32_MAX), "more tagged fields than bytes"),
)
"""Tag sections that no reader accepts, each with a description."""

LENIENT_TAG_SECTIONS: Final = (
    (b"\x02" + _TAG + b"\0" + _TAG + b"\0", "the same tag twice"),
    (b"\x02" + _HIGHER_TAG + b"\0" + _TAG + b"\0", "tags out of order"),
)
"""Tag sections that Apache Kafka reads but a strict decoder refuses, each with a description."""
_DAMAGES: Final[dict[str, Damage]] = {
    "cut": _cut,
    "appended": _append,
    "length": _length,
    "varint": _varint,
    "value": _value,
    "tags": _tags,
    "flipped": _flip,
}


def _damages(message: type[Message], version: int) -> dict[str, Damage]:
    return {**_DAMAGES, "version": partial(_version, message, version)}


def prefix_width(annotation: Annotation) -> int | None:
    """Return the size in bytes of a length that is not a varint, or None if there is no length."""
    kind = annotation.type.removesuffix(" length")
    if not kind.endswith(_SIZED):
        return None
    return 2 if kind.endswith("STRING") else 4


def _varint_width(data: bytes, start: int) -> int:
    stop = start
    while data[stop] & 0x80:
        stop += 1
    return stop + 1 - start
