"""Read the properties files of Kafka clients: a cluster's addresses, and the login."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flexwire.client.broker import DEFAULT_CLIENT_ID
from flexwire.client.connection import DEFAULT_SECONDS
from flexwire.client.security import MECHANISMS, PLAIN, Login, Security
from flexwire.client.stores import Store, tls_context
from flexwire.errors import ClientConfigError, short
from flexwire.wire.limits import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator


_WHITE: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
# A key ends at the first of these characters that is not preceded by a backslash. Whitespace may
# surround a separator.
_KEY: Final = re.compile(r"((?:\\.|[^\\ \t\f=:])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPED_CHARACTER: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


def parse_properties(text: str, source: str) -> dict[str, str]:
    r"""Return the properties in a file. If a name occurs more than once, the last value is used.

    Raises `ClientConfigError` for an invalid ``\u`` escape, which Java also refuses, or for half a
    surrogate pair.

    >>> parse_properties("a = b\\\n  c\n# no\nd\\ e:\\u00e9\n", "x.properties")
    {'a': 'bc', 'd e': 'é'}
    """
    properties = {}
    for number, line in _logical_lines(text):
        match = _KEY.fullmatch(line)
        key, value = match.groups() if match else (line, "")
        try:
            properties[_plain(key)] = _plain(value)
        except ValueError:
            raise ClientConfigError(
                f"{source}:{number}: expected \\u and four hex digits, and both halves of a "
                "surrogate pair"
            ) from None
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line that is not a comment, joined with its continuation lines, and its number."""
    held, first = "", 0
    natural_lines = _LINE_END.split(text)
    if natural_lines[-1] == "":
        natural_lines.pop()
    is_continued = False
    for number, natural in enumerate(natural_lines, 1):
        line = natural.lstrip(_WHITE)
        if not held:
            # A line that contains only a backslash is continued on the next line, and counts as
            # missing.
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
    def unescape(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped[0] != "u":
            return _ESCAPES.get(escaped, escaped)
        if len(escaped) == 1:
            raise ValueError(escaped)
        return chr(int(escaped[1:], 16))

    plain = _ESCAPED_CHARACTER.sub(unescape, text)
    # In Java, characters beyond the basic plane are surrogate pairs; half of a pair is not a
    # character.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


# For each login module, by the last part of its class name: true for PLAIN's, false for others.
# Kafka has renamed the package of these classes once.
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
    r"""Return the login that the value of ``sasl.jaas.config`` describes.

    Raises `ClientConfigError`. The error message contains no part of the value, because the value
    contains a password.

    >>> parse_jaas('org.apache.kafka.common.security.plain.PlainLoginModule required '
    ...            'username="alice" password="a\\"b";', "PLAIN").password
    'a"b'
    """
    tokens = _tokens(text)
    if not tokens or tokens[-1] != ("sign", ";"):
        raise _refuse("expected ';' at the end")
    if tokens.count(("sign", ";")) > 1:
        raise _refuse("expected one login module, got several")
    words = tokens[:-1]
    if len(words) < 2 or words[1][1].upper() not in _FLAGS:  # noqa: PLR2004 - these words are the class and the flag
        raise _refuse("expected a login module class and 'required'")
    module = words[0][1].rpartition(".")[2]
    if module not in _MODULES:
        raise _refuse(f"expected PlainLoginModule or ScramLoginModule, got {module}")
    if _MODULES[module] != (mechanism == PLAIN):
        raise _refuse(f"{module} does not support sasl.mechanism {mechanism}")
    options = _options(words[2:])
    for name in ("username", "password"):
        if name not in options:
            raise _refuse(f"{module} needs a {name}")
    is_token = options.get("tokenauth", "").lower() == "true"
    return Login(mechanism, options["username"], options["password"], is_token=is_token)


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _refuse(f"unexpected text at character {position}")
        if match.lastgroup is not None:
            value = match[match.lastgroup]
            if match.lastgroup in {"double", "single"}:
                value = _ESCAPED.sub(_unescape, value)
            kind = "sign" if match.lastgroup == "sign" else "word"
            tokens.append((kind, value))
        position = match.end()
    return tokens


def _unescape(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped[0] in "01234567":
        return chr(int(escaped, 8))
    return _CONTROLS.get(escaped, escaped)


def _options(tokens: list[tuple[str, str]]) -> dict[str, str]:
    options = {}
    while tokens:
        match tokens[:3]:
            case [("word", name), ("sign", "="), ("word", value)]:
                options[name] = value
            case _:
                raise _refuse('expected options as name="value"')
        tokens = tokens[3:]
    return options


def _refuse(why: str) -> ClientConfigError:
    return ClientConfigError(f"sasl.jaas.config: {why}")


# For each protocol name: whether it uses TLS, and whether it uses SASL.
_PROTOCOLS: Final = {
    "PLAINTEXT": (False, False),
    "SSL": (True, False),
    "SASL_PLAINTEXT": (False, True),
    "SASL_SSL": (True, True),
}
_DEFAULTS: Final = {
    "security.protocol": "PLAINTEXT",
    "sasl.mechanism": "GSSAPI",
    "ssl.truststore.type": "JKS",
    "ssl.keystore.type": "JKS",
    "ssl.endpoint.identification.algorithm": "https",
    "client.id": DEFAULT_CLIENT_ID,
}
_PROVIDERS: Final = "config.providers"
_USED: Final = frozenset(_DEFAULTS) | {
    "sasl.jaas.config",
    "request.timeout.ms",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.key.password",
    # The command has its own argument for the address.
    "bootstrap.servers",
    "bootstrap.controllers",
}


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """The connection settings in a properties file. ``ignored`` are the keys that were not used."""

    security: Security
    client_id: str = DEFAULT_CLIENT_ID
    timeout: float = DEFAULT_SECONDS
    ignored: tuple[str, ...] = ()


def read_client_config(path: str | Path) -> ClientConfig:
    """Read a properties file in the format of the ``--command-config`` option of Kafka's tools.

    Raises `ClientConfigError`, or `TlsError` for certificates. The error messages contain no
    secrets.
    """
    try:
        # The file is encoded as Java expects: other characters are written as \u.
        text = Path(path).read_text(encoding="latin-1")
    except (OSError, ValueError) as error:
        raise ClientConfigError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    properties = parse_properties(text, str(path))
    try:
        return client_config(properties)
    except ClientConfigError as error:
        raise ClientConfigError(f"{path}: {error}") from None


def client_config(properties: dict[str, str]) -> ClientConfig:
    """Return the connection settings in properties. Raises the errors of `read_client_config`."""
    if _PROVIDERS in properties:
        raise ClientConfigError(f"{_PROVIDERS}: configuration providers are not supported")
    settings = _DEFAULTS | properties
    protocol = settings["security.protocol"].strip().upper()
    if protocol not in _PROTOCOLS:
        raise ClientConfigError(
            f"security.protocol: expected {', '.join(_PROTOCOLS)}, got {protocol!r}"
        )
    has_tls, has_sasl = _PROTOCOLS[protocol]
    context = None
    if has_tls:
        check_names = settings["ssl.endpoint.identification.algorithm"].strip() != ""
        context = tls_context(_trust(settings), _keys(settings), check_names=check_names)
    return ClientConfig(
        Security(context, _login(settings) if has_sasl else None),
        settings["client.id"],
        _seconds(settings),
        tuple(name for name in properties if name not in _USED),
    )


def _login(settings: dict[str, str]) -> Login:
    mechanism = settings["sasl.mechanism"].strip()
    if mechanism not in MECHANISMS:
        raise ClientConfigError(
            f"sasl.mechanism: expected {', '.join(MECHANISMS)}, got {mechanism}"
        )
    if "sasl.jaas.config" not in settings:
        raise ClientConfigError(f"sasl.jaas.config: {mechanism} requires this setting")
    return parse_jaas(settings["sasl.jaas.config"], mechanism)


def _trust(settings: dict[str, str]) -> Store | None:
    """Return the trust store, or None if there is none and the system's authorities are used."""
    prefix = "ssl.truststore"
    inline = settings.get(f"{prefix}.certificates", "")
    return _store(settings, prefix, inline)


def _keys(settings: dict[str, str]) -> Store | None:
    prefix = "ssl.keystore"
    parts = (settings.get(f"{prefix}.key", ""), settings.get(f"{prefix}.certificate.chain", ""))
    if any(parts) and not all(parts):
        raise ClientConfigError(f"set {prefix}.key and {prefix}.certificate.chain together")
    return _store(settings, prefix, "\n".join(parts).strip())


def _store(settings: dict[str, str], prefix: str, inline: str) -> Store | None:
    location = settings.get(f"{prefix}.location") or None
    if inline and location:
        raise ClientConfigError(
            f"{prefix}.location: the properties also contain PEM text; remove the location or the "
            "PEM text"
        )
    if not inline and location is None:
        return None
    kind = settings[f"{prefix}.type"].strip()
    if inline and kind.upper() != "PEM":
        raise ClientConfigError(f"{prefix}.type: expected PEM, got {kind}")
    return Store(
        prefix,
        kind,
        location,
        settings.get(f"{prefix}.password"),
        settings.get("ssl.key.password"),
        inline,
    )


def _seconds(settings: dict[str, str]) -> float:
    text = settings.get("request.timeout.ms")
    if text is None:
        return DEFAULT_SECONDS
    text = text.strip()
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(INT32_MAX))
    if not (is_number and 0 < int(text) <= INT32_MAX):
        raise ClientConfigError(f"request.timeout.ms: expected milliseconds, got {short(text)}")
    return int(text) / 1000
