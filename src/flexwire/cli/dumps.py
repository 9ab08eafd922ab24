"""Read bytes in the forms that people copy: hex with any spacing, hex dumps, and source code.

The forms are those that Wireshark copies (a hex dump, a hex stream, an escaped string, a C array),
the output of ``hexdump``, ``hexdump -C``, ``xxd``, ``od -t x1`` and ``tcpdump -X``, and Python
bytes literals. If a form numbers its bytes, the numbers must be correct. A dump with a missing line
is therefore rejected, as are two concatenated dumps.
"""

from __future__ import annotations

import ast
import re
import string
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.errors import FlexwireError

if TYPE_CHECKING:
    from collections.abc import Callable

_NO_PREFIX: Final = re.compile(r"0x(?![0-9a-f]{2})", re.IGNORECASE)
_SEPARATORS: Final = (":", ",", ";", "0x", "0X")
# All repetitions are possessive, so that they never backtrack. With backtracking, forty bytes of
# hex before a typing error would take minutes.
_ESCAPED: Final = re.compile(r"(?:\s*+\"(?:\\x[0-9a-f]{2})*+\"\s*+\\?+)++\s*+", re.IGNORECASE)
_ESCAPE: Final = re.compile(r"\\x([0-9a-f]{2})", re.IGNORECASE)
_ARRAY: Final = re.compile(r"[^{}]*+\{([0-9a-fx,\s]*+)\}[^{}]*+", re.IGNORECASE | re.DOTALL)
# Only a single literal is parsed. For other expressions, Python's parser might recurse deeply.
_IN_LITERAL: Final = r"\\(?:x[0-9a-fA-F]{2}|[\\'\"abfnrtv\n]|[0-3]?[0-7]{1,2})"
_LITERAL: Final = re.compile(
    rf"\s*+b(?:'(?:[^'\\\r\n]|{_IN_LITERAL})*+'|\"(?:[^\"\\\r\n]|{_IN_LITERAL})*+\")\s*+"
)
_BLOCK_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
# A line: its offset, its bytes in groups of two or four digits, and perhaps the bytes as text.
_LINE: Final = re.compile(r"(?:0x)?([0-9a-f]{3,16})(:?)(?:\s++(.++))?", re.IGNORECASE | re.DOTALL)
# A group of bytes, and the spaces before it. Dumps have two spaces in the middle of a line, and
# before the text.
_GROUP: Final = re.compile(r"( *)((?:[0-9a-f]{2}){1,4})(?![^ ])", re.IGNORECASE)
# A text counts as hex with a typing error if its first characters contain enough digits for each
# error.
_NOT_HEX: Final = re.compile(r"[^0-9a-f\s:,;]", re.IGNORECASE)
_LEAST_DIGITS, _DIGITS_FOR_A_SLIP = 8, 8
MOST_LOOKED_AT: Final = 65_536
_GAP: Final = 2
_USUAL: Final = 16
_REPEATED: Final = "*"
MOST_BYTES: Final = 256 * 1024 * 1024
"""The largest size of a dump in bytes. A limit is needed because a short line may represent any
number of repeated lines.
"""


class DumpError(FlexwireError):
    """A text that looks like a hex dump but is not valid."""


class _DumpLine(NamedTuple):
    number: int
    offset: str
    has_colon: bool
    content: str


def read_dump(text: str) -> bytes | None:
    r"""Return the bytes in a text, or None if the text is not in a known form.

    Raises `DumpError` if the offsets of a dump show that lines are missing.

    >>> read_dump("00 12:00,03 0x07"), read_dump(r'"\x00\x12"'), read_dump(r"b'\x00k'")
    (b'\x00\x12\x00\x03\x07', b'\x00\x12', b'\x00k')
    >>> read_dump("00000000  00 12 00 03                  |....|\n00000004")
    b'\x00\x12\x00\x03'
    """
    for read in (_plain, _escaped, _array, _literal, _lines):
        data = read(text)
        # A line with only an offset is not an empty dump, but hex with a missing digit.
        if data or (data is not None and not text.strip()):
            return data
    return None


def slip_in_hex(text: str) -> str | None:
    r"""Return a description of the error in a text that is almost hex, or None for other texts.

    >>> slip_in_hex("0012 0003\n0000 0O07"), slip_in_hex("0012 0003 0")
    ("'O' in line 2, column 7, is not a hex digit", 'the text has an odd number of hex digits, 9')
    """
    begin = text[:MOST_LOOKED_AT]
    wrong = [match for match in _NOT_HEX.finditer(begin) if match[0].lower() != "x"]
    digits = sum(begin.count(digit) for digit in string.hexdigits)
    if digits < _LEAST_DIGITS or len(wrong) * _DIGITS_FOR_A_SLIP > digits:
        return None
    if wrong:
        at = wrong[0].start()
        line, column = begin.count("\n", 0, at) + 1, at - begin.rfind("\n", 0, at)
        return f"{wrong[0][0]!r} in line {line}, column {column}, is not a hex digit"
    is_whole = len(text) == len(begin)
    return (
        f"the text has an odd number of hex digits, {digits}" if is_whole and digits % 2 else None
    )


