"""The security of a tap's connections: its certificates, and the principals of its clients.

A throwaway CA needs the package cryptography, which the extra ``tls`` installs. Nothing else in
this module needs it.
"""

from __future__ import annotations

import os
import socket
import tempfile
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from flexwire.client.notation import HostPort, is_address, is_unspecified, parse_listener
from flexwire.client.tls import client_context, server_context
from flexwire.errors import TapError, TlsError
from flexwire.storage.local import create_private_file

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable

    from flexwire.client.tls import ClientAuth


@dataclass(frozen=True, slots=True)
class ListenTls:
    """A listener's certificate: a PEM chain, with the key in the same or in a separate file.

    With ``client_auth``, clients must present certificates from the authorities in ``ca``.
    """

    certificate: Path
    key: Path | None = None
    password: str | None = field(default=None, repr=False)
    ca: Path | None = None
    client_auth: ClientAuth = "none"


@dataclass(frozen=True, slots=True)
class UpstreamTls:
    """The authorities that the tap trusts to certify brokers, and its own certificate, if any.

    A broker's certificate must be valid for the name that the broker advertises. For the first
    address, the certificate must be valid for ``name`` if the tap connects to another address (such
    as ``127.0.0.1``).
    """

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    password: str | None = field(default=None, repr=False)
    name: str | None = None
    check_names: bool = True


@dataclass(frozen=True, slots=True)
class TapSecurity:
    """Both sides of a tap. None means a side without TLS.

    ``with_credentials`` specifies whether the capture contains credentials. None means that the
    capture contains credentials only without TLS.
    """

    listen: ListenTls | None = None
    upstream: UpstreamTls | None = None
    as_one_principal: bool = False
    with_credentials: bool | None = None

    @property
    def withholds(self) -> bool:
        """True if credentials are kept out of the capture because TLS hid them."""
        if self.with_credentials is None:
            return self.listen is not None or self.upstream is not None
        return not self.with_credentials

    @property
    def lays_credentials_open(self) -> bool:
        """True if the bytes of clients with TLS go to brokers without TLS."""
        return self.listen is not None and self.upstream is None

    def check(self) -> None:
        """Raise `TapError` if clients would lose their principals without the user's consent."""
        if self.as_one_principal:
            return
        if self.upstream is not None and self.upstream.certificate is not None:
            raise TapError(
                "with the tap's own certificate, brokers that identify clients by certificate "
                "would see all clients as one principal, with that principal's ACLs and quotas; "
                "use --as-one-principal to allow this"
            )
        if self.listen is not None and self.listen.client_auth != "none":
            raise TapError(
                "client certificates end at the tap, so brokers would see all clients as one "
                "principal, with that principal's ACLs and quotas; use --as-one-principal to "
                "allow this"
            )


PLAIN: Final = TapSecurity()
"""The settings without TLS on either side."""


class TapContexts:
    """The settings of `TapSecurity`, loaded from files. Raises `TlsError` for an invalid file."""

    def __init__(self, security: TapSecurity) -> None:
        self.listen: ssl.SSLContext | None = None
        self.upstream: ssl.SSLContext | None = None
        self._names: WeakKeyDictionary[object, str] = WeakKeyDictionary()
        if (own := security.listen) is not None:
            self.listen = server_context(
                own.certificate,
                own.key,
                password=own.password,
                ca=own.ca,
                client_auth=own.client_auth,
            )
            self.listen.sni_callback = self._named
        if (theirs := security.upstream) is not None:
            self.upstream = client_context(
                theirs.ca,
                certificate=theirs.certificate,
                key=theirs.key,
                password=theirs.password,
                check_names=theirs.check_names,
            )

    def name_asked_for(self, connection: object) -> str | None:
        """Return the host name that a client requested (SNI).

        The client reaches the tap under this name.
        """
        return None if connection is None else self._names.get(connection)

    def _named(self, connection: object, name: str | None, _context: ssl.SSLContext) -> None:
        if name:
            self._names[connection] = name


