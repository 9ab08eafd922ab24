"""How a client of ours reaches a broker: plainly or by TLS, and as whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from flexwire.client.scram import HASHES
from flexwire.errors import ClientConfigError

if TYPE_CHECKING:
    import ssl

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, *HASHES)


@dataclass(frozen=True, slots=True)
class Login:
    """Whom SASL says that we are; the password is never shown.

    ``is_token`` logs in with a delegation token: its id and HMAC are name and password.

    >>> Login("PLAIN", "alice", "secret")
    Login(mechanism='PLAIN', username='alice', is_token=False)
    """

    mechanism: str
    username: str
    password: str = field(repr=False)
    is_token: bool = False

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ClientConfigError(
                f"expected a SASL mechanism of {', '.join(MECHANISMS)}, got {self.mechanism!r}"
            )
        try:
            f"{self.username}{self.password}".encode()
        except UnicodeEncodeError:
            # It quotes what it is about.
            raise ClientConfigError(
                "user name and password: expected text that has UTF-8"
            ) from None
        if self.is_token and self.mechanism == PLAIN:
            raise ClientConfigError("a delegation token logs in with SCRAM, not with PLAIN")


@dataclass(frozen=True, slots=True)
class Security:
    """TLS by ``context``, if given (`flexwire.client.tls.client_context`), and SASL by ``login``."""

    context: ssl.SSLContext | None = None
    login: Login | None = None

    @property
    def lays_password_open(self) -> bool:
        """Whether whoever is on the way can read the password: PLAIN sends it as it is."""
        is_plain = self.login is not None and self.login.mechanism == PLAIN
        return is_plain and self.context is None


PLAINTEXT: Final = Security()
