"""Uuids as text, which is what columns hold: 22 letters of base64url."""

from __future__ import annotations

from flexwire.kernels.machine import load_int64, load_uint8, part, store_int8

_DASH, _UNDERSCORE = 45, 95
UUID_TEXT = 22
"""The letters of a uuid."""


@part
def _letter(digit: int) -> int:
    if digit < 26:
        return 65 + digit
    if digit < 52:
        return 71 + digit
    if digit < 62:
        return digit - 4
    return _DASH if digit == 62 else _UNDERSCORE


@part
def _digit(letter: int) -> int:
    """Give the value of a base64url letter; -1 for any other byte."""
    if 97 <= letter <= 122:
        return letter - 71
    if 65 <= letter <= 90:
        return letter - 65
    if 48 <= letter <= 57:
        return letter + 4
    return 62 if letter == _DASH else 63 if letter == _UNDERSCORE else -1


@part
def write_uuid_text(target: int, source: int) -> None:
    """Write the 22 letters of base64url for the 16 bytes at ``source``."""
    high, low = load_int64(source), load_int64(source + 8)
    for place in range(10):
        store_int8(target + place, _letter((high >> (58 - 6 * place)) & 0x3F))
        store_int8(target + 11 + place, _letter((low >> (56 - 6 * place)) & 0x3F))
    store_int8(target + 10, _letter(((high & 0xF) << 2) | ((low >> 62) & 3)))
    store_int8(target + 21, _letter((low & 3) << 4))


@part
def read_uuid_text(source: int) -> tuple[int, int, bool]:
    """Read 22 letters as two words, and whether they are just what `write_uuid_text` writes."""
    high = low = 0
    sound = True
    for place in range(10):
        first, second = _digit(load_uint8(source + place)), _digit(load_uint8(source + 11 + place))
        sound = sound and first >= 0 and second >= 0
        high = (high << 6) | first
        low = (low << 6) | second
    middle, last = _digit(load_uint8(source + 10)), _digit(load_uint8(source + 21))
    sound = sound and middle >= 0 and last >= 0 and last & 0xF == 0
    return (high << 4) | (middle >> 2), ((middle & 3) << 62) | (low << 2) | (last >> 4), sound
