"""A temporary certificate authority that keeps its key only in memory.

This module needs the package cryptography, which the extra ``tls`` installs.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from flexwire.client.notation import is_address
from flexwire.extras import needed_by

with needed_by("a certificate", "tls"):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Iterable

# The clocks of other machines may be behind.
_EARLIER: Final = timedelta(hours=48)
# Python 3.13 requires an authority's certificate to specify the use of its key.
_SIGNS: Final = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


class Authority:
    """Sign certificates for brokers and clients. The certificates are valid for ``lifetime``.

    Keys use the curve P-256, and are written in PKCS #8, which Java can also read.
    """

    def __init__(self, name: str, lifetime: timedelta) -> None:
        self.name = name
        self.ends = datetime.now(UTC) + lifetime
        self._key = ec.generate_private_key(ec.SECP256R1())

    @cached_property
    def pem(self) -> bytes:
        """The certificate of the authority itself, for programs that must trust it."""
        key = self._key.public_key()
        built = (
            _builder(self.name, self.name, key, self.ends)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(_SIGNS, critical=True)
        )
        return _pem(built.sign(self._key, hashes.SHA256()))

    def certificate(
        self,
        name: str,
        hosts: Iterable[str],
        *,
        password: str | None = None,
        ends: datetime | None = None,
    ) -> tuple[bytes, bytes]:
        """Sign a certificate for ``hosts`` with a common name. Return the chain and the key in PEM.

        The key is encrypted if there is a ``password``.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        built = (
            _builder(name, self.name, key.public_key(), ends or self.ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(issuer, critical=False)
        )
        if names := [_alternative(host) for host in hosts]:
            built = built.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return _pem(built.sign(self._key, hashes.SHA256())) + self.pem, _private(key, password)


def holds_for(chain: bytes, hosts: Iterable[str]) -> bool:
    """Return whether the first certificate of a chain is valid now and for all these hosts."""
    certificate = x509.load_pem_x509_certificates(chain)[0]
    if not certificate.not_valid_before_utc <= datetime.now(UTC) < certificate.not_valid_after_utc:
        return False
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    return all(_alternative(host) in names for host in hosts)


def _builder(
    subject: str, issuer: str, key: ec.EllipticCurvePublicKey, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_named(subject))
        .issuer_name(_named(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(ends, datetime.now(UTC)) - _EARLIER)
        .not_valid_after(ends)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(host: str) -> x509.GeneralName:
    return x509.IPAddress(ip_address(host)) if is_address(host) else x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey, password: str | None) -> bytes:
    encryption: serialization.KeySerializationEncryption = (
        serialization.NoEncryption()
        if password is None
        else serialization.BestAvailableEncryption(password.encode())
    )
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
    )
