"""How a tap listens and how it connects: with which certificates, and as whom clients then come."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from flexwire.client.notation import HostPort, parse_listener
from flexwire.client.tls import client_context, server_context
from flexwire.errors import TapError

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

    from flexwire.client.tls import ClientAuth


@dataclass(frozen=True, slots=True)
class ListenTls:
    """A listener's certificate: a PEM chain, with its key in it or apart.

    With ``client_auth`` clients are asked for certificates of the authorities in ``ca``.
    """

    certificate: Path
    key: Path | None = None
    password: str | None = field(default=None, repr=False)
    ca: Path | None = None
    client_auth: ClientAuth = "none"


@dataclass(frozen=True, slots=True)
class UpstreamTls:
    """Whom the tap trusts as a broker, and with which certificate it comes, if any.

    A broker's certificate is to be for the name that the broker advertises, and for the first
    address for ``name``, where the tap connects to another (``127.0.0.1``, say).
    """

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    password: str | None = field(default=None, repr=False)
    name: str | None = None
    check_names: bool = True


@dataclass(frozen=True, slots=True)
class TapSecurity:
    """Both sides of a tap; None is a side without TLS.

    ``with_credentials`` says whether the capture is to hold credentials; None: unless there is TLS.
    """

    listen: ListenTls | None = None
    upstream: UpstreamTls | None = None
    as_one_principal: bool = False
    with_credentials: bool | None = None

    @property
    def withholds(self) -> bool:
        """Whether credentials are kept out of the capture: what TLS hid is not laid open."""
        if self.with_credentials is None:
            return self.listen is not None or self.upstream is not None
        return not self.with_credentials

    @property
    def lays_credentials_open(self) -> bool:
        """Whether what clients send under TLS goes on to brokers without it."""
        return self.listen is not None and self.upstream is None

    def check(self) -> None:
        """Refuse to take clients' principals away unasked, with `TapError`."""
        if self.as_one_principal:
            return
        if self.upstream is not None and self.upstream.certificate is not None:
            raise TapError(
                "with a certificate of the tap's own, brokers that know clients by certificates "
                "see one principal for all of them, and apply its ACLs and quotas: if that is "
                "meant, say --as-one-principal"
            )
        if self.listen is not None and self.listen.client_auth != "none":
            raise TapError(
                "clients' certificates end at the tap: brokers do not see them, and know all "
                "clients as one principal, whose ACLs and quotas they apply: if that is meant, "
                "say --as-one-principal"
            )


PLAIN: Final = TapSecurity()
"""No TLS on either side."""


class TapContexts:
    """What `TapSecurity` says, read from its files: `TlsError` says what is wrong with them."""

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
        """By which name a client came (SNI): so it reaches the tap, whose certificate it took."""
        return None if connection is None else self._names.get(connection)

    def _named(self, connection: object, name: str | None, _context: ssl.SSLContext) -> None:
        if name:
            self._names[connection] = name


def secured(
    listen: str | HostPort, upstream: str | HostPort, security: TapSecurity
) -> tuple[HostPort, HostPort, TapSecurity]:
    """The addresses of both sides, with a protocol or without, and what that asks of TLS.

    Raises `TapError` where one does not fit the other.
    """
    if isinstance(listen, str):
        address, is_tls = parse_listener(listen)
        if is_tls and security.listen is None:
            raise TapError(
                f"{listen}: TLS takes a certificate: --listen-certificate, or --throwaway-ca "
                "for a try"
            )
        if security.listen is not None and not is_tls:
            raise TapError(f"{listen}: a certificate is given, but not ssl:// before the address")
        listen = address
    if isinstance(upstream, str):
        address, is_tls = parse_listener(upstream)
        if is_tls and security.upstream is None:
            security = replace(security, upstream=UpstreamTls())
        if security.upstream is not None and not is_tls:
            raise TapError(
                f"{upstream}: options of TLS are given, but not ssl:// before the address"
            )
        upstream = address
    return listen, upstream, security
