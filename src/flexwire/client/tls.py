"""TLS on our side of a connection: whom we trust, and as whom we come or are come to."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final, Literal

from flexwire.errors import TlsError

if TYPE_CHECKING:
    from pathlib import Path

ClientAuth = Literal["none", "requested", "required"]
CLIENT_AUTH: Final[dict[ClientAuth, ssl.VerifyMode]] = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
"""Whether clients come with a certificate, in the words of Kafka's ``ssl.client.auth``."""


def client_context(
    ca: Path | None = None,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    password: str | None = None,
    check_names: bool = True,
) -> ssl.SSLContext:
    """What a client connects with: TLS 1.2 or newer, and always a broker whose certificate holds.

    ``ca`` is a PEM file of authorities, by default the system's. ``certificate`` is a PEM file of a
    client's own chain, with its key in it or in ``key``, which ``password`` opens: mutual TLS.
    Without ``check_names`` the certificate may be for any host, as with Kafka's empty
    ``ssl.endpoint.identification.algorithm``.

    Raises `TlsError` for a file that cannot be read or is not what it should be.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = check_names
    if ca is None:
        context.load_default_certs()
    else:
        trust(context, ca)
    if certificate is not None:
        present(context, certificate, key, password)
    return context


def server_context(
    certificate: Path,
    key: Path | None = None,
    *,
    password: str | None = None,
    ca: Path | None = None,
    client_auth: ClientAuth = "none",
) -> ssl.SSLContext:
    """What a listener of ours answers with: TLS 1.2 or newer, and a PEM file of its chain.

    The key is in that file or in ``key``, and ``password`` opens it. ``ca`` is a PEM file of the
    authorities of clients' certificates, by default the system's.

    Raises `TlsError` for a file that cannot be read or is not what it should be.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    present(context, certificate, key, password)
    context.verify_mode = CLIENT_AUTH[client_auth]
    if client_auth == "none":
        return context
    if ca is None:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    else:
        trust(context, ca)
    return context


def trust(context: ssl.SSLContext, ca: Path) -> None:
    """Take the authorities of a PEM file for good."""
    try:
        context.load_verify_locations(cafile=ca)
    except OSError as error:  # an ssl.SSLError too
        raise TlsError(f"{ca}: expected authorities in PEM: {error}") from error


def present(
    context: ssl.SSLContext, certificate: Path, key: Path | None, password: str | None
) -> None:
    """Come with the chain of a PEM file, and its key."""
    # Without a password OpenSSL would ask the terminal for one.
    secret = "" if password is None else password
    try:
        context.load_cert_chain(certificate, key, secret)
    except (OSError, ValueError) as error:
        at = certificate if key is None else f"{certificate}, {key}"
        raise TlsError(f"{at}: expected a certificate and its key in PEM: {error}") from error
