"""``sasl.jaas.config``: one login module of Kafka's, with its options."""

from __future__ import annotations

import re
from typing import Final

from flexwire.client.security import PLAIN, Login
from flexwire.errors import ClientConfigError

# By the last part of a module's class name, whether it is for PLAIN. Its package was renamed once.
_MODULES: Final = {"PlainLoginModule": True, "ScramLoginModule": False}
_FLAGS: Final = frozenset({"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"})
_TOKEN: Final = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
    | "(?P<double>(?:\\.|[^"\\\n])*)" | '(?P<single>(?:\\.|[^'\\\n])*)'
    | (?P<sign>[=;]) | (?P<word>[\w.$-]+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED: Final = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_CONTROLS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def parse_jaas(text: str, mechanism: str) -> Login:
    r"""The login in the value of ``sasl.jaas.config``.

    Raises `ClientConfigError`, which shows nothing of the value: it has a password.

    >>> parse_jaas('org.apache.kafka.common.security.plain.PlainLoginModule required '
    ...            'username="alice" password="a\\"b";', "PLAIN").password
    'a"b'
    """
    tokens = _tokens(text)
    if not tokens or tokens[-1] != ("sign", ";"):
        raise _refuse("it does not end with ';'")
    if tokens.count(("sign", ";")) > 1:
        raise _refuse("expected one login module, got several")
    words = tokens[:-1]
    if len(words) < 2 or words[1][1].upper() not in _FLAGS:  # noqa: PLR2004 - class and flag
        raise _refuse("expected the class of a login module and 'required'")
    module = words[0][1].rpartition(".")[2]
    if module not in _MODULES:
        raise _refuse(f"expected PlainLoginModule or ScramLoginModule, got {module}")
    if _MODULES[module] != (mechanism == PLAIN):
        raise _refuse(f"{module} is not for the sasl.mechanism {mechanism}")
    options = _options(words[2:])
    for name in ("username", "password"):
        if name not in options:
            raise _refuse(f"{module} needs a {name}")
    is_token = options.get("tokenauth", "").lower() == "true"
    return Login(mechanism, options["username"], options["password"], is_token=is_token)


def _tokens(text: str) -> list[tuple[str, str]]:
    found, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _refuse(f"it cannot be read at character {position}")
        if match.lastgroup is not None:
            value = match[match.lastgroup]
            if match.lastgroup in {"double", "single"}:
                value = _ESCAPED.sub(_unescape, value)
            kind = "sign" if match.lastgroup == "sign" else "word"
            found.append((kind, value))
        position = match.end()
    return found


def _unescape(found: re.Match[str]) -> str:
    escaped = found[1]
    if escaped[0] in "01234567":
        return chr(int(escaped, 8))
    return _CONTROLS.get(escaped, escaped)


def _options(tokens: list[tuple[str, str]]) -> dict[str, str]:
    found = {}
    while tokens:
        match tokens[:3]:
            case [("word", name), ("sign", "="), ("word", value)]:
                found[name] = value
            case _:
                raise _refuse('expected options as name="value"')
        tokens = tokens[3:]
    return found


def _refuse(why: str) -> ClientConfigError:
    return ClientConfigError(f"sasl.jaas.config: {why}")
