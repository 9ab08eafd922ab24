"""Parts that the columnar kernels share: varints, UTF-8, uuids as text.

A reader gives what it read and the position behind it, and -1 for that position where it refuses
what the reference executor refuses.
"""

from __future__ import annotations

from flexwire.native.machine import load_int64, load_uint8, load_word, part, store_int8

# The highest bit of each of eight bytes: none is set in ASCII.
HIGH_BITS = -0x7F7F7F7F7F7F7F80
_DASH, _UNDERSCORE = 45, 95
UUID_TEXT = 22


@part
def read_varint(position: int, end: int) -> tuple[int, int]:
    """Read an unsigned varint of 32 bits: not cut off, not overlong."""
    value = 0
    for group in range(5):
        if position >= end:
            return 0, -1
        byte = load_uint8(position)
        position += 1
        value |= (byte & 0x7F) << (7 * group)
        if byte < 0x80:
            if (byte == 0 and group > 0) or value >> 32:
                return 0, -1
            return value, position
    return 0, -1


@part
def read_varlong(position: int, end: int) -> tuple[int, int]:
    """Read an unsigned varlong of 64 bits, as the word that has them."""
    value = 0
    for group in range(10):
        if position >= end:
            return 0, -1
        byte = load_uint8(position)
        position += 1
        if group == 9 and byte > 1:
            return 0, -1
        value |= (byte & 0x7F) << (7 * group)
        if byte < 0x80:
            if byte == 0 and group > 0:
                return 0, -1
            return value, position
    return 0, -1


@part
def gather(value: int) -> int:
    """Bring every second bit of a word together, from the lowest on: 32 bits."""
    value &= 0x5555555555555555
    value = (value | (value >> 1)) & 0x3333333333333333
    value = (value | (value >> 2)) & 0x0F0F0F0F0F0F0F0F
    value = (value | (value >> 4)) & 0x00FF00FF00FF00FF
    value = (value | (value >> 8)) & 0x0000FFFF0000FFFF
    return (value | (value >> 16)) & 0xFFFFFFFF


@part
def spread(value: int) -> int:
    """Put the 32 bits of a number into every second bit of a word."""
    value = (value | (value << 16)) & 0x0000FFFF0000FFFF
    value = (value | (value << 8)) & 0x00FF00FF00FF00FF
    value = (value | (value << 4)) & 0x0F0F0F0F0F0F0F0F
    value = (value | (value << 2)) & 0x3333333333333333
    return (value | (value << 1)) & 0x5555555555555555


@part
def is_utf8(position: int, count: int) -> bool:
    """Whether bytes are UTF-8 as Unicode defines it: shortest forms, no surrogates."""
    end = position + count
    while position < end:
        if end - position >= 8 and load_word(position) & HIGH_BITS == 0:
            position += 8
            continue
        lead = load_uint8(position)
        if lead < 0x80:
            position += 1
            continue
        if lead < 0xC2 or lead > 0xF4:
            return False
        more = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        if more >= end - position:
            return False
        second = load_uint8(position + 1)
        lowest = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
        highest = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        if second < lowest or second > highest:
            return False
        for following in range(2, more + 1):
            if load_uint8(position + following) & 0xC0 != 0x80:
                return False
        position += more + 1
    return True


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
