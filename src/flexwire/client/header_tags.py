"""Header tags as people write them: ``10042=text``, ``10042=hex:00ff``."""

from __future__ import annotations

import re
from typing import Final

from flexwire.arguments import refuse

_HEX: Final = "hex:"
_FORM: Final = "NUMBER=TEXT or NUMBER=hex:DIGITS"
_NUMBER: Final = re.compile(r"[0-9]{1,10}")


def split_header_tag(text: str) -> tuple[int, str | bytes]:
    r"""The tag and its value: bytes where they are in hexadecimal; `ArgumentError` for others.

    >>> split_header_tag("10042=from here"), split_header_tag("10043=hex:00 ff")
    ((10042, 'from here'), (10043, b'\x00\xff'))
    """
    number, separator, value = text.partition("=")
    if not separator or not _NUMBER.fullmatch(number):
        raise refuse("header tag", _FORM, text)
    try:
        # A lone surrogate, which a command line may hold, has no UTF-8.
        value.encode()
        parsed = bytes.fromhex(value.removeprefix(_HEX)) if value.startswith(_HEX) else value
    except ValueError:
        raise refuse("header tag", _FORM, text) from None
    return int(number), parsed