def _plain(text: str) -> bytes | None:
    if _looks_numbered(text):
        return None
    text = text.strip() if text.isascii() else " ".join(text.split())
    if text[:1] not in string.hexdigits or _NO_PREFIX.search(text):
        return None
    for separator in _SEPARATORS:
        text = text.replace(separator, " ")
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None


def _looks_numbered(text: str) -> bool:
    """Return whether the lines begin with offsets rather than with bytes."""
    lines = [line for line in text.splitlines() if line.strip()]
    first = [match for line in lines if (match := _LINE.fullmatch(line.strip()))]
    if len(first) < len(lines) or not first or not first[0][3] or int(first[0][1], 16):
        return False
    widths = {len(match[1]) for match in first}
    return len(widths) == 1 and (bool(first[0][2]) or "  " in lines[0].strip() or len(lines) > 1)


def _escaped(text: str) -> bytes | None:
    if not _ESCAPED.fullmatch(text):
        return None
    return bytes.fromhex("".join(_ESCAPE.findall(text)))


def _array(text: str) -> bytes | None:
    # No comment ends after the last "*/". The rest of the text is not searched, because every "/*"
    # in it would cause another search to the end of the text.
    last = text.rfind("*/") + len("*/") if "*/" in text else 0
    match = _ARRAY.fullmatch(_BLOCK_COMMENT.sub("", text[:last]) + text[last:])
    if match is None or "0x" not in match[1].lower():
        return None
    numbers = [number.strip() for number in match[1].split(",") if number.strip()]
    try:
        return bytes(int(number, 16) for number in numbers)
    except ValueError:
        return None


def _literal(text: str) -> bytes | None:
    if not _LITERAL.fullmatch(text):
        return None
    try:
        value = ast.literal_eval(text.strip())
    except (SyntaxError, ValueError):
        return None
    return value if isinstance(value, bytes) else None


def _lines(text: str) -> bytes | None:
    lines: list[_DumpLine | None] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if line.strip() == _REPEATED:
            lines.append(None)
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            return None
        lines.append(_DumpLine(number, match[1], bool(match[2]), match[3] or ""))
    if not lines or lines[0] is None:
        return None
    refusals = []
    for base, swap in _ways(lines[0]):
        try:
            return _joined(lines, base, _swapped if swap else bytes)
        except DumpError as error:
            refusals.append(error)
    if any(line is not None and line.content for line in lines) and len(lines) > 1:
        raise refusals[0]
    return None


def _ways(first: _DumpLine) -> list[tuple[int, bool]]:
    """Return the possible readings of a layout: the base of offsets, and whether words are swapped.

    ``hexdump`` and ``od`` print offsets of seven digits. The offsets of od are octal. If no colon
    follows the offset, words of two bytes come from hexdump or od, in little-endian byte order.
    """
    if first.has_colon or len(first.offset) != len("0000000"):
        return [(16, False)]
    words = re.match(r"[0-9a-fA-F]{4}(?:\s|$)", first.content)
    return [(16, True), (8, True)] if words else [(8, False), (16, False)]


def _joined(lines: list[_DumpLine | None], base: int, order: Callable[[bytes], bytes]) -> bytes:
    data, last, width = bytearray(), b"", 0
    for index, line in enumerate(lines):
        if line is None:
            continue
        at = _offset(line, base)
        if lines[index - 1] is None and last:
            if at > MOST_BYTES:
                raise DumpError(
                    f"line {line.number} begins at byte {at}, but a dump can contain at most "
                    f"{MOST_BYTES} bytes"
                )
            data += last * ((at - len(data)) // len(last))
        if at != len(data):
            raise DumpError(
                f"line {line.number} claims to begin at byte {at}, but {len(data)} bytes precede it"
            )
        following = lines[index + 1] if index + 1 < len(lines) else None
        most = width if following is None else _offset(following, base) - at
        # If the last word has only one byte, the dump pads the word. The padding is removed.
        last = order(_content(line, most))[: max(most, 0) or None]
        width = width or len(last)
        data += last
    return bytes(data)


def _offset(line: _DumpLine, base: int) -> int:
    try:
        return int(line.offset, base)
    except ValueError:
        raise DumpError(f"line {line.number}: expected an offset, got {line.offset}") from None


def _content(line: _DumpLine, most: int) -> bytes:
    """Return the bytes in a line: at most ``most``, or the usual number if ``most`` is 0."""
    data, at = b"", 0
    while match := _GROUP.match(line.content, at):
        if at and (len(match[1]) > _GAP or (len(data) >= (most or _USUAL) and len(match[1]) > 1)):
            break
        data, at = data + bytes.fromhex(match[2]), match.end()
    if line.content and not data:
        raise DumpError(f"line {line.number} contains no hex bytes")
    return data


def _swapped(data: bytes) -> bytes:
    """Return the bytes with the two bytes of each word swapped."""
    swapped = bytearray(data)
    swapped[0 : len(data) // 2 * 2 : 2], swapped[1 : len(data) // 2 * 2 : 2] = (
        data[1 : len(data) // 2 * 2 : 2],
        data[0 : len(data) // 2 * 2 : 2],
    )
    return bytes(swapped)
