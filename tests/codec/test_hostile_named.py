"""Inputs that crash or mislead other Python libraries, named after the library, are refused.

The results of the other libraries were measured on kio 0.6.5, kafka-python 3.0.12 and aiokafka
0.14.0. Each input is read by the methods, and by the function for many messages, which runs the
kernels.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import message
from flexwire.errors import DecodeError
from tests.codec.made_up import everything, made
from tests.traced import traced

if TYPE_CHECKING:
    from collections.abc import Callable

# Inputs with the same kind of lie, which were not tried on other libraries.
UNMEASURED = "not measured"
# The memory that an error and its traceback take, for any input.
_ERROR_BYTES = 60_000
# The memory that an object takes for a structure of one byte.
_BYTES_PER_BYTE = 500

_TAGGED_INT = {"name": "Level", "type": "int32", "versions": "2+", "taggedVersions": "2+", "tag": 0}
NUMBERS = made([{"name": "Numbers", "type": "[]int32", "versions": "0+"}])
STRUCTS = made(
    [
        {
            "name": "Topics",
            "type": "[]Topic",
            "versions": "0+",
            "fields": [{"name": "Ids", "type": "[]uuid", "versions": "0+"}],
        }
    ]
)
RACK = made([{"name": "Rack", "type": "string", "versions": "0+"}])
RECORDS = made([{"name": "Records", "type": "records", "versions": "0+", "nullableVersions": "0+"}])
FLAG = made([{"name": "Flag", "type": "bool", "versions": "0+"}])
TAGS = made([_TAGGED_INT])
NOTHING = made([])


@dataclass(frozen=True)
class Hostile:
    """Bytes, the result of another library, and our error."""

    peer: str
    message: Any
    version: int
    data: bytes
    path: str
    offset: int
    reason: str


HOSTILE = {
    "five bytes that abort the process": Hostile(
        *("kio: SIGABRT", STRUCTS, 2, bytes.fromhex("ffffffff0f")),
        *("topics", 0, "length 4294967294 is above 2147483647"),
    ),
    "five bytes that ask for 2**31-2 structures": Hostile(
        *(UNMEASURED, STRUCTS, 2, bytes.fromhex("ffffffff07")),
        *("topics", 0, "2147483646 elements declared but 0 bytes remain"),
    ),
    "an inflexible array of 2**31-1 structures": Hostile(
        *("kio: SIGABRT", STRUCTS, 0, bytes.fromhex("7fffffff")),
        *("topics", 0, "2147483647 elements declared but 0 bytes remain"),
    ),
    "an array of 2**31-1 inside an array": Hostile(
        *(UNMEASURED, STRUCTS, 0, bytes.fromhex("00000001 7fffffff")),
        *("topics[0].ids", 4, "2147483647 elements declared but 0 bytes remain"),
    ),
    "a count that the bytes could hold were its elements of one byte": Hostile(
        *("kio: room for the declared count", STRUCTS, 2, b"\xe9\x07" + b"\x01" * 1000),
        *("topics[200].ids", 1002, "cut off"),
    ),
    "an array length of -2, inflexible": Hostile(
        *("kafka-python, aiokafka: an empty array", NUMBERS, 0, bytes.fromhex("fffffffe")),
        *("numbers", 0, "expected a length of -1 (null) or more, got -2"),
    ),
    "a last string that is cut off": Hostile(
        *("kafka-python: a shorter string", RACK, 0, b"\x00\x09rack-"),
        *("rack", 2, "declared length 9 but 5 bytes remain"),
    ),
    "a last compact string that is cut off": Hostile(
        *("kafka-python: a shorter string", RACK, 2, b"\x0arack-"),
        *("rack", 1, "declared length 9 but 5 bytes remain"),
    ),
    "records that are cut off": Hostile(
        *("kafka-python: 40 of 100 bytes", RECORDS, 0, b"\x00\x00\x00\x64" + b"r" * 40),
        *("records", 4, "declared length 100 but 40 bytes remain"),
    ),
    "bytes behind the message": Hostile(
        *("kio, kafka-python, aiokafka: ignored", RACK, 0, b"\x00\x01r" + b"\x00\x01s"),
        *("", 3, "the message ends here but 3 bytes follow"),
    ),
    "bytes behind a message of no bytes": Hostile(
        *("kio, kafka-python, aiokafka: ignored", NOTHING, 0, b"\x00"),
        *("", 0, "the message ends here but 1 bytes follow"),
    ),
    "a varint that never ends": Hostile(
        *("kafka-python: an integer without bound", NUMBERS, 2, b"\xff" * 100_000),
        *("numbers", 0, "varint of more than 5 bytes"),
    ),
    "a varint of zeros that never ends": Hostile(
        *("kafka-python: an integer without bound", TAGS, 2, b"\x80" * 100_000),
        *("_taggedFields", 0, "varint of more than 5 bytes"),
    ),
    "a varint above 32 bits": Hostile(
        *("kio, kafka-python, aiokafka: taken", NUMBERS, 2, bytes.fromhex("ffffffff1f00")),
        *("numbers", 0, "does not fit in 32 bits"),
    ),
    "a varint of one byte too many": Hostile(
        *("kio, kafka-python: taken", RACK, 2, b"\x82\x00r\x00"),
        *("rack", 0, "overlong varint"),
    ),
    "a tag given twice": Hostile(
        *("kio, kafka-python: the last wins", TAGS, 2, b"\x02" + b"\x00\x04\x00\x00\x00\x01" * 2),
        *("_taggedFields", 7, "tag 0 follows tag 0; tags must ascend"),
    ),
    "tags in descending order": Hostile(
        *("kio, kafka-python: taken", TAGS, 2, b"\x02\x09\x00\x00\x04\x00\x00\x00\x01"),
        *("_taggedFields", 3, "tag 0 follows tag 9; tags must ascend"),
    ),
    "a known tag of the wrong size": Hostile(
        *("kio, kafka-python: not looked at", TAGS, 2, b"\x01\x00\x05\x00\x00\x00\x01\x00"),
        *("level", 7, "tag 0 declares 5 bytes but its value is shorter"),
    ),
    "a tag whose value is cut off": Hostile(
        *("aiokafka: a shorter value", TAGS, 2, b"\x01\x09\x64abc"),
        *("_taggedFields", 2, "tag 9 declares 100 bytes but 3 remain"),
    ),
    "more tagged fields than bytes": Hostile(
        *(UNMEASURED, TAGS, 2, b"\xff\xff\xff\xff\x0f"),
        *("_taggedFields", 0, "4294967295 tagged fields declared but 0 bytes remain"),
    ),
    "a tag above 2**31-1": Hostile(
        *(UNMEASURED, TAGS, 2, b"\x01\xff\xff\xff\xff\x0f\x00"),
        *("_taggedFields", 1, "tag 4294967295 is above 2147483647"),
    ),
    "a boolean of 7": Hostile(
        *("kafka-python, aiokafka: written back as 1", FLAG, 0, b"\x07"),
        *("flag", 0, "7"),
    ),
    "a string that is not UTF-8": Hostile(
        *(UNMEASURED, RACK, 2, b"\x04a\xffb\x00"),
        *("rack", 2, "not UTF-8"),
    ),
}


def readers(kind: Any, version: int) -> dict[str, Callable[[bytes], Any]]:
    """Return both ways to read, each used once so that its code is compiled."""
    found = {"decode": lambda data: kind.decode(data, version), "kernels": kind.decoder(version)}
    for read in found.values():
        read(kind().encode(version))
    return found


def peak(read: Callable[[bytes], Any], data: bytes) -> tuple[DecodeError | None, int]:
    """Return the error that reading raises, if any, and the peak memory use."""
    refused = None
    with traced() as memory:
        try:
            read(data)
        except DecodeError as error:
            refused = error
    return refused, memory.most


@pytest.mark.parametrize("way", ["decode", "kernels"])
@pytest.mark.parametrize("name", HOSTILE)
def test_what_peers_fall_for_is_refused_at_its_place(name: str, way: str) -> None:
    case = HOSTILE[name]
    read = readers(case.message, case.version)[way]
    # The first error imports and caches things that later errors use.
    peak(read, case.data)
    error, used = peak(read, case.data)
    assert error is not None, f"read, as by {case.peer}"
    assert case.reason in error.reason
    assert (error.path, error.offset) == (case.path, case.offset)
    assert (error.message, error.version) == ("MadeUp", case.version)
    assert used <= _ERROR_BYTES + _BYTES_PER_BYTE * len(case.data)


@pytest.mark.parametrize("way", ["decode", "kernels"])
def test_an_unknown_tag_is_kept_where_kio_raises_a_key_error_and_others_drop_it(way: str) -> None:
    raw = b"\x02\x00\x04\x00\x00\x00\x07\x09\x03abc"
    read = readers(TAGS, 2)[way]
    assert read(raw) == TAGS(level=7, unknown_tagged_fields={9: b"abc"})
    assert read(raw).encode(2) == raw
    assert TAGS.encoder(2)(read(raw)) == raw


@pytest.mark.parametrize("way", ["decode", "kernels"])
def test_an_unknown_tag_in_a_structure_of_a_tagged_field_where_kafka_python_asserts(
    way: str,
) -> None:
    kind: Any = everything()
    value = kind(current=kind.Current(leader_id=3, unknown_tagged_fields={7: b"deep"}))
    raw = value.encode(1)
    found = readers(kind, 1)[way](raw)
    assert found.current.unknown_tagged_fields == {7: b"deep"}
    assert found.encode(1) == raw


@pytest.mark.parametrize("way", ["decode", "kernels"])
def test_bundled_messages_are_refused_as_made_up_ones(way: str) -> None:
    kind: Any = message("MetadataResponse")
    with pytest.raises(DecodeError) as caught:
        readers(kind, 12)[way](bytes.fromhex("00000000 ffffffff0f"))
    assert str(caught.value) == (
        "MetadataResponse v12 at brokers, byte 4: length 4294967294 is above 2147483647"
    )


SMALLEST = made(
    [
        {
            "name": "Topics",
            "type": "[]Topic",
            "versions": "0+",
            "fields": [_TAGGED_INT | {"versions": "0+"}],
        }
    ],
    valid="2-3",
)
LARGE = {
    "structures of one byte": (SMALLEST, b"\x91\x4e" + b"\x00" * 10_000 + b"\x00"),
    "the same, the last cut off": (SMALLEST, b"\x91\x4e" + b"\x00" * 9_999 + b"\x7f"),
    "flags": (
        made([{"name": "Flags", "type": "[]bool", "versions": "0+"}]),
        b"\x91\x4e" + b"\x01" * 10_000 + b"\x00",
    ),
    "empty strings": (
        made([{"name": "Names", "type": "[]string", "versions": "0+"}]),
        b"\x91\x4e" + b"\x01" * 10_000 + b"\x00",
    ),
    "empty arrays, the last a lie": (STRUCTS, b"\x91\x4e" + b"\x01\x00" * 9_999 + b"\x7f\x00"),
    "unknown tags": (
        TAGS,
        b"\xff\x7f"
        + b"".join(
            _tag + b"\x00"
            for _tag in [
                bytes([0x80 | at & 0x7F, 0x80 | at >> 7 & 0x7F, 1 + (at >> 14)])
                for at in range(16_383)
            ]
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["decode", "kernels"])
@pytest.mark.parametrize("name", LARGE)
def test_memory_stays_in_proportion_to_what_was_sent(name: str, way: str) -> None:
    kind, data = LARGE[name]
    error, used = peak(readers(kind, 2)[way], data)
    assert (error is not None) == ("last" in name), error
    assert used <= _ERROR_BYTES + _BYTES_PER_BYTE * len(data)


def calls(read: Callable[[bytes], Any], data: bytes) -> int:
    """Count the calls to Python and C functions while reading, as a measure without a clock."""
    count = 0

    def tick(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(tick)
    try:
        read(data)
    except DecodeError:
        pass
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("sound", [True, False])
@pytest.mark.parametrize("kind", [SMALLEST, STRUCTS], ids=["one byte", "two bytes"])
def test_work_stays_in_proportion_to_what_was_sent(kind: Any, sound: bool) -> None:  # noqa: FBT001 - a case
    read = readers(kind, 2)["decode"]
    small, large = (
        kind(topics=[kind.Topic()] * count).encode(2)[: None if sound else -2]
        for count in (300, 3000)
    )
    # Everything that is compiled only once is compiled now.
    calls(read, small)
    assert calls(read, large) <= 11 * calls(read, small)
