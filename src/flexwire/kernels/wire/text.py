"""Text: whether bytes are UTF-8."""

from __future__ import annotations

from flexwire.kernels.machine import load_uint8, load_word, part

# The highest bit of each of eight bytes: none is set in ASCII.
HIGH_BITS = -0x7F7F7F7F7F7F7F80


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