def resolve_security(
    listen: str | HostPort, upstream: str | HostPort, security: TapSecurity
) -> tuple[HostPort, HostPort, TapSecurity]:
    """Return the addresses of both sides, and the TLS settings that they and ``security`` require.

    Raises `TapError` if the settings contradict each other.
    """
    if isinstance(listen, str):
        address, is_tls = parse_listener(listen)
        if is_tls and security.listen is None:
            raise TapError(
                f"{listen}: TLS needs a certificate; use --listen-certificate, or "
                "--throwaway-ca for a test"
            )
        if security.listen is not None and not is_tls:
            raise TapError(f"{listen}: a certificate requires ssl:// before the address")
        listen = address
    if isinstance(upstream, str):
        address, is_tls = parse_listener(upstream)
        if is_tls and security.upstream is None:
            security = replace(security, upstream=UpstreamTls())
        if security.upstream is not None and not is_tls:
            raise TapError(f"{upstream}: the TLS options require ssl:// before the address")
        upstream = address
    return listen, upstream, security


_LIFETIME: Final = timedelta(days=7)
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_NAME: Final = "flexwire throwaway"


class ThrowawayCa(NamedTuple):
    """A throwaway authority: its certificate for clients, and the tap's own certificate and key."""

    ca: Path
    certificate: Path
    key: Path


def listener_names(host: str) -> tuple[str, ...]:
    """Return the names under which clients may reach a tap that listens at a host."""
    if is_unspecified(host):
        machine = dict.fromkeys((socket.gethostname(), socket.getfqdn()))
        return (*machine, *_LOOPBACK)
    if host == "localhost" or (is_address(host) and ip_address(host).is_loopback):
        return tuple(dict.fromkeys((host, *_LOOPBACK)))
    return (host,)


def make_throwaway_ca(directory: Path, hosts: Iterable[str]) -> ThrowawayCa:
    """Create ``ca.pem``, ``tap.pem`` and ``tap.key`` in a directory, valid for a week.

    The authority's own key is not stored. Files of an earlier run are reused if they are valid for
    these hosts, so that clients need no new files. Only the owner of the files can read them.
    Either all three files are created or none. No file is overwritten, and no link is followed.
    Raises `TlsError`, and `MissingExtraError` without the package cryptography.
    """
    from flexwire.tap.authority import Authority, holds_for  # noqa: PLC0415 - cryptography may be missing

    hosts = tuple(hosts)
    files = ThrowawayCa(*(Path(directory) / name for name in ("ca.pem", "tap.pem", "tap.key")))
    try:
        if files.certificate.exists():
            if not holds_for(files.certificate.read_bytes(), hosts):
                raise TlsError(
                    f"{files.certificate}: the certificate has expired, or is not for "
                    f"{', '.join(hosts)}; delete the directory, and the clients' copies of ca.pem"
                )
            return files
        files.ca.parent.mkdir(parents=True, exist_ok=True)
        authority = Authority(_NAME, _LIFETIME)
        chain, key = authority.certificate("flexwire tap", hosts)
        _write_all({files.key: key, files.ca: authority.pem, files.certificate: chain})
    except OSError as error:
        # Until all files are written, they have names that no other process knows.
        named, why = error.filename2 or directory, error.strerror or error
        raise TlsError(f"{named}: no throwaway CA: {why}") from error
    except ValueError as error:
        raise TlsError(f"{directory}: no throwaway CA: {error}") from error
    return files


def _write_all(contents: dict[Path, bytes]) -> None:
    """Write all new files or none.

    Raises `FileExistsError` if a file or link with one of the names exists.
    """
    written: list[Path] = []
    directory = next(iter(contents)).parent
    with tempfile.TemporaryDirectory(prefix=".making-", dir=directory) as drafts:
        try:
            for path, content in contents.items():
                draft = Path(drafts, path.name)
                with closing(create_private_file(draft)) as file:
                    file.write(content)
                # Unlike a rename, this replaces no other file and follows no link.
                os.link(draft, path)
                written.append(path)
        except BaseException:
            for path in written:
                path.unlink(missing_ok=True)
            raise
