"""flexwire's side of TLS trusts the right servers, sends its certificate, and reports invalid
files."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, cast

import pytest

from flexwire.client.tls import client_context
from flexwire.errors import TlsError
from tests.net.broker import LOOPBACK
from tests.tls import Authority

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def serving_with(certificate: tuple[Path, Path], ca: Path | None = None) -> ssl.SSLContext:
    """Return a server's ssl context. With ``ca``, the server asks clients for a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    if ca is not None:
        context.load_verify_locations(ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def shaken(client: ssl.SSLContext, server: ssl.SSLContext, host: str = LOOPBACK) -> str:
    """Shake hands without a socket, and return the common name that the server saw, or "nobody"."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname=host)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    done = False
    while not done:
        done = True
        for side in (asking, answering):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                done = False
    found = answering.getpeercert() or {}
    subject = cast("tuple[tuple[tuple[str, str], ...], ...]", found.get("subject", ()))
    return dict(pair for one in subject for pair in one).get("commonName", "nobody")


def test_a_broker_of_an_authority_that_is_trusted_is_taken(authority: Authority) -> None:
    shown = serving_with(authority.certificate())
    assert shaken(client_context(authority.path), shown) == "nobody"


@pytest.mark.parametrize(
    ("what", "wording"),
    [
        ("unknown", "unable to get local issuer certificate|self-signed certificate"),
        ("expired", "certificate has expired"),
        ("name", "certificate is not valid for '127.0.0.1'"),
    ],
)
def test_a_broker_that_cannot_be_trusted_is_refused(
    what: str, wording: str, authority: Authority, tmp_path: Path
) -> None:
    hosts = ["elsewhere.example"] if what == "name" else [LOOPBACK]
    trusted = Authority(tmp_path, "others") if what == "unknown" else authority
    shown = authority.certificate(hosts, expired=what == "expired")
    with pytest.raises(ssl.SSLCertVerificationError, match=wording):
        shaken(client_context(trusted.path), serving_with(shown))


def test_without_names_a_certificate_is_good_for_any_host_and_still_checked(
    authority: Authority, tmp_path: Path
) -> None:
    shown = serving_with(authority.certificate(["elsewhere.example"]))
    others = Authority(tmp_path, "others")
    assert shaken(client_context(authority.path, check_names=False), shown) == "nobody"
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(client_context(others.path, check_names=False), shown)


def test_by_default_the_authorities_of_the_system_are_trusted(authority: Authority) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(client_context(), serving_with(authority.certificate()))


@pytest.mark.parametrize("password", [None, "Ω opens it"])
@pytest.mark.parametrize("files", [1, 2])
def test_a_client_comes_with_its_certificate(
    authority: Authority, tmp_path: Path, password: str | None, files: int
) -> None:
    certificate, key = authority.certificate([], name="alice", password=password)
    if files == 1:
        both = tmp_path / "both.pem"
        both.write_bytes(key.read_bytes() + certificate.read_bytes())
        certificate = both
    context = client_context(
        authority.path, certificate=certificate, key=key if files == 2 else None, password=password
    )
    assert shaken(context, serving_with(authority.certificate(), authority.path)) == "alice"


def test_nothing_older_than_tls_1_2_is_spoken(authority: Authority) -> None:
    assert client_context(authority.path).minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("content", [None, b"", b"not PEM"])
def test_authorities_that_cannot_be_read_are_said(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TlsError, match=r"ca\.pem: expected CA certificates in PEM format: "):
        client_context(path)


@pytest.mark.parametrize("password", [None, "wrong", ""])
def test_a_key_that_does_not_open_is_said_and_its_password_is_not(
    authority: Authority, password: str | None
) -> None:
    certificate, key = authority.certificate(password="right")  # noqa: S106 - of a test
    with pytest.raises(TlsError) as caught:
        client_context(authority.path, certificate=certificate, key=key, password=password)
    assert str(caught.value).startswith(f"{certificate}, {key}: expected a certificate and its key")
    assert "wrong" not in str(caught.value)


def test_a_key_of_another_certificate_is_said(authority: Authority) -> None:
    certificate, _ = authority.certificate()
    _, key = authority.certificate()
    with pytest.raises(TlsError, match=r"(?i)key values mismatch"):
        client_context(authority.path, certificate=certificate, key=key)
