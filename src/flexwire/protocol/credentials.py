"""Which fields of which messages carry credentials, and how they are withheld."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.codec import Message

WITHHELD: Final = "withheld"

# The configurations that Kafka itself types as passwords, under any listener's prefix, and what
# plugins are likely to call theirs.
_SECRET_CONFIG: Final = re.compile(
    r"password|secret|credential|token|jaas\.config|keystore\.(key|certificate\.chain)"
    r"|truststore\.certificates",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CredentialField:
    """A field that holds a credential: its message, its path in the spec's names, the reason.

    With ``if_secret`` the value is a credential only when the field of that name beside it names
    a configuration that is a secret.
    """

    message_name: str
    path: tuple[str, ...]
    reason: str
    if_secret: str = ""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The path in attribute names."""
        return tuple(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in self.path)

    @property
    def json_names(self) -> tuple[str, ...]:
        """The path in the names of the JSON form."""
        return tuple(name[0].lower() + name[1:] for name in self.path)


def _field(message_name: str, path: str, reason: str, if_secret: str = "") -> CredentialField:
    return CredentialField(message_name, tuple(path.split(".")), reason, if_secret)


_TOKEN = "a SASL token: with PLAIN the password itself, with SCRAM enough to guess it offline"  # noqa: S105  # it is a reason, not a password
_HMAC = "whoever has the HMAC of a delegation token can log in with it"
_SCRAM = "salt and salted password are what a SCRAM server needs, and enough to guess offline"
_CONFIG = "a configuration may be a password or a key"
_ENVELOPE = "another message, forwarded whole, whatever it carries"

CREDENTIALS: Final = (
    _field("SaslAuthenticateRequest", "AuthBytes", _TOKEN),
    _field("SaslAuthenticateResponse", "AuthBytes", _TOKEN),
    _field("AlterUserScramCredentialsRequest", "Upsertions.Salt", _SCRAM),
    _field("AlterUserScramCredentialsRequest", "Upsertions.SaltedPassword", _SCRAM),
    _field("CreateDelegationTokenResponse", "Hmac", _HMAC),
    _field("RenewDelegationTokenRequest", "Hmac", _HMAC),
    _field("ExpireDelegationTokenRequest", "Hmac", _HMAC),
    _field("DescribeDelegationTokenResponse", "Tokens.Hmac", _HMAC),
    _field("EnvelopeRequest", "RequestData", _ENVELOPE),
    _field("EnvelopeResponse", "ResponseData", _ENVELOPE),
    _field("AlterConfigsRequest", "Resources.Configs.Value", _CONFIG, "Name"),
    _field("IncrementalAlterConfigsRequest", "Resources.Configs.Value", _CONFIG, "Name"),
    _field("UserScramCredentialRecord", "Salt", _SCRAM),
    _field("UserScramCredentialRecord", "StoredKey", _SCRAM),
    _field("UserScramCredentialRecord", "ServerKey", _SCRAM),
    _field("ConfigRecord", "Value", _CONFIG, "Name"),
)


def credential_fields(message_name: str) -> tuple[CredentialField, ...]:
    """The fields of a message that carry credentials; none for most messages."""
    return tuple(one for one in CREDENTIALS if one.message_name == message_name)


def carries_credentials(message_name: str) -> bool:
    """Whether the message's bytes as they are must not be shown.

    >>> carries_credentials("SaslAuthenticateRequest"), carries_credentials("FetchRequest")
    (True, False)
    """
    return bool(credential_fields(message_name))


def withhold(message: Message) -> int:
    """Put "withheld" in the place of every credential in a decoded message; say how many.

    The message is altered. What is null stays so, for it tells nothing.
    """
    count = 0
    for one in credential_fields(type(message).__name__):
        *outer, last = one.attributes
        for holder in _holders(message, outer):
            value = getattr(holder, last)
            if value is None or not _is_secret(getattr(holder, one.if_secret.lower(), None)):
                continue
            setattr(holder, last, WITHHELD.encode() if isinstance(value, bytes) else WITHHELD)
            count += 1
    return count


def _is_secret(config_name: str | None) -> bool:
    return config_name is None or _SECRET_CONFIG.search(config_name) is not None


def _holders(struct: Any, path: list[str]) -> Iterator[Any]:
    if not path:
        yield struct
        return
    found = getattr(struct, path[0])
    for inner in found if isinstance(found, list) else [found]:
        if inner is not None:
            yield from _holders(inner, path[1:])
