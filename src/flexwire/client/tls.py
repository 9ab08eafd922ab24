"""TLS on flexwire's end of a connection, and the reasons why TLS could not be started."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Final, Literal

from flexwire.errors import TlsError
from flexwire.printable import printable

if TYPE_CHECKING:
    from pathlib import Path


ClientAuth = Literal["none", "requested", "required"]
CLIENT_AUTH: Final[dict[ClientAuth, ssl.VerifyMode]] = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
"""The Python mode that corresponds to each value of Kafka's ``ssl.client.auth``. The mode
determines whether clients must send a certificate.
"""


def client_context(
    ca: Path | None = None,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    password: str | None = None,
    check_names: bool = True,
) -> ssl.SSLContext:
    """Return a client's context: TLS 1.2 or newer, and the broker's certificate must be valid.

    ``ca`` is a PEM file of certificate authorities; the default is the system's authorities. For
    mutual TLS, ``certificate`` is a PEM file that contains the client's own chain. The key is in
    that file or in ``key``, encrypted with ``password``. Without ``check_names``, the certificate
    may be for any host, as if Kafka's ``ssl.endpoint.identification.algorithm`` were empty.

    Raises `TlsError` for a file that cannot be read or has the wrong content.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = check_names
    if ca is None:
        context.load_default_certs()
    else:
        trust_authorities(context, ca)
    if certificate is not None:
        present_certificate(context, certificate, key, password)
    return context


def server_context(
    certificate: Path,
    key: Path | None = None,
    *,
    password: str | None = None,
    ca: Path | None = None,
    client_auth: ClientAuth = "none",
) -> ssl.SSLContext:
    """Return a listener's context: TLS 1.2 or newer, with the chain in a PEM file.

    The key is in that file or in ``key``, encrypted with ``password``. ``ca`` is a PEM file of the
    authorities that sign client certificates; the default is the system's authorities.

    Raises `TlsError` for a file that cannot be read or has the wrong content.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    present_certificate(context, certificate, key, password)
    context.verify_mode = CLIENT_AUTH[client_auth]
    if client_auth == "none":
        return context
    if ca is None:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    else:
        trust_authorities(context, ca)
    return context


def trust_authorities(context: ssl.SSLContext, ca: Path) -> None:
    """Trust the certificate authorities in a PEM file."""
    try:
        context.load_verify_locations(cafile=ca)
    except OSError as error:  # This includes ssl.SSLError.
        raise TlsError(f"{ca}: expected CA certificates in PEM format: {error}") from error


def present_certificate(
    context: ssl.SSLContext, certificate: Path, key: Path | None, password: str | None
) -> None:
    """Present the chain in a PEM file, with its key, to the other end."""
    # Without a password, OpenSSL would prompt for one on the terminal.
    secret = "" if password is None else password
    try:
        context.load_cert_chain(certificate, key, secret)
    except (OSError, ValueError) as error:
        at = certificate if key is None else f"{certificate}, {key}"
        reason = f"expected a certificate and its key in PEM format: {error}"
        raise TlsError(f"{at}: {reason}") from error


HANDSHAKE_SECONDS: Final = 10.0
Outcome = Literal["not_tls", "handshakes_left", "handshakes_failed"]
"""The ways in which a client's handshake can fail, as counted by `TapStatistics`."""

_NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST"})
# A description of each OpenSSL reason, under OpenSSL's name for it. "The other side" is a client or
# a broker.
_WORDS: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the other side sent no certificate",
    "UNSUPPORTED_PROTOCOL": "the other side supports no TLS version later than 1.1",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the other side does not accept TLS 1.2 or later",
    "NO_SHARED_CIPHER": "the two sides have no cipher in common",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": (
        "the other side refused the handshake: the two sides have no cipher in common, or the "
        "other side requires a certificate"
    ),
    "TLSV1_ALERT_UNKNOWN_CA": "the other side does not trust the issuer of our certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": (
        "the other side does not accept our certificate, because of the certificate's issuer or "
        "its names"
    ),
    "SSLV3_ALERT_BAD_CERTIFICATE": (
        "the other side does not accept our certificate, or requires a certificate but none "
        "was given"
    ),
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "our certificate has expired",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": (
        "the other side requires a certificate, but none was given"
    ),
    "TLSV1_UNRECOGNIZED_NAME": "the other side has no certificate for the requested name",
}
_SAID_AFTER_END: Final = "APPLICATION_DATA_AFTER_CLOSE_NOTIFY"
_TRUST: Final = ("self-signed", "self signed", "unable to get")


def classify_handshake(error: BaseException) -> Outcome:
    """Return how a client's handshake failed."""
    if isinstance(error, ssl.SSLError):
        return "not_tls" if error.reason in _NOT_TLS else "handshakes_failed"
    # asyncio raises ConnectionAbortedError for a handshake that takes too long. This error is a
    # subclass of the error for a reset.
    if isinstance(error, ConnectionAbortedError | TimeoutError):
        return "handshakes_failed"
    return "handshakes_left"


def is_data_after_end(error: BaseException) -> bool:
    """Return whether the other end was still sending data after this end had closed TLS.

    The other end had not yet read the closing message: in TLS 1.3, each direction ends separately
    (RFC 8446, section 6.1).
    """
    return isinstance(error, ssl.SSLError) and error.reason == _SAID_AFTER_END


def explain_failure(error: BaseException) -> str:
    """Return the reason for a failure, for the log."""
    if isinstance(error, ssl.SSLError):
        return printable(_why_tls(error))
    if isinstance(error, ConnectionAbortedError | TimeoutError):
        return f"the TLS handshake took longer than {HANDSHAKE_SECONDS:g} seconds"
    if isinstance(error, ConnectionError):
        return (
            "the other side closed the connection during the TLS handshake: it refused our "
            "certificate without saying so, or it does not speak TLS"
        )
    return printable(str(error) or type(error).__name__)


def _why_tls(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message.rstrip(".")
        if any(word in reason for word in _TRUST):
            return f"the other side's certificate has an issuer that is not trusted here ({reason})"
        return f"the other side's certificate is not valid: {reason}"
    if error.reason in _NOT_TLS:
        return "the other side does not speak TLS"
    return _WORDS.get(error.reason or "", str(error))
