"""Kafka's own client properties file: how its clients reach a cluster, and as whom."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from flexwire.client.broker import DEFAULT_CLIENT_ID
from flexwire.client.connection import DEFAULT_SECONDS
from flexwire.client.jaas import parse_jaas
from flexwire.client.java_properties import parse_properties
from flexwire.client.security import MECHANISMS, Login, Security
from flexwire.client.stores import Store, tls_context
from flexwire.errors import ClientConfigError, short
from flexwire.wire.limits import INT32_MAX

# By name whether a protocol has TLS, and whether SASL.
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
    # The address is the command's own.
    "bootstrap.servers",
    "bootstrap.controllers",
}


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """What a properties file says of a connection; ``ignored`` are the keys of other things."""

    security: Security
    client_id: str = DEFAULT_CLIENT_ID
    timeout: float = DEFAULT_SECONDS
    ignored: tuple[str, ...] = ()


def read_client_config(path: str | Path) -> ClientConfig:
    """Read a properties file, as Kafka's tools take with ``--command-config``.

    Raises `ClientConfigError`, or `TlsError` for certificates; no error shows a secret.
    """
    try:
        # As Java reads them: other characters stand there as \u.
        text = Path(path).read_text(encoding="latin-1")
    except (OSError, ValueError) as error:
        raise ClientConfigError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    given = parse_properties(text, str(path))
    try:
        return client_config(given)
    except ClientConfigError as error:
        raise ClientConfigError(f"{path}: {error}") from None


def client_config(given: dict[str, str]) -> ClientConfig:
    """What properties say of a connection; raises as `read_client_config` does."""
    if _PROVIDERS in given:
        raise ClientConfigError(f"{_PROVIDERS}: values that are kept elsewhere are not taken")
    found = _DEFAULTS | given
    protocol = found["security.protocol"].strip().upper()
    if protocol not in _PROTOCOLS:
        raise ClientConfigError(
            f"security.protocol: expected {', '.join(_PROTOCOLS)}, got {protocol!r}"
        )
    has_tls, has_sasl = _PROTOCOLS[protocol]
    context = None
    if has_tls:
        check_names = found["ssl.endpoint.identification.algorithm"].strip() != ""
        context = tls_context(_trust(found), _keys(found), check_names=check_names)
    return ClientConfig(
        Security(context, _login(found) if has_sasl else None),
        found["client.id"],
        _seconds(found),
        tuple(name for name in given if name not in _USED),
    )


def _login(found: dict[str, str]) -> Login:
    mechanism = found["sasl.mechanism"].strip()
    if mechanism not in MECHANISMS:
        raise ClientConfigError(
            f"sasl.mechanism: expected {', '.join(MECHANISMS)}, got {mechanism}"
        )
    if "sasl.jaas.config" not in found:
        raise ClientConfigError(f"sasl.jaas.config: missing, and {mechanism} needs it")
    return parse_jaas(found["sasl.jaas.config"], mechanism)


def _trust(found: dict[str, str]) -> Store | None:
    """The trust store; None where there is none, and the system's authorities count."""
    prefix = "ssl.truststore"
    inline = found.get(f"{prefix}.certificates", "")
    return _store(found, prefix, inline)


def _keys(found: dict[str, str]) -> Store | None:
    prefix = "ssl.keystore"
    parts = (found.get(f"{prefix}.key", ""), found.get(f"{prefix}.certificate.chain", ""))
    if any(parts) and not all(parts):
        raise ClientConfigError(f"{prefix}.key and {prefix}.certificate.chain go together")
    return _store(found, prefix, "\n".join(parts).strip())


def _store(found: dict[str, str], prefix: str, inline: str) -> Store | None:
    location = found.get(f"{prefix}.location") or None
    if inline and location:
        raise ClientConfigError(f"{prefix}.location: PEM stands in the properties as well")
    if not inline and location is None:
        return None
    kind = found[f"{prefix}.type"].strip()
    if inline and kind.upper() != "PEM":
        raise ClientConfigError(f"{prefix}.type: expected PEM, got {kind}")
    return Store(
        prefix,
        kind,
        location,
        found.get(f"{prefix}.password"),
        found.get("ssl.key.password"),
        inline,
    )


def _seconds(found: dict[str, str]) -> float:
    text = found.get("request.timeout.ms")
    if text is None:
        return DEFAULT_SECONDS
    text = text.strip()
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(INT32_MAX))
    if not (is_number and 0 < int(text) <= INT32_MAX):
        raise ClientConfigError(f"request.timeout.ms: expected milliseconds, got {short(text)}")
    return int(text) / 1000
