"""Convert the trust stores and key stores of Java clients to the PEM files that TLS needs.

PEM is read from a file or from the properties themselves; PKCS #12 requires ``cryptography``.
Java's own JKS format is not accepted: the error explains how to convert a store to PKCS #12 with
``keytool``.
"""

from __future__ import annotations

import re
import secrets
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flexwire.client.tls import client_context
from flexwire.errors import ClientConfigError, TlsError
from flexwire.extras import needed_by

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

_JKS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_PEM: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+?)-----(.+?)-----END \1-----", re.DOTALL)
_CERTIFICATE: Final = "CERTIFICATE"
_WIDTH: Final = 64


@dataclass(frozen=True, slots=True)
class Store:
    """One store in the properties: its type, its location and its password.

    ``prefix`` is the prefix that the names of the store's properties share. ``inline`` is PEM text
    that the properties contain.
    """

    prefix: str
    type: str
    location: str | None = None
    password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    inline: str = field(default="", repr=False)


def tls_context(trust: Store | None, keys: Store | None, *, check_names: bool) -> ssl.SSLContext:
    """Return the TLS context. Raises `ClientConfigError`, or `TlsError` for an invalid store."""
    # OpenSSL reads keys only from files. The temporary files are removed immediately, together with
    # their directory.
    with tempfile.TemporaryDirectory(prefix="flexwire-") as directory:
        ca = certificate = password = None
        if trust is not None:
            ca = Path(directory, "authorities.pem")
            _write(ca, _authorities(trust))
        if keys is not None:
            text, password = _chain(keys)
            certificate = Path(directory, "chain.pem")
            certificate.touch(mode=0o600)
            _write(certificate, text)
        try:
            return client_context(
                ca, certificate=certificate, password=password, check_names=check_names
            )
        except TlsError as error:
            reason = str(error)
            for path, store in ((ca, trust), (certificate, keys)):
                if path is not None and store is not None:
                    reason = reason.replace(str(path), store.location or store.prefix)
            raise TlsError(reason) from None


def _write(path: Path, pem: str) -> None:
    # A file that is not ASCII cannot be PEM. OpenSSL then reports the error.
    path.write_text(pem, encoding="ascii", errors="replace")


def _authorities(store: Store) -> str:
    content = _content(store)
    if isinstance(content, str):
        return "".join(block for kind, block in _pem_blocks(content) if kind == _CERTIFICATE)
    _, certificates = _open_pkcs12(store, content)
    return "".join(map(_certificate_pem, certificates))


def _chain(store: Store) -> tuple[str, str | None]:
    """Return a key and its chain as PEM, and the password of the key."""
    content = _content(store)
    if isinstance(content, str):
        return "".join(block for _, block in _pem_blocks(content)), store.key_password
    key, certificates = _open_pkcs12(store, content)
    if key is None:
        raise ClientConfigError(
            f"{store.location}: expected a private key in {store.prefix}.location, found none"
        )
    password = secrets.token_urlsafe(24)
    return _key_pem(key, password) + "".join(map(_certificate_pem, certificates)), password


def _content(store: Store) -> str | bytes:
    """Return PEM as a string, or PKCS #12 as bytes."""
    if store.location is None:
        return store.inline
    try:
        raw = Path(store.location).read_bytes()
    except (OSError, ValueError) as error:
        raise ClientConfigError(f"{store.prefix}.location: {error}") from None
    kind = store.type.upper()
    if kind == "PEM":
        return raw.decode("ascii", "replace")
    if raw.startswith(_JKS):
        raise ClientConfigError(
            f"{store.location} is a JKS store, which is not supported; convert the store to "
            f"PKCS #12: keytool -importkeystore -srckeystore {store.location} -destkeystore "
            "NEW.p12 -deststoretype PKCS12"
        )
    # Java also accepts PKCS #12 if the type is JKS, which is the default.
    if kind not in {"JKS", "PKCS12"}:
        raise ClientConfigError(f"{store.prefix}.type: expected PEM or PKCS12, got {store.type}")
    if raw.lstrip().startswith(b"-----BEGIN"):
        raise ClientConfigError(f"{store.location} is PEM; set {store.prefix}.type=PEM")
    return raw


def _pem_blocks(text: str) -> list[tuple[str, str]]:
    """Return PEM blocks as OpenSSL reads them, even if line breaks became spaces in properties."""
    blocks = []
    for kind, body in _PEM.findall(text):
        if ":" in body:
            # OpenSSL itself wrote old keys with such headers.
            blocks.append((kind, f"-----BEGIN {kind}-----{body}-----END {kind}-----\n"))
            continue
        packed = "".join(body.split())
        lines = [packed[at : at + _WIDTH] for at in range(0, len(packed), _WIDTH)]
        wrapped = "\n".join((f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""))
        blocks.append((kind, wrapped))
    return blocks


def _open_pkcs12(store: Store, content: bytes) -> tuple[Any, list[Any]]:
    """Return the key and all certificates. The key's own certificate comes first."""
    load = _pkcs12_loader(store)
    password = None if store.password is None else store.password.encode()
    try:
        key, own, others = load(content, password)
    except ValueError:
        raise ClientConfigError(
            f"{store.location}: not a PKCS #12 file, or {store.prefix}.password is wrong"
        ) from None
    return key, ([] if own is None else [own]) + others


def _pkcs12_loader(store: Store) -> Callable[[bytes, bytes | None], tuple[Any, Any, list[Any]]]:
    with needed_by(f"{store.location}: PKCS #12", "tls"):
        from cryptography.hazmat.primitives.serialization.pkcs12 import (  # noqa: PLC0415 - cryptography is optional
            load_key_and_certificates,
        )
    return load_key_and_certificates


def _certificate_pem(certificate: Any) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415 - cryptography is optional

    text: str = certificate.public_bytes(Encoding.PEM).decode()
    return text


def _key_pem(key: Any, password: str) -> str:
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - cryptography is optional
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
    )

    sealed = BestAvailableEncryption(password.encode())
    text: str = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, sealed).decode()
    return text
