"""Certificates of a moment: an authority for tests, and what it signs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_HOUR = timedelta(hours=1)


class Authority:
    """Signs certificates for brokers and clients; those that trust `path` take them.

    All files are PEM, below ``directory``. Keys are P-256 in PKCS #8, which Java reads too.
    """

    def __init__(self, directory: Path, name: str = "tests") -> None:
        self.directory = directory
        self.name = name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._count = 0

    @cached_property
    def path(self) -> Path:
        """The authority's own certificate, which a client's or a broker's `ca` is."""
        return self._write("ca.pem", _pem(self._certificate))

    def certificate(
        self,
        hosts: Iterable[str] = LOOPBACK,
        *,
        name: str = "broker",
        password: str | None = None,
        expired: bool = False,
    ) -> tuple[Path, Path]:
        """Sign a certificate for ``hosts``, of brokers and clients alike: its chain and its key.

        ``name`` is its common name: a client's principal is ``User:CN=name``. The key is in PKCS
        #8, encrypted where there is a ``password``.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        ends = now - _HOUR if expired else now + 24 * _HOUR
        built = _builder(name, self.name, key, ends - 48 * _HOUR, ends)
        if names := [_alternative(host) for host in hosts]:
            built = built.add_extension(x509.SubjectAlternativeName(names), critical=False)
        built = built.add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True
        )
        built = built.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
            critical=False,
        )
        signed = built.sign(self._key, hashes.SHA256())
        self._count += 1
        stem = f"{name}-{self._count}"
        chain = self._write(f"{stem}.pem", _pem(signed) + _pem(self._certificate))
        return chain, self._write(f"{stem}.key", _key(key, password))

    @cached_property
    def _certificate(self) -> x509.Certificate:
        now = datetime.now(UTC)
        built = _builder(self.name, self.name, self._key, now - 48 * _HOUR, now + 48 * _HOUR)
        built = built.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        public = self._key.public_key()
        built = built.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(public), critical=False
        )
        built = built.add_extension(_SIGNS, critical=True)
        return built.sign(self._key, hashes.SHA256())

    def _write(self, name: str, data: bytes) -> Path:
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f"{self.name}-{name}"
        path.write_bytes(data)
        return path


# Python 3.13 takes no authority that does not say what its key is for.
_SIGNS = x509.KeyUsage(
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


def _builder(
    subject: str,
    issuer: str,
    key: ec.EllipticCurvePrivateKey,
    begins: datetime,
    ends: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_named(subject))
        .issuer_name(_named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key(key: ec.EllipticCurvePrivateKey, password: str | None) -> bytes:
    encryption: serialization.KeySerializationEncryption = (
        serialization.NoEncryption()
        if password is None
        else serialization.BestAvailableEncryption(password.encode())
    )
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
    )
