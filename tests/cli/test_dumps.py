"""Bytes are read correctly in the forms in which tools print them and editors copy them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from flexwire.cli.dumps import DumpError, read_dump, slip_in_hex
from tests.each import each
from tests.traced import traced

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLE = bytes.fromhex("0000002b0003000c000000070004746573740061622063 64ff".replace(" ", ""))
ZEROS = bytes(40) + b"deadbeef |ab cd|x"


def _text(data: bytes) -> str:
    return "".join(chr(one) if 32 <= one < 127 else "." for one in data)


def _rows(data: bytes) -> list[tuple[int, bytes]]:
    return [(at, data[at : at + 16]) for at in range(0, len(data), 16)]


def _words(row: bytes) -> str:
    return " ".join(row[at : at + 2].hex() for at in range(0, len(row), 2))


def _wireshark(data: bytes) -> str:
    return "\n".join(f"{at:04x}   {row.hex(' '):47}   {_text(row)}" for at, row in _rows(data))


def _wireshark_in_halves(data: bytes) -> str:
    return "\n".join(
        f"{at:04x}  {row[:8].hex(' ') + '  ' + row[8:].hex(' '):48}   {_text(row)}"
        for at, row in _rows(data)
    )


def _hexdump_canonical(data: bytes) -> str:
    lines = [
        f"{at:08x}  {row[:8].hex(' '):23}  {row[8:].hex(' '):23}  |{_text(row)}|"
        for at, row in _rows(data)
    ]
    return "\n".join([*lines, f"{len(data):08x}"])


def _xxd(data: bytes) -> str:
    return "\n".join(f"{at:08x}: {_words(row):39}  {_text(row)}" for at, row in _rows(data))


def _tcpdump(data: bytes) -> str:
    return "\n".join(f"\t0x{at:04x}:  {_words(row):39}  {_text(row)}" for at, row in _rows(data))


def _od(data: bytes) -> str:
    lines = [f"{at:07o} {row.hex(' ')}" for at, row in _rows(data)]
    return "\n".join([*lines, f"{len(data):07o}"])


def _c_array(data: bytes) -> str:
    listed = ", ".join(f"0x{one:02x}" for one in data)
    return f"unsigned char bytes[] = {{\n  {listed} /* a */\n}};\nunsigned int n = {len(data)};\n"


LAYOUTS: list[Callable[[bytes], str]] = [
    bytes.hex,
    lambda data: data.hex(" "),
    lambda data: data.hex(":"),
    lambda data: ", ".join(f"0x{one:02x}" for one in data),
    lambda data: '"' + "".join(f"\\x{one:02x}" for one in data) + '"',
    repr,
    _wireshark,
    _wireshark_in_halves,
    _hexdump_canonical,
    _xxd,
    _tcpdump,
    _od,
    _c_array,
]


@each("layout", LAYOUTS)
def test_a_layout_is_read_to_its_bytes(layout: Callable[[bytes], str]) -> None:
    chance = random.Random(7)
    alphabets = [bytes(range(256)), b"abcdef0123456789 ", b"ab ", b"\xff"]
    for size in range(1, 70):
        for alphabet in alphabets:
            data = bytes(chance.choice(alphabet) for _ in range(size))
            assert read_dump(layout(data)) == data


# Output of hexdump, xxd and od on Debian 12.
PRINTED = {
    "hexdump": (
        ZEROS,
        (
            "0000000 0000 0000 0000 0000 0000 0000 0000 0000\n*\n"
            "0000020 0000 0000 0000 0000 6564 6461 6562 6665\n"
            "0000030 7c20 6261 6320 7c64 0078               \n0000039\n"
        ),
    ),
    "hexdump -C": (
        ZEROS,
        (
            "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n*\n"
            "00000020  00 00 00 00 00 00 00 00  64 65 61 64 62 65 65 66  |........deadbeef|\n"
            "00000030  20 7c 61 62 20 63 64 7c  78                       | |ab cd|x|\n00000039\n"
        ),
    ),
    "od -t x1": (
        ZEROS,
        (
            "0000000 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n*\n"
            "0000040 00 00 00 00 00 00 00 00 64 65 61 64 62 65 65 66\n"
            "0000060 20 7c 61 62 20 63 64 7c 78\n0000071\n"
        ),
    ),
    "hexdump of an odd length": (
        SAMPLE,
        (
            "0000000 0000 2b00 0300 0c00 0000 0700 0400 6574\n"
            "0000010 7473 6100 2062 6463 00ff               \n0000019\n"
        ),
    ),
    "xxd": (
        SAMPLE,
        (
            "00000000: 0000 002b 0003 000c 0000 0007 0004 7465  ...+..........te\n"
            "00000010: 7374 0061 6220 6364 ff                   st.ab cd.\n"
        ),
    ),
}


@pytest.mark.parametrize("tool", PRINTED)
def test_what_tools_print_is_read(tool: str) -> None:
    data, text = PRINTED[tool]
    assert read_dump(text) == data


def test_a_dump_that_lacks_a_line_is_refused() -> None:
    lines = _hexdump_canonical(bytes(range(64))).splitlines()
    with pytest.raises(
        DumpError, match="line 2 claims to begin at byte 32, but 16 bytes precede it"
    ):
        read_dump("\n".join(lines[:1] + lines[2:]))


@each("text", ["", "ab c", "topics", "0x", "{0x1g}", "b'", "hello 00 01", "{}", "0000: zz"])
def test_what_is_no_dump_gives_no_bytes(text: str) -> None:
    assert not read_dump(text)


@each(
    "text",
    [
        "00" * 60 + "zz",
        "0x00" * 60 + "g",
        '""  ' * 60 + "x",
        # With more than one step per character, this input would take hours.
        '""' + " " * 1_000_000 + "x",
        "0000" + " " * 1_000_000 + "\n0010 x",
        "/* " * 1_000_000 + "{0x00, z}",
        "b'" + "\\x00" * 1_000_000,
        "b'' + " + "-" * 1_000_000 + "''",
        "b''" + "(" * 100_000 + "''",
    ],
)
def test_what_is_nearly_a_dump_is_seen_to_be_none_at_once(text: str) -> None:
    try:
        assert read_dump(text) is None
    except DumpError as error:
        assert "line 2" in str(error)  # noqa: PT017 - an error or None: both are correct


@pytest.mark.parametrize("offset", ["20000010", "ffffffffffffffff"])
def test_lines_that_repeat_do_not_take_memory_without_end(offset: str) -> None:
    beyond = r"line 3 begins at byte \d+, but a dump can contain at most 268435456 bytes"
    with traced() as memory, pytest.raises(DumpError, match=beyond):
        read_dump(f"00000000  00 11\n*\n{offset}")
    assert memory.most < 1_000_000


def test_hex_takes_little_more_memory_than_its_text() -> None:
    text = "00 " * 1_000_000
    with traced() as memory:
        assert read_dump(text) == bytes(1_000_000)
    assert memory.most < 4 * len(text)


@pytest.mark.parametrize("text", ["0x0x12", "1 2", "12 0x", ":12", "0x1", "0 0x12"])
def test_a_slip_in_hex_is_no_hex(text: str) -> None:
    assert read_dump(text) is None


@each("chance", range(200))
def test_any_text_gives_bytes_or_none_or_our_error(chance: int) -> None:
    source = random.Random(chance)
    text = _hexdump_canonical(bytes(source.randrange(256) for _ in range(40)))
    damaged = list(text)
    for _ in range(source.randrange(1, 6)):
        damaged[source.randrange(len(damaged))] = source.choice("0 f\n*:g|\\x\"'{}")
    try:
        found = read_dump("".join(damaged))
    except DumpError:
        return
    assert found is None or isinstance(found, bytes)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0012 0003 0O07", "'O' in line 1, column 12, is not a hex digit"),
        ("0012 0003\n0000 0l07\n", "'l' in line 2, column 7, is not a hex digit"),
        ("0x00,0x12,0x0g,0x03,0x07", "'g' in line 1, column 14, is not a hex digit"),
        ("00 12 00 03 00\u201307", "'\u2013' in line 1, column 15, is not a hex digit"),
        ("001200030", "the text has an odd number of hex digits, 9"),
        ("00120003", None),
        ("001200z", None),
        ("hello, world: add a bad face", None),
        ("c29tZSB0ZXh0IGluIGJhc2U2NA==", None),
        ("", None),
    ],
)
def test_a_slip_in_hex_is_named(text: str, told: str | None) -> None:
    assert slip_in_hex(text) == told


def test_a_slip_is_looked_for_in_the_beginning_of_a_text_alone() -> None:
    assert slip_in_hex("00" * 5_000_000 + "z") is None
    assert slip_in_hex("0" * 9_000_001) is None
