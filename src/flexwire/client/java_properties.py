"""Java's properties files, read as Java reads them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from flexwire.errors import ClientConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

_WHITE: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
# A key ends at the first of these that has no backslash; a separator may stand among white space.
_KEY: Final = re.compile(r"((?:\\.|[^\\ \t\f=:])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


def parse_properties(text: str, source: str) -> dict[str, str]:
    r"""The properties of a file; of several with one name the last counts.

    Raises `ClientConfigError` for a broken ``\u``, which Java refuses too, or half a character.

    >>> parse_properties("a = b\\\n  c\n# no\nd\\ e:\\u00e9\n", "x.properties")
    {'a': 'bc', 'd e': 'é'}
    """
    found = {}
    for number, line in _logical_lines(text):
        match = _KEY.fullmatch(line)
        key, value = match.groups() if match else (line, "")
        try:
            found[_plain(key)] = _plain(value)
        except ValueError:
            raise ClientConfigError(
                f"{source}:{number}: expected \\u and four hex digits, of whole characters"
            ) from None
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not comments, each with those that continue it and its number."""
    held, first = "", 0
    natural_lines = _LINE_END.split(text)
    if natural_lines[-1] == "":
        natural_lines.pop()
    is_continued = False
    for number, natural in enumerate(natural_lines, 1):
        line = natural.lstrip(_WHITE)
        if not held:
            # A line of a backslash alone is continued, and is as if it were not there.
            if not line or line[0] in "#!":
                is_continued = False
                continue
            first = number
        held += line
        slashes = len(line) - len(line.rstrip("\\"))
        is_continued = slashes % 2 == 1
        if is_continued:
            held = held[:-1]
        else:
            yield first, held
            held = ""
    if is_continued:
        yield first, held


def _plain(text: str) -> str:
    def unescape(found: re.Match[str]) -> str:
        escaped = found[1]
        if escaped[0] != "u":
            return _ESCAPES.get(escaped, escaped)
        if len(escaped) == 1:
            raise ValueError(escaped)
        return chr(int(escaped[1:], 16))

    plain = _ESCAPED.sub(unescape, text)
    # Java's characters beyond the basic plane are pairs; half of one is not a character.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
