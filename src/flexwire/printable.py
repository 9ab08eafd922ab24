r"""The only module that decides which text may be sent to a terminal, a log or a page.

Names, paths, client ids and addresses come from files and from the network. A terminal interprets
some characters instead of showing them: control characters (C0, DEL, C1) move its cursor, format
characters reverse the line or are invisible, and separators break the line. These characters are
replaced by JSON escapes, so that JSON remains valid and keeps its meaning.
"""

from __future__ import annotations

import re
import unicodedata

# Control characters, format characters (which can reverse their line), surrogates (which do not
# exist in UTF-8), unassigned and private characters, and separators that break a line.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})
_NOT_PLAIN = re.compile(r"[^\x20-\x7e]")
_BASIC_PLANE = 0xFFFF


def printable(text: str, keep: str = "") -> str:
    r"""Return the text with an escape for every unprintable character, except those in ``keep``.

    >>> print(printable("a\x1b[2J\u202eb"))
    a\u001b[2J\u202eb
    """
    if text.isprintable():
        return text
    return _NOT_PLAIN.sub(lambda match: match[0] if match[0] in keep else _shown(match[0]), text)


def _shown(char: str) -> str:
    return escaped(char) if unicodedata.category(char) in _HIDDEN else char


def escaped(char: str) -> str:
    r"""Return the JSON escape of a character.

    >>> print(escaped("é"), escaped("\U0001f600"))
    \u00e9 \ud83d\ude00
    """
    code = ord(char)
    if code <= _BASIC_PLANE:
        return f"\\u{code:04x}"
    code -= _BASIC_PLANE + 1
    # JSON can escape characters beyond the basic plane only as surrogate pairs.
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
